//! The emulated machine: QEMU with a virtual clock, spoken to line by line.
//!
//! One processor, software emulation, `-icount shift=0,sleep=off`: an instruction takes one nanosecond, and a guest that
//! waits lets no time of ours pass. So what the guest measures does not depend on the load of this machine. Devices of
//! QEMU's that wait for this machine (virtio-blk, nvme) would break that: the emulated device runs inside the guest.
//! Source: QEMU, docs/devel/tcg-icount.rst.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, set_parent_process_death_signal};

use crate::machine::qemu::error::QemuError;

/// The program.
const PROGRAM: &str = "qemu-system-x86_64";
/// How QEMU keeps the guest's time.
pub const CLOCK: &str = "icount shift=0,sleep=off";

/// What is read of a machine's memory, or written to, in the shell words of [`MachineStart`].
const MEMORY_FILE: &str = "JOJ_MEMORY_FILE";
/// QEMU's name for the shell words that write [`MachineStart::Prepare`]'s memory file (docs/interop/migration of QEMU: `exec:`).
pub const KEEP_MEMORY: &str = "exec:cat > \"$JOJ_MEMORY_FILE\"";
const TAKE_MEMORY: &str = "exec:cat \"$JOJ_MEMORY_FILE\"";

/// What QEMU starts: kernel, initial file system, memory.
#[derive(Debug, Clone)]
pub struct Machine {
    pub kernel: PathBuf,
    /// The archive that it boots from.
    pub image: PathBuf,
    /// Directory that guest and host share, and its name in the guest.
    pub share: (PathBuf, String),
    /// The name in the guest of all files of the host, which the guest may read.
    pub host: String,
    pub memory_mib: u32,
}

/// How a machine begins, and who speaks with it.
#[derive(Debug, Clone)]
pub enum MachineStart {
    /// It boots, on this terminal, with words for the kernel besides ours. Its time is the terminal's: beside a person it must not
    /// run ahead while the guest waits for a key.
    Terminal(String),
    /// It boots, its console goes to the first file; joj speaks with QEMU itself (QMP) to have its memory kept in the second.
    Prepare(PathBuf, PathBuf),
    /// It goes on with the memory in this file, and joj has its console.
    Restore(PathBuf),
}

/// What was heard of the console, or of QEMU itself.
#[derive(Debug, PartialEq, Eq)]
pub enum Heard {
    /// A line of the guest's console.
    Line(String),
    /// Nothing for the time given.
    Nothing,
    /// The machine is off.
    End,
}

/// A running machine; dropping it turns it off.
#[derive(Debug)]
pub struct Qemu {
    child: Child,
    input: Option<ChildStdin>,
    lines: Option<Receiver<String>>,
}

/// QEMU's version, as it says it.
/// # Errors
/// Where it is not installed, and how to get it.
pub fn version() -> Result<String, QemuError> {
    let output = Command::new(PROGRAM).arg("--version").output();
    let output = output.map_err(|error| QemuError::NoVersion { program: PROGRAM, error })?;
    let text = String::from_utf8_lossy(&output.stdout);
    let first = text.lines().next().unwrap_or_default();
    Ok(first.trim_start_matches("QEMU emulator version ").to_owned())
}

impl Qemu {
    /// Starts a machine.
    /// # Errors
    /// Where QEMU does not start.
    pub fn start(machine: &Machine, start: &MachineStart) -> Result<Qemu, QemuError> {
        let (clock, words) = match start {
            MachineStart::Terminal(words) => ("shift=0,sleep=on", words.as_str()),
            MachineStart::Prepare(..) | MachineStart::Restore(_) => (CLOCK.trim_start_matches("icount "), ""),
        };
        let mut command = Command::new(PROGRAM);
        command
            .args(["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-M", "pc"])
            // Five levels of page tables and speculation's mitigations only cost emulated instructions.
            // Without `rep stosb` for long runs, whose every byte counts as an instruction: clearing a page took 8 us of the guest's time.
            .args(["-accel", "tcg,thread=single", "-cpu", "max,la57=off,erms=off,fsrm=off", "-smp", "1"])
            .args(["-icount", clock])
            .args(["-rtc", "base=2026-01-01,clock=vm"])
            .args(["-m", &machine.memory_mib.to_string()])
            .arg("-kernel")
            .arg(&machine.kernel)
            .arg("-initrd")
            .arg(&machine.image)
            .arg("-append")
            .arg(kernel_words(words))
            .args(["-serial", "chardev:console"])
            .args(share_words(&machine.share.0, "share", &machine.share.1, "security_model=none"))
            .args(share_words(Path::new("/"), "host", &machine.host, "security_model=none,readonly=on"));
        match start {
            MachineStart::Terminal(_) => command.args(["-chardev", "stdio,id=console,signal=off"]),
            MachineStart::Prepare(console, memory) => command
                .arg("-chardev")
                .arg(format!("file,id=console,path={}", comma_doubled(console)))
                .args(["-qmp", "stdio"])
                .env(MEMORY_FILE, memory),
            MachineStart::Restore(memory) => command
                .args(["-chardev", "stdio,id=console", "-incoming", TAKE_MEMORY])
                .env(MEMORY_FILE, memory),
        };
        let is_ours = !matches!(start, MachineStart::Terminal(_));
        if is_ours {
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
            // Ctrl-C is for joj, which ends it.
            command.process_group(0);
        }
        // SAFETY: between fork and exec only prctl runs, which is async-signal-safe and takes numbers.
        unsafe {
            command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::KILL))?));
        }
        let mut child = command.spawn().map_err(|error| QemuError::NotStarted { program: PROGRAM, error })?;
        let input = child.stdin.take();
        let lines = child.stdout.take().map(|output| {
            let (sender, receiver) = channel();
            thread::spawn(move || {
                let mut output = BufReader::new(output);
                let mut bytes = Vec::new();
                while output.read_until(b'\n', &mut bytes).is_ok_and(|count| count > 0) {
                    let line = String::from_utf8_lossy(&bytes).trim_end().to_owned();
                    bytes.clear();
                    if sender.send(line).is_err() {
                        return;
                    }
                }
            });
            receiver
        });
        Ok(Qemu { child, input, lines })
    }

    /// Sends a line; to a machine that is off, nothing.
    pub fn say(&mut self, line: &str) {
        if let Some(input) = &mut self.input {
            let _ = writeln!(input, "{line}").and_then(|()| input.flush());
        }
    }

    /// The next line, or [`Heard::Nothing`] after `timeout`.
    pub fn hear(&self, timeout: Duration) -> Heard {
        let Some(lines) = &self.lines else { return Heard::End };
        match lines.recv_timeout(timeout) {
            Ok(line) => Heard::Line(line),
            Err(RecvTimeoutError::Timeout) => Heard::Nothing,
            Err(RecvTimeoutError::Disconnected) => Heard::End,
        }
    }

    /// Waits until the machine is off; its exit code, or none where a signal ended it.
    pub fn wait(mut self) -> Option<i32> {
        self.child.wait().ok().and_then(|status| status.code())
    }
}

impl Drop for Qemu {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = rustix::process::kill_process(Pid::from_child(&self.child), Signal::KILL);
            let _ = self.child.wait();
        }
    }
}

fn kernel_words(besides: &str) -> String {
    // Addresses and entropy are the same at each boot. So are those of programs: a large allocation had, by chance of its address, a huge
    // page in the middle of a measurement, cleared in 4 ms. A panic ends the machine (-no-reboot).
    format!(
        "console=ttyS0 quiet loglevel=4 panic=-1 rdinit=/init nokaslr norandmaps transparent_hugepage=madvise mitigations=off \
         random.trust_cpu=on clocksource=tsc tsc=reliable nowatchdog {besides}"
    )
}

/// A path as a value of one of QEMU's options, where a comma ends it.
fn comma_doubled(path: &Path) -> String {
    path.display().to_string().replace(',', ",,")
}

/// Source: QEMU, "9pfs". Files that the guest makes belong to who runs QEMU: no root.
fn share_words(directory: &Path, name: &str, tag: &str, how: &str) -> [String; 4] {
    [
        "-fsdev".to_owned(),
        format!("local,id={name},path={},multidevs=remap,{how}", comma_doubled(directory)),
        "-device".to_owned(),
        format!("virtio-9p-pci,fsdev={name},mount_tag={tag}"),
    ]
}
