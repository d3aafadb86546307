//! One outcome for each unit of work on an emulated disk, from guests that work them off.

use std::io::{IsTerminal, stderr};

use joj_analysis::lab::result::LabMachine;

use crate::bench::progress::Progress;
use crate::lab::commands::error::LabError;
use crate::lab::error::UnitError;
use crate::lab::guest_pool::{self, GuestPool, Work};
use crate::lab::host_share::HostShare;
use crate::lab::life::SessionEnd;
use crate::lab::machine;

/// What came of all units.
#[derive(Debug)]
pub struct DiskOutcomes<O> {
    /// In the order of the units; empty where no guest came to any.
    pub outcomes: Vec<O>,
    /// The machine that did it.
    pub machine: LabMachine,
    /// Why it ended early.
    pub stop: Option<SessionEnd>,
}

/// Of the unit's number, its guest's report or why there is none, and the share where the guest left files.
type OutcomeOf<'a, R, O> = dyn FnMut(usize, Result<R, UnitError>, &HostShare) -> O + 'a;

/// How outcomes are made and told.
pub struct DiskWork<'a, R, O> {
    /// How long one unit takes, for the first forecast.
    pub seconds: f64,
    /// What a guest's report comes to.
    pub outcome: &'a mut OutcomeOf<'a, R, O>,
    /// The outcome of a unit that no guest came to.
    pub failed: fn(String) -> O,
    /// A line of progress, from such as "1 of 3", the unit's name and its outcome; `None`: no lines.
    pub line: Option<fn(&str, &str, &O) -> String>,
}

/// Has guests do one unit each.
/// # Errors
/// The machine cannot be described; what stops the work is in the outcomes.
pub fn work_off<W: Work, O>(
    pool: &GuestPool,
    work: &W,
    units: usize,
    disk: DiskWork<'_, W::Report, O>,
) -> Result<DiskOutcomes<O>, LabError> {
    let mut machine = machine::told(pool)?;
    let mut outcomes: Vec<Option<O>> = (0..units).map(|_| None).collect();
    let mut progress = Progress::new(units, disk.seconds * units as f64 / pool.jobs.min(units) as f64);
    let mut done = 0;
    // A guest for each unit: none begins with what the one before left in memory.
    let batches = (0..units).map(|unit| vec![unit]).collect();
    let ended = pool.work_off(batches, work, &mut progress, &mut |index, report, share| {
        let outcome = (disk.outcome)(index, report, share);
        done += 1;
        // Where no line can change, one line a unit: a long recording takes minutes.
        if let Some(line) = disk.line.filter(|_| !stderr().is_terminal()) {
            eprintln!("{}", line(&format!("{done} of {units}"), &work.name(index), &outcome));
        }
        outcomes[index] = Some(outcome);
    });
    progress.clear();
    let stop = ended.map(|kernel| machine.kernel = kernel).err();
    if done == 0 {
        outcomes.clear();
        if matches!(stop, Some(SessionEnd::Signal)) {
            eprintln!("joj: stopped by a signal before anything was measured: there is no result");
        }
    }
    let missing = || (disk.failed)(guest_pool::unmeasured(stop.as_ref()));
    let outcomes = outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(missing)).collect();
    Ok(DiskOutcomes { outcomes, machine, stop })
}
