//! The configurations, made ready: the plan that each is a replay of, or why it cannot be had.

use std::path::Path;
use std::sync::Arc;

use joj_analysis::bench::key::{JournalMode, Word};
use joj_analysis::recording::Recording;
use joj_analysis::recording::page_transactions::PageTransactions;
use joj_analysis::recording::page_transactions::derive::derive;
use joj_analysis::recording::page_transactions::plan::TransactionPlan;
use joj_analysis::recording::whatif::classes::named_otherwise::NamedOtherwise;
use joj_analysis::recording::whatif::classes::{self, CACHE_PATTERN, ClassError, ClassPaths, FileClass};
use joj_analysis::recording::whatif::commit_calls::CommitCalls;
use joj_analysis::recording::whatif::configuration::Configuration;
use joj_analysis::recording::whatif::variants::{with_files_at, without_durable_writes, without_syncs_of};

use crate::command_line::replay::OrderChoice;
use crate::command_line::whatif::WhatifOptions;
use crate::machine::proc::clock::pause_until_second;
use crate::replay::error::ReplayError;
use crate::replay::page_transactions::libraries;
use crate::replay::plan::Plan;
use crate::replay::room;
use crate::whatif::call_replay::{InMemory, bytes_needed};
use crate::whatif::commit_replay::{Beside, CommitSetting};
use crate::whatif::memory::{self, IN_REPLAY};

/// Variables with which waldio's commits are not as durable as the rows say.
const OF_DURABILITY: [&str; 3] = ["WALDIO_DURABILITY", "WALDIO_GROUP", "WALDIO_NO_SYNC"];

/// Why rows of classes cannot be had of a recording without names. What is left of them may name a cache, but no document in a directory
/// of caches, and nothing that has to stay permanent.
const NAMES_HIDDEN: &str = "the names in it are hidden (`--hide-names`), and by them files are told apart; record the program without that";

/// What a configuration is a replay of.
#[derive(Debug)]
pub enum RowSetting {
    /// All calls.
    Calls {
        /// What is to be done.
        plan: Arc<Plan>,
        /// Where.
        in_memory: InMemory,
    },
    /// Commits, and the other calls as recorded.
    Commits(CommitSetting),
}

/// The commits of the recording.
#[derive(Debug)]
pub struct Commits {
    /// As they are in the recording.
    pub found: PageTransactions,
    /// As SQLite makes them.
    pub plan: TransactionPlan,
    /// Their calls.
    pub calls: CommitCalls,
    /// All other calls.
    pub rest: Plan,
}

/// All that is measured.
#[derive(Debug)]
pub struct WhatifSettings {
    /// When calls and commits are made.
    pub order: OrderChoice,
    /// It is a row in the emulated machine. Each replay begins with a second there: how long joj took to make it ready would show in the
    /// machine's figures.
    pub alone: bool,
    /// The recording as it is.
    pub recorded: Arc<Plan>,
    /// Its commits, or why there are none.
    pub commits: Result<Commits, String>,
    /// The rows, in the order of the table.
    pub rows: Vec<(Configuration, Result<RowSetting, String>)>,
    /// Of the one row with commits, what was measured apart from them; `None`: it is measured with them.
    pub beside: Option<Beside>,
    has_caches: bool,
}

impl WhatifSettings {
    /// Those of a recording, measured in a directory.
    pub fn of(recording: Recording, options: &WhatifOptions, directory: &Path) -> Self {
        let order = if options.think_time { OrderChoice::Dependent } else { OrderChoice::Fast };
        let commits = commits(&recording, order, directory)
            .map_err(|error| error.where_emulated(options.row.alone).to_string());
        let recorded = Arc::new(Plan::of(recording, None));
        let is_wanted = |configuration: &Configuration| {
            *configuration == Configuration::Recorded && !options.row.alone
                || options.only.is_empty()
                || options.only.contains(configuration)
        };
        let caches = classes::of(&recorded.recording, FileClass::Cache, &options.classes);
        let mut settings = Self {
            order,
            alone: options.row.alone,
            commits,
            rows: Vec::new(),
            beside: None,
            has_caches: !caches.is_ok_and(|caches| caches.is_empty()),
            recorded,
        };
        for configuration in Configuration::ALL.iter().copied().filter(is_wanted) {
            let setting = settings.setting(configuration, options);
            settings.rows.push((configuration, setting));
        }
        settings
    }

    /// What a row gives up of durability.
    pub fn gives_up(&self, configuration: Configuration) -> &'static str {
        let commits = self.commits.as_ref().map_or(&[][..], |commits| &commits.found.commits);
        let across = configuration.gives_up_across_databases().filter(|_| {
            // A log makes each database's part durable by itself.
            commits.iter().any(|commit| commit.parts.len() > 1)
        });
        let alone = || match self.has_caches {
            true => configuration.gives_up(),
            false => configuration.gives_up_without_caches(),
        };
        across.unwrap_or_else(alone)
    }

    /// Takes what was measured apart from the row's commits, or why that cannot be had.
    pub fn take_beside(&mut self, found: Result<Beside, String>) {
        match found {
            Ok(beside) => self.beside = Some(beside),
            Err(reason) => self.rows.iter_mut().for_each(|(_, setting)| *setting = Err(reason.clone())),
        }
    }

    /// Waits for the moment at which a replay may begin.
    pub fn align(&self) {
        if self.alone {
            pause_until_second();
        }
    }

    fn setting(&self, configuration: Configuration, options: &WhatifOptions) -> Result<RowSetting, String> {
        let recording = &self.recorded.recording;
        let on_disk = |plan: Arc<Plan>| RowSetting::Calls { plan, in_memory: InMemory::Nothing };
        if configuration.is_by_names()
            && recording.header.recording.as_ref().is_some_and(|facts| facts.names_hidden)
        {
            return Err(NAMES_HIDDEN.to_owned());
        }
        match configuration {
            Configuration::Recorded => Ok(on_disk(Arc::clone(&self.recorded))),
            Configuration::NoSync => {
                let mut plan = Plan::of(without_durable_writes(recording), None);
                plan.left_out = recording.calls.iter().map(|call| call.kind.is_sync()).collect();
                Ok(on_disk(Arc::new(plan)))
            }
            Configuration::AllInMemory => in_memory(Arc::clone(&self.recorded), InMemory::All),
            Configuration::DatabasesInMemory => {
                self.class(classes::databases(recording), || "there is no SQLite database in it".to_owned())
            }
            Configuration::CachesInMemory => self
                .class(classes::of(recording, FileClass::Cache, &options.classes), || {
                    no_file(recording, FileClass::Cache, options)
                }),
            Configuration::CachesNoSync => {
                let caches = classes::of(recording, FileClass::Cache, &options.classes);
                let caches = caches.map_err(|error| error.to_string())?;
                if caches.is_empty() {
                    return Err(no_file(recording, FileClass::Cache, options));
                }
                Ok(on_disk(Arc::new(without_syncs(recording, &caches))))
            }
            Configuration::ByClass => self.by_class(options),
            Configuration::Wal => self.commits(options, JournalMode::Wal, "full", None),
            Configuration::Normal => self.commits(options, JournalMode::Wal, "normal", None),
            Configuration::Waldio => self.commits(options, JournalMode::Waldio, "full", Some("full")),
            Configuration::Bounded => self.commits(options, JournalMode::Waldio, "full", Some("bounded")),
        }
    }

    /// Permanent files as recorded, caches without syncs, temporary files in memory.
    fn by_class(&self, options: &WhatifOptions) -> Result<RowSetting, String> {
        let recording = &self.recorded.recording;
        let of = |class| classes::of(recording, class, &options.classes).map_err(|error| error.to_string());
        let (caches, temporary) = (of(FileClass::Cache)?, of(FileClass::Temporary)?);
        if temporary.is_empty() {
            return Err(no_file(recording, FileClass::Temporary, options));
        }
        let mut plan = without_syncs(recording, &caches);
        // A path that is elsewhere is the same call: those that are left out stay the same.
        let moved = with_files_at(&plan.recording, &temporary, IN_REPLAY);
        let left_out = std::mem::take(&mut plan.left_out);
        plan = Plan::of(moved, None);
        plan.left_out = left_out;
        in_memory(Arc::new(plan), InMemory::Some)
    }

    /// The files of a class in memory. `none`: what to say where it has none.
    fn class(
        &self,
        found: Result<ClassPaths, ClassError>,
        none: impl FnOnce() -> String,
    ) -> Result<RowSetting, String> {
        let found = found.map_err(|error| error.to_string())?;
        if found.is_empty() {
            return Err(none());
        }
        let moved = with_files_at(&self.recorded.recording, &found, IN_REPLAY);
        in_memory(Arc::new(Plan::of(moved, None)), InMemory::Some)
    }

    fn commits(
        &self,
        options: &WhatifOptions,
        mode: JournalMode,
        synchronous: &'static str,
        durability: Option<&'static str>,
    ) -> Result<RowSetting, String> {
        self.commits.as_ref().map_err(Clone::clone)?;
        let without = "or leave its rows out with --only";
        let set = OF_DURABILITY.into_iter().find(|name| std::env::var_os(name).is_some());
        if let Some(name) = set.filter(|_| durability.is_some()) {
            return Err(format!(
                "{name} is set: it changes what a COMMIT of waldio is worth, which the rows say themselves; unset it, {without}"
            ));
        }
        let libraries = libraries(&options.sqlite, options.waldio.as_deref(), mode, without);
        let libraries = libraries.map_err(|error| error.to_string())?;
        Ok(RowSetting::Commits(CommitSetting { libraries, mode, synchronous, durability }))
    }
}

/// All calls but those that make files of a class durable.
fn without_syncs(recording: &Recording, class: &ClassPaths) -> Plan {
    let (changed, left_out) = without_syncs_of(recording, class);
    Plan { left_out, ..Plan::of(changed, None) }
}

/// What to say where no file is of a class.
fn no_file(recording: &Recording, class: FileClass, options: &WhatifOptions) -> String {
    let own = options.classes.iter().filter(|(of, _)| *of == class);
    let mut patterns: Vec<&str> = own.map(|(_, pattern)| pattern.as_str()).collect();
    let what = if class == FileClass::Cache { "a cache" } else { class.word() };
    if class == FileClass::Cache && patterns.is_empty() {
        patterns.push(CACHE_PATTERN);
    }
    match NamedOtherwise::find(recording, class, &options.classes) {
        Ok(named) => named.told(&patterns, what, class),
        Err(error) => error.to_string(),
    }
}

/// Looks now whether there is such a place, and not after a minute.
fn in_memory(plan: Arc<Plan>, in_memory: InMemory) -> Result<RowSetting, String> {
    memory::directory(bytes_needed(&plan, in_memory), "the files")?;
    Ok(RowSetting::Calls { plan, in_memory })
}

fn commits(recording: &Recording, order: OrderChoice, directory: &Path) -> Result<Commits, ReplayError> {
    let found = derive(recording).map_err(|error| ReplayError::Sqlite(error.to_string()))?;
    let plan = match order {
        OrderChoice::Fast => TransactionPlan::overlapping_as_recorded(&found),
        _ => TransactionPlan::of(&found),
    };
    let plan = plan.map_err(|error| ReplayError::Sqlite(error.to_string()))?;
    room::check(directory, plan.database_bytes(), "the recorded databases")?;
    let calls = CommitCalls::of(recording, &found, &plan);
    let mut rest = Plan::of(recording.clone(), None);
    rest.left_out = calls.is_replaced.clone();
    Ok(Commits { found, plan, calls, rest })
}
