//! One life of a guest, from power on to power off, and what its console says meanwhile.

use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

use super::host_share::HostShare;
use super::job::{GuestLine, LINE_MARK, SHARE_TAG};
use super::packages::Packages;
use crate::bench::progress::Progress;
use crate::machine::clock::shared_ns;
use crate::machine::qemu::{Boot, Heard, Qemu};
use crate::machine::signal::is_stopped;

/// Memory of the guest, in MiB: the archive, the emulated devices' data, and what SQLite needs.
pub const MEMORY_MIB: u32 = 2_560;
/// Lines of the console that are told when a guest ends too early.
const LAST_LINES: usize = 8;
/// Between two looks whether Ctrl-C was pressed.
const NAP: Duration = Duration::from_millis(200);
/// The longest boot.
const BOOT_SECONDS: u64 = 300;

/// Why a session came to no end.
#[derive(Debug, PartialEq, Eq)]
pub enum Stop {
    /// A signal asked for it.
    Signal,
    /// What, where, how to mend.
    Failed(String),
}

impl From<String> for Stop {
    fn from(text: String) -> Stop {
        Stop::Failed(text)
    }
}

/// What a guest's life came to.
#[derive(Debug)]
pub struct Life {
    /// It came as far as its job.
    pub ready: bool,
    /// The unit of work in which it ended.
    pub running: Option<usize>,
    last: VecDeque<String>,
}

/// A guest that is to be started.
#[derive(Debug)]
pub struct Guest<'a> {
    /// Kernel and programs.
    pub packages: &'a Packages,
    /// The archive that it boots from.
    pub image: &'a Path,
    /// Where its job is.
    pub share: &'a HostShare,
    /// How long a unit of work may take, in seconds of this machine.
    pub unit_seconds: u64,
}

impl Guest<'_> {
    /// From power on to power off. `name`: what progress calls a unit; `done` is told each whose report is there.
    /// # Errors
    /// [`Stop`]; what `done` was told stands.
    pub fn live(
        &self,
        name: &dyn Fn(usize) -> String,
        progress: &mut Progress,
        done: &mut dyn FnMut(usize),
    ) -> Result<Life, Stop> {
        let qemu = Qemu::start(&Boot {
            kernel: self.packages.kernel(),
            image: self.image.to_owned(),
            share: (self.share.shared(), SHARE_TAG.to_owned()),
            words: String::new(),
            memory_mib: MEMORY_MIB,
            interactive: false,
        })?;
        let mut life = Life { ready: false, running: None, last: VecDeque::new() };
        let mut deadline_ns = shared_ns() + BOOT_SECONDS * 1_000_000_000;
        loop {
            if is_stopped() {
                return Err(Stop::Signal);
            }
            // A guest that hangs may go on complaining.
            if shared_ns() > deadline_ns {
                life.last.push_back("it took too long".to_owned());
                return Ok(life);
            }
            let line = match qemu.hear(NAP) {
                // The signal that stops joj ends QEMU, too.
                Heard::End if is_stopped() => return Err(Stop::Signal),
                Heard::End => return Ok(life),
                Heard::Nothing => continue,
                Heard::Line(line) => line,
            };
            let Some(marked) = line.find(LINE_MARK).map(|at| &line[at + LINE_MARK.len()..]) else {
                life.remember(line);
                continue;
            };
            match serde_json::from_str(marked) {
                Ok(GuestLine::Ready(_)) => life.ready = true,
                Ok(GuestLine::Begun(index)) => {
                    life.running = Some(index);
                    deadline_ns = shared_ns() + self.unit_seconds * 1_000_000_000;
                    progress.step(&name(index));
                }
                Ok(GuestLine::Done(index)) => {
                    life.running = None;
                    done(index);
                }
                Ok(GuestLine::End) => {
                    // It is about to turn itself off.
                    return Ok(life);
                }
                Ok(GuestLine::Broken(reason)) => return Err(Stop::Failed(format!("the guest: {reason}"))),
                Err(_) => life.remember(line),
            }
        }
    }
}

impl Life {
    /// The last lines of its console.
    pub fn said(&self) -> String {
        let last: Vec<&str> = self.last.iter().map(String::as_str).collect();
        if last.is_empty() { "nothing".to_owned() } else { last.join(" | ") }
    }

    fn remember(&mut self, line: String) {
        if line.trim().is_empty() {
            return;
        }
        if self.last.len() == LAST_LINES {
            self.last.pop_front();
        }
        self.last.push_back(line);
    }
}
