//! A pass that is recorded, in three steps: each is a process of its own, so that a recording of the second has the commits alone.
//!
//!   databases made | commits, recorded; the process ends with its connections open, and no checkpoint follows | integrity_check

use serde::{Deserialize, Serialize};

use crate::bench::worker::libraries;
use crate::bench::worker::mobibench::progress::TestProgress;
use crate::bench::worker::page_transactions::run::{PageTransactionsTask, Pass, make_databases, verify};
use crate::bench::worker::task::{Reply, Task};

/// Which step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PassStep {
    /// Make the databases.
    Make,
    /// Make the commits on them.
    Commit,
    /// Have SQLite look at all of them.
    Check,
}

/// Do one step of a replay.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RecordedPassTask {
    /// The replay.
    pub replay: PageTransactionsTask,
    /// Its step.
    pub step: PassStep,
}

impl Task for RecordedPassTask {
    const NAME: &'static str = "a step of a recorded pass";
    type Answer = ();
    fn run(&self) -> Reply<Self> {
        let api = libraries::load(&self.replay.libraries)?;
        let (task, progress) = (&self.replay, &TestProgress::new(false));
        match self.step {
            PassStep::Make => make_databases(&api, task, progress).map(|_| ()),
            PassStep::Commit => {
                Pass { api: &api, task, progress, leaves_open: true }.commit(None)?;
                // The connections are open: their library has to stay.
                std::mem::forget(api);
                Ok(())
            }
            PassStep::Check => verify(&api, task).map(|_| ()),
        }
    }
}
