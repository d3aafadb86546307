//! A plan, measured in one emulated machine after another until each cell has a report.

use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

use joj_analysis::lab::cell::Cell;

use super::host_share::HostShare;
use super::image::{self, Contents};
use super::job::{CellReport, GuestLine, Job, LINE_MARK, SHARE_TAG};
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

/// What a session needs.
#[derive(Debug)]
pub struct Session<'a> {
    /// The plan's cells.
    pub cells: &'a [Cell],
    /// Kernel and programs.
    pub packages: &'a Packages,
    /// joj and libraries.
    pub contents: &'a Contents,
    /// The job but for its cells.
    pub job: Job,
    /// How long a cell may take, in seconds of this machine.
    pub cell_seconds: u64,
}

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
struct Life {
    ready: bool,
    running: Option<usize>,
    last: VecDeque<String>,
}

impl Session<'_> {
    /// Measures all cells; `done` is told each report, with the share that holds the cell's trace.
    /// # Errors
    /// [`Stop`]; what `done` was told stands.
    pub fn run(
        &self,
        progress: &mut Progress,
        done: &mut dyn FnMut(usize, CellReport, &HostShare),
    ) -> Result<(), Stop> {
        let share = HostShare::create()?;
        let file = share.beside("image");
        image::write(&file, self.contents, self.packages)?;
        let mut left: Vec<usize> = (0..self.cells.len()).collect();
        while !left.is_empty() {
            let cells = left.iter().map(|index| (*index, self.cells[*index].clone())).collect();
            share.put_job(&Job { cells, ..self.job.clone() })?;
            let life = self.live(&file, &share, progress, &mut |index| {
                left.retain(|other| *other != index);
                done(index, share.report(index), &share);
            })?;
            let last: Vec<&str> = life.last.iter().map(String::as_str).collect();
            let said = if last.is_empty() { "nothing".to_owned() } else { last.join(" | ") };
            match life.running {
                // A cell that ends the guest, or takes for ever, costs that cell.
                Some(index) => {
                    left.retain(|other| *other != index);
                    done(index, Err(format!("the guest ended in it; its console said: {said}")), &share);
                }
                None if !life.ready => {
                    return Err(Stop::Failed(format!("the guest did not start; its console said: {said}")));
                }
                None if !left.is_empty() => {
                    return Err(Stop::Failed(format!(
                        "the guest ended between two cells; its console said: {said}"
                    )));
                }
                None => {}
            }
        }
        Ok(())
    }

    /// From power on to power off.
    fn live(
        &self,
        image: &Path,
        share: &HostShare,
        progress: &mut Progress,
        done: &mut dyn FnMut(usize),
    ) -> Result<Life, Stop> {
        let qemu = Qemu::start(&Boot {
            kernel: self.packages.kernel(),
            image: image.to_owned(),
            share: (share.shared(), SHARE_TAG.to_owned()),
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
            let line = match qemu.hear(NAP) {
                Heard::End => return Ok(life),
                Heard::Nothing if shared_ns() > deadline_ns => {
                    life.last.push_back("nothing for too long".to_owned());
                    return Ok(life);
                }
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
                    deadline_ns = shared_ns() + self.cell_seconds * 1_000_000_000;
                    progress.step(&self.cells[index].to_string());
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
