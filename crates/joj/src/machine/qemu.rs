//! The emulated machine: QEMU with a virtual clock, its console read line by line.
//!
//! One processor, software emulation, `-icount shift=0,sleep=off`: an instruction takes one nanosecond, and a guest that
//! waits lets no time of ours pass. So what the guest measures does not depend on the load of this machine. Devices of
//! QEMU's that wait for this machine (virtio-blk, nvme) would break that: the emulated device runs inside the guest.
//! Source: QEMU, docs/devel/tcg-icount.rst.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, set_parent_process_death_signal};

use super::signal;

/// The program.
const PROGRAM: &str = "qemu-system-x86_64";
/// How QEMU keeps the guest's time.
pub const CLOCK: &str = "icount shift=0,sleep=off";

/// What to boot.
#[derive(Debug, Clone)]
pub struct Boot {
    /// The kernel.
    pub kernel: PathBuf,
    /// The archive that it boots from.
    pub image: PathBuf,
    /// Directory that guest and host share, and its name in the guest.
    pub share: (PathBuf, String),
    /// Words for the kernel besides ours.
    pub words: String,
    /// Memory in MiB.
    pub memory_mib: u32,
    /// Connect the console to this terminal instead of to joj.
    pub interactive: bool,
}

/// What the console said.
#[derive(Debug, PartialEq, Eq)]
pub enum Heard {
    /// A line.
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
    lines: Option<Receiver<String>>,
}

/// QEMU's version, as it says it.
/// # Errors
/// Where it is not installed, and how to get it.
pub fn version() -> Result<String, String> {
    let output = Command::new(PROGRAM).arg("--version").output().map_err(|error| {
        format!("cannot run {PROGRAM}: {error}; install it, on Debian: apt-get install --no-install-recommends qemu-system-x86")
    })?;
    let text = String::from_utf8_lossy(&output.stdout);
    let first = text.lines().next().unwrap_or_default();
    Ok(first.trim_start_matches("QEMU emulator version ").to_owned())
}

impl Qemu {
    /// Starts a machine.
    /// # Errors
    /// Where QEMU does not start.
    pub fn start(boot: &Boot) -> Result<Qemu, String> {
        let mut command = Command::new(PROGRAM);
        command
            .args(["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-M", "pc"])
            // Five levels of page tables and speculation's mitigations only cost emulated instructions.
            .args(["-accel", "tcg,thread=single", "-cpu", "max,la57=off", "-smp", "1"])
            // Beside a person time must not run ahead while the guest waits for a key.
            .args(["-icount", if boot.interactive { "shift=0,sleep=on" } else { "shift=0,sleep=off" }])
            .args(["-rtc", "base=2026-01-01,clock=vm"])
            .args(["-m", &boot.memory_mib.to_string()])
            .arg("-kernel")
            .arg(&boot.kernel)
            .arg("-initrd")
            .arg(&boot.image)
            .arg("-append")
            .arg(kernel_words(&boot.words))
            .args([
                "-chardev",
                if boot.interactive { "stdio,id=console,signal=off" } else { "stdio,id=console" },
            ])
            .args(["-serial", "chardev:console"])
            .args(share_words(&boot.share.0, &boot.share.1));
        if !boot.interactive {
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        }
        // SAFETY: between fork and exec only prctl runs, which is async-signal-safe and takes numbers.
        unsafe {
            command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::KILL))?));
        }
        let mut child = command.spawn().map_err(|error| {
            format!("cannot run {PROGRAM}: {error}; on Debian: apt-get install --no-install-recommends qemu-system-x86")
        })?;
        signal::watch_worker(child.id());
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
        Ok(Qemu { child, lines })
    }

    /// The next line of the console, or [`Heard::Nothing`] after `patience`.
    pub fn hear(&self, patience: Duration) -> Heard {
        let Some(lines) = &self.lines else { return Heard::End };
        match lines.recv_timeout(patience) {
            Ok(line) => Heard::Line(line),
            Err(RecvTimeoutError::Timeout) => Heard::Nothing,
            Err(RecvTimeoutError::Disconnected) => Heard::End,
        }
    }

    /// Waits until the machine is off; its exit code, or none where a signal ended it.
    pub fn wait(mut self) -> Option<i32> {
        signal::forget_worker();
        self.child.wait().ok().and_then(|status| status.code())
    }
}

impl Drop for Qemu {
    fn drop(&mut self) {
        signal::forget_worker();
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = rustix::process::kill_process(Pid::from_child(&self.child), Signal::KILL);
            let _ = self.child.wait();
        }
    }
}

fn kernel_words(besides: &str) -> String {
    // Addresses and entropy are the same at each boot. A panic ends the machine (-no-reboot).
    format!(
        "console=ttyS0 quiet loglevel=4 panic=-1 rdinit=/init nokaslr mitigations=off random.trust_cpu=on \
         clocksource=tsc tsc=reliable nowatchdog {besides}"
    )
}

/// Source: QEMU, "9pfs". Files that the guest makes belong to who runs QEMU: no root.
fn share_words(directory: &Path, tag: &str) -> [String; 4] {
    [
        "-fsdev".to_owned(),
        format!("local,id=share,path={},security_model=none,multidevs=remap", directory.display()),
        "-device".to_owned(),
        format!("virtio-9p-pci,fsdev=share,mount_tag={tag}"),
    ]
}
