//! The first process: it makes the machine usable, does the job, and turns the machine off.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::lab::guest::command::exec::Executor;
use crate::lab::guest::command::program_crash::ProgramCrashes;
use crate::lab::guest::console::say;
use crate::lab::guest::crash::Crashes;
use crate::lab::guest::error::{GuestError, cannot};
use crate::lab::guest::measure::Measurer;
use crate::lab::guest::replay::Replayer;
use crate::lab::job::{GuestLine, JOB_FILE, Job, SHARE_TAG, guest_path, report_file};
use crate::lab::jobs::crash::{CRASH_JOB_FILE, CrashJob};
use crate::lab::jobs::exec::{EXEC_JOB_FILE, ExecJob};
use crate::lab::jobs::program_crash::{PROGRAM_CRASH_JOB_FILE, ProgramCrashJob};
use crate::lab::jobs::replay::{REPLAY_JOB_FILE, ReplayCommand, ReplayJob};
use crate::machine::qemu::guest_kernel;

/// Does what the host left in the shared directory; never comes back to the kernel, which would panic.
pub fn run() -> ! {
    if let Err(reason) = work() {
        say(&GuestLine::Broken(reason.to_string()));
    }
    guest_kernel::power_off();
    loop {
        std::thread::park();
    }
}

fn work() -> Result<(), GuestError> {
    guest_kernel::mount_usual()?;
    load_modules();
    if fs::read_to_string("/proc/cmdline")
        .is_ok_and(|words| words.split_whitespace().any(|word| word == "joj.shell"))
    {
        return shell();
    }
    // From here on the memory of this machine may be another's, later (lab/snapshot.rs).
    say(&GuestLine::Prepared);
    io::stdin().read_line(&mut String::new()).map_err(cannot("read the console"))?;
    guest_kernel::mount_share(SHARE_TAG, guest_path::SHARE)?;
    let share = Path::new(guest_path::SHARE);
    say(&GuestLine::Ready(guest_kernel::release()));
    if let Ok(text) = fs::read_to_string(share.join(CRASH_JOB_FILE)) {
        let job: CrashJob = parse(&text)?;
        let mut crashes = Crashes::new(&job, share)?;
        return work_off(share, &job.units, |unit| crashes.report(unit));
    }
    if let Ok(text) = fs::read_to_string(share.join(PROGRAM_CRASH_JOB_FILE)) {
        let job: ProgramCrashJob = parse(&text)?;
        let mut crashes = ProgramCrashes::new(&job, share)?;
        let units: Vec<usize> = job.units.keys().copied().collect();
        return work_off(share, &units, |unit| crashes.report(unit));
    }
    if let Ok(text) = fs::read_to_string(share.join(REPLAY_JOB_FILE)) {
        let job: ReplayJob = parse(&text)?;
        let replayer = Replayer::new(&job, share)?;
        return match &job.command {
            ReplayCommand::Replay => work_off(share, &job.units, |unit| replayer.replay(unit)),
            ReplayCommand::Whatif(_) => work_off(share, &job.units, |unit| replayer.row(unit)),
        };
    }
    if let Ok(text) = fs::read_to_string(share.join(EXEC_JOB_FILE)) {
        let job: ExecJob = parse(&text)?;
        let executor = Executor::new(&job, share);
        return work_off(share, &job.units, |unit| executor.run(unit));
    }
    let text = fs::read_to_string(share.join(JOB_FILE)).map_err(cannot("read the job"))?;
    let job: Job = parse(&text)?;
    let measurer = Measurer::new(&job)?;
    work_off(share, &job.units, |unit| measurer.measure(unit))
}

fn parse<T: DeserializeOwned>(text: &str) -> Result<T, GuestError> {
    serde_json::from_str(text).map_err(GuestError::Job)
}

fn work_off<T: Serialize>(
    share: &Path,
    units: &[usize],
    mut report: impl FnMut(usize) -> Result<T, GuestError>,
) -> Result<(), GuestError> {
    for unit in units {
        say(&GuestLine::Begun(*unit));
        put(share, *unit, &report(*unit).map_err(|error| error.to_string()))?;
        say(&GuestLine::Done(*unit));
    }
    say(&GuestLine::End);
    Ok(())
}

/// Modules for processors that this one is not (crc32c_intel) refuse; what is really missing shows where it is used.
fn load_modules() {
    let list = fs::read_to_string(guest_path::MODULE_LIST).unwrap_or_default();
    for name in list.lines() {
        if let Err(reason) = guest_kernel::load_module(&Path::new(guest_path::MODULES).join(name)) {
            println!("module not loaded: {reason}");
        }
    }
}

/// Leaves a report, whole or not at all.
fn put(share: &Path, index: usize, report: &impl Serialize) -> Result<(), GuestError> {
    let problem = &cannot(format!("write the report of cell {index}"));
    let text = serde_json::to_string(report)?;
    let part = share.join("report.part");
    fs::write(&part, text).map_err(problem)?;
    fs::rename(&part, share.join(report_file(index))).map_err(problem)
}

/// Hands the console to a person.
fn shell() -> Result<(), GuestError> {
    let busybox = "/bin/busybox";
    let _ = Command::new(busybox).args(["--install", "-s", "/bin"]).status();
    let _ = guest_kernel::mount_share(SHARE_TAG, guest_path::SHARE);
    println!(
        "joj lab: the host's directory is /share; joj, mkfs.*, busybox are here; `exit` turns the machine off"
    );
    Command::new(busybox)
        .args(["setsid", busybox, "cttyhack", busybox, "sh"])
        .env("PATH", "/bin:/sbin:/")
        .env("HOME", "/root")
        .env("PS1", "lab# ")
        .status()
        .map_err(cannot("start a shell"))?;
    Ok(())
}
