//! One life of a guest, from the snapshot to power off, and what its console says meanwhile.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::lab::error::{SessionError, TimeLimit};
use crate::lab::job::{Allowed, GuestLine, marked};
use crate::machine::proc::clock::shared_ns;
use crate::machine::proc::signal::is_stopped;
use crate::machine::qemu::process::{Heard, Machine, MachineStart, Qemu};

/// Memory of the guest, in MiB: the archive, the emulated devices' data, and what SQLite needs.
pub const MEMORY_MIB: u32 = 2_560;
/// Lines of the console that are told when a guest ends too early.
const LAST_LINES: usize = 8;
/// Between two looks whether Ctrl-C was pressed.
const NAP: Duration = Duration::from_millis(200);
/// The longest time from the snapshot to the job.
const START_SECONDS: u64 = 120;

/// Why a session came to no end.
#[derive(Debug)]
pub enum SessionEnd {
    /// A signal asked for it.
    Signal,
    /// What, where, how to mend.
    Failed(SessionError),
}

impl<E: Into<SessionError>> From<E> for SessionEnd {
    fn from(error: E) -> SessionEnd {
        SessionEnd::Failed(error.into())
    }
}

/// Until when a guest may take for what it does now.
struct Limit {
    seconds: u64,
    end_ns: u64,
}

impl Limit {
    fn from_now(seconds: u64) -> Limit {
        Limit { seconds, end_ns: shared_ns() + seconds * 1_000_000_000 }
    }
}

/// What a guest's life came to.
#[derive(Debug)]
pub struct Life {
    /// It came as far as its job.
    pub ready: bool,
    /// The unit of work in which it ended.
    pub running: Option<usize>,
    /// It was ended because so many seconds of this machine were over.
    pub over_s: Option<u64>,
    last: VecDeque<String>,
}

/// What a guest tells.
#[derive(Debug)]
pub enum Event {
    /// It has the job; the kernel's release.
    Ready(String),
    /// It begins with this unit.
    Begun(usize),
    /// What it does with this unit.
    Doing(usize, String),
    /// The report of this unit is there.
    Done(usize),
}

/// A guest that is to go on from a snapshot.
#[derive(Debug)]
pub struct Guest<'a> {
    pub machine: &'a Machine,
    /// The file with the memory of a machine that has booted.
    pub snapshot: &'a Path,
    /// How long a step of its work may take.
    pub limit: TimeLimit,
    /// Set where the guest shall not go on for another's sake.
    pub is_over: &'a AtomicBool,
}

impl Guest<'_> {
    /// From the snapshot to power off; `told` gets each event.
    /// # Errors
    /// [`SessionEnd`]; what was told stands.
    pub fn live(&self, told: &mut dyn FnMut(Event)) -> Result<Life, SessionEnd> {
        let mut qemu = Qemu::start(self.machine, &MachineStart::Restore(self.snapshot.to_owned()))?;
        let mut life = Life { ready: false, running: None, over_s: None, last: VecDeque::new() };
        let mut limit = Limit::from_now(START_SECONDS);
        loop {
            if is_stopped() {
                return Err(SessionEnd::Signal);
            }
            if self.is_over.load(Ordering::SeqCst) {
                return Ok(life);
            }
            // A guest that hangs may go on complaining.
            if shared_ns() > limit.end_ns {
                life.over_s = Some(limit.seconds);
                return Ok(life);
            }
            let line = match qemu.hear(NAP) {
                Heard::End => return Ok(life),
                Heard::Nothing if !life.ready => {
                    // It waits for this; one that comes while its memory is still being read is lost.
                    qemu.say("");
                    continue;
                }
                Heard::Nothing => continue,
                Heard::Line(line) => line,
            };
            match marked(&line).map(serde_json::from_str) {
                Some(Ok(GuestLine::Prepared)) => {}
                Some(Ok(GuestLine::Ready(release))) => {
                    life.ready = true;
                    // What the units of its job need is unpacked first, and that may be as much as a unit.
                    limit = Limit::from_now(self.limit.seconds);
                    told(Event::Ready(release));
                }
                Some(Ok(GuestLine::Begun(index))) => {
                    life.running = Some(index);
                    limit = Limit::from_now(self.limit.seconds);
                    told(Event::Begun(index));
                }
                Some(Ok(GuestLine::Doing(what, allowed))) => {
                    limit = match allowed {
                        Allowed::WhatIsLeft => limit,
                        Allowed::Step => Limit::from_now(self.limit.seconds),
                        Allowed::OwnWork => Limit::from_now(self.limit.seconds.max(START_SECONDS)),
                    };
                    life.running.into_iter().for_each(|unit| told(Event::Doing(unit, what.clone())));
                }
                Some(Ok(GuestLine::Done(index))) => {
                    life.running = None;
                    told(Event::Done(index));
                }
                // It is about to turn itself off.
                Some(Ok(GuestLine::End)) => return Ok(life),
                Some(Ok(GuestLine::Broken(reason))) => {
                    return Err(SessionError::Broken(reason).into());
                }
                Some(Err(_)) | None => life.remember(line),
            }
        }
    }
}

impl Life {
    /// The last lines of its console.
    pub fn said(&self) -> String {
        said(self.last.iter().map(String::as_str))
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

/// The last lines of a console, in one.
pub fn said<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let lines: Vec<&str> = lines.filter(|line| !line.trim().is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
    if last.is_empty() { "nothing".to_owned() } else { last.join(" | ") }
}
