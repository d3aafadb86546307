//! The commits of a recording through SQLite, in a journal mode. The other calls are replayed apart, as recorded.

use std::path::Path;

use joj_analysis::bench::key::JournalMode;
use joj_analysis::bench::run::SyncCount;
use joj_analysis::recording::page_transactions::plan::TransactionPlan;
use joj_analysis::recording::whatif::commit_calls::in_order;
use serde::{Deserialize, Serialize};

use crate::bench::ask::{Asker, Stop};
use crate::bench::worker::libraries::Libraries;
use crate::bench::worker::page_transactions::run::{PageTransactionsFigures, PageTransactionsTask};
use crate::command_line::replay::OrderChoice;
use crate::machine::files::counters::Sources;
use crate::machine::files::place::Place;
use crate::machine::proc::worker_process::Workers;
use crate::replay::error::ReplayError;
use crate::replay::plan;
use crate::whatif::call_replay::CallFigures;

/// How commits are made.
#[derive(Debug, Clone)]
pub struct CommitSetting {
    /// SQLite, and the extension where the mode needs it.
    pub libraries: Libraries,
    /// The journal mode.
    pub mode: JournalMode,
    /// `PRAGMA synchronous`.
    pub synchronous: &'static str,
    /// `waldio_durability`, where there is waldio.
    pub durability: Option<&'static str>,
}

/// What the commits were like.
#[derive(Debug)]
pub struct CommitFigures {
    /// How long each took, in the order of the plan.
    pub times_ns: Vec<u64>,
    /// How long each of the closes took.
    pub closes_ns: Vec<u64>,
    /// What the device wrote, until all was written that they wrote.
    pub device_bytes: Option<u64>,
    /// `sqlite3_libversion()`.
    pub version: String,
}

/// What was counted.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CountedCommits {
    /// Calls for durability; `None` where the kernel refuses to count them.
    pub syncs: Option<SyncCount>,
    /// Why.
    pub refused: Option<String>,
}

/// What of a row is measured apart from its commits.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Beside {
    /// The calls that belong to no commit.
    pub rest: CallFigures,
    /// How many calls for durability the commits make.
    pub counted: CountedCommits,
}

/// Makes the commits with a clock, and closes these connections, in this order.
/// # Errors
/// What SQLite or the system said.
pub fn measure(
    plan: &TransactionPlan,
    closes: &[u32],
    setting: &CommitSetting,
    order: OrderChoice,
    directory: &Path,
) -> Result<CommitFigures, ReplayError> {
    let found = ask(plan, closes, setting, Some(order), directory)?;
    Ok(CommitFigures {
        times_ns: in_order(plan, &found.times_ns),
        closes_ns: found.closes_ns,
        device_bytes: found.device.map(|device| device.written_bytes),
        version: found.version,
    })
}

/// Makes them once more, to count calls: that takes time, and none is measured.
/// # Errors
/// As [`measure`].
pub fn count(
    plan: &TransactionPlan,
    closes: &[u32],
    setting: &CommitSetting,
    directory: &Path,
) -> Result<CountedCommits, ReplayError> {
    let found = ask(plan, closes, setting, None, directory)?;
    Ok(CountedCommits { syncs: found.syncs, refused: found.syncs_refused })
}

/// `order`: when commits are made that are measured; `None` where calls are counted.
fn ask(
    plan: &TransactionPlan,
    closes: &[u32],
    setting: &CommitSetting,
    order: Option<OrderChoice>,
    directory: &Path,
) -> Result<PageTransactionsFigures, ReplayError> {
    let durability = setting.durability.map(|word| ("WALDIO_DURABILITY".to_owned(), word.to_owned()));
    let workers = Workers::new(durability.into_iter().collect())?;
    let work_dir = plan::make_directory(directory)?;
    let counts = order.is_none();
    let task = PageTransactionsTask {
        libraries: setting.libraries.clone(),
        directory: work_dir.path().to_string_lossy().into_owned(),
        plan: plan.clone(),
        mode: setting.mode,
        synchronous: setting.synchronous.to_owned(),
        cache_size: None,
        order: order.unwrap_or(OrderChoice::Fast),
        sources: Sources::of(&Place::of(directory)),
        counts,
        settles: !counts,
        closes: closes.to_vec(),
    };
    Asker::new(&workers).ask(&task).map_err(|stop| match stop {
        Stop::Signal => ReplayError::Stopped,
        Stop::Full(what) => ReplayError::Full { place: directory.to_owned(), what },
        Stop::Failed(reason) => ReplayError::Sqlite(reason),
    })
}
