//! Which cell of a result a paper's value is held against.

use serde::{Deserialize, Serialize};

use crate::bench::key::{JournalMode, LogState, Schema, Synchronous};
use crate::filesystem::Filesystem;
use crate::lab::cell::{Cell, CellOrder, FILE_MIB, Feature, Recorder, Store, SyncCall, Task};

/// Fields of a cell that must be as named. Of those that are not named, feature, journal device, `synchronous`, atomic
/// writes, directory syncs, waldio's options, threads, size of the file, recording, range, `compat`, order and recorder must be the ordinary
/// ones, so that no row takes its value
/// from a variant; the others may be anything.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Selector {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filesystem: Option<Filesystem>,
    /// What it is made or mounted with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feature: Option<Feature>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// The external journal's device; an empty name is a journal inside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub journal_device: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Task>,
    /// Journal mode, or waldio; `side` in files of version 1.
    #[serde(default, alias = "side", skip_serializing_if = "Option::is_none")]
    pub mode: Option<JournalMode>,
    /// `PRAGMA synchronous`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub synchronous: Option<Synchronous>,
    /// The call that asks for durability.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync_call: Option<SyncCall>,
    /// The table that transactions touch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Schema>,
    /// State of the log at the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<LogState>,
    /// With F2FS's atomic writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch_atomic: Option<bool>,
    /// With syncs of a rollback journal's directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory_sync: Option<bool>,
    /// waldio's options, in their order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waldio_options: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
    /// MiB of the file that is overwritten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_mib: Option<u32>,
    /// Transactions that the clock covers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transactions: Option<u64>,
    /// Who keeps the rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<Store>,
    /// The name of the recording that is replayed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recording: Option<String>,
    /// The range of a probe's records, MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range_mib: Option<u64>,
    /// With Mobibench's reading of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compat: Option<bool>,
    /// When the recording's calls are made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<CellOrder>,
    /// Who records what is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorder: Option<Recorder>,
}

/// True where nothing else is asked for, or this.
fn is<T: PartialEq>(wanted: Option<&T>, found: &T) -> bool {
    wanted.is_none_or(|wanted| wanted == found)
}

impl Selector {
    /// What `self` names, and for the rest what `general` does.
    #[must_use]
    pub fn over(&self, general: &Selector) -> Selector {
        let (own, general) = (self.clone(), general.clone());
        Selector {
            filesystem: own.filesystem.or(general.filesystem),
            feature: own.feature.or(general.feature),
            device: own.device.or(general.device),
            journal_device: own.journal_device.or(general.journal_device),
            task: own.task.or(general.task),
            mode: own.mode.or(general.mode),
            synchronous: own.synchronous.or(general.synchronous),
            sync_call: own.sync_call.or(general.sync_call),
            schema: own.schema.or(general.schema),
            log: own.log.or(general.log),
            batch_atomic: own.batch_atomic.or(general.batch_atomic),
            directory_sync: own.directory_sync.or(general.directory_sync),
            waldio_options: own.waldio_options.or(general.waldio_options),
            threads: own.threads.or(general.threads),
            file_mib: own.file_mib.or(general.file_mib),
            transactions: own.transactions.or(general.transactions),
            store: own.store.or(general.store),
            recording: own.recording.or(general.recording),
            range_mib: own.range_mib.or(general.range_mib),
            compat: own.compat.or(general.compat),
            order: own.order.or(general.order),
            recorder: own.recorder.or(general.recorder),
        }
    }

    /// True where `cell` is one that it names.
    pub fn matches(&self, cell: &Cell) -> bool {
        let journal_device = self.journal_device.as_deref().unwrap_or_default();
        is(self.filesystem.as_ref(), &cell.filesystem)
            && cell.feature == self.feature.unwrap_or(Feature::None)
            && is(self.device.as_ref(), &cell.device)
            && cell.journal_device.as_deref().unwrap_or_default() == journal_device
            && is(self.task.as_ref(), &cell.task)
            && is(self.mode.as_ref(), &cell.mode)
            && cell.synchronous == self.synchronous.unwrap_or(Synchronous::Full)
            && is(self.sync_call.as_ref(), &cell.sync_call)
            && is(self.schema.as_ref(), &cell.schema)
            && is(self.log.as_ref(), &cell.log)
            && cell.batch_atomic == self.batch_atomic.unwrap_or(false)
            && cell.directory_sync == self.directory_sync.unwrap_or(true)
            && cell.waldio_options == self.waldio_options.as_deref().unwrap_or_default()
            && cell.threads == self.threads.unwrap_or(1)
            && cell.file_mib == self.file_mib.unwrap_or(FILE_MIB)
            && is(self.transactions.as_ref(), &cell.transactions)
            && cell.store == self.store.unwrap_or(Store::Sqlite)
            && self.recording == cell.recording
            && self.range_mib == cell.range_mib
            && cell.compat == self.compat.unwrap_or(false)
            && cell.order == self.order.unwrap_or_default()
            && cell.recorder == self.recorder.unwrap_or(Recorder::None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::report::facts::sample;

    fn selector(fields: serde_json::Value) -> Selector {
        serde_json::from_value(fields).unwrap()
    }

    #[test]
    fn named_fields_must_be_equal_and_the_narrower_names_win() {
        let table = selector(serde_json::json!({"filesystem": "ext4", "mode": "delete"}));
        let row = selector(serde_json::json!({"mode": "wal"}));
        let merged = row.over(&table);
        assert!(merged.matches(&sample::cell(JournalMode::Wal)));
        assert!(
            !merged.matches(&sample::cell(JournalMode::Delete))
                && !table.matches(&sample::cell(JournalMode::Wal))
        );
        let xfs = Cell { filesystem: Filesystem::Xfs, ..sample::cell(JournalMode::Wal) };
        assert!(!merged.matches(&xfs));
    }

    #[test]
    fn variants_match_only_where_they_are_named() {
        let plain = selector(serde_json::json!({"mode": "waldio"}));
        let ordinary = sample::cell(JournalMode::Waldio);
        let options = vec!["layout=embedded".to_owned()];
        let variants = [
            Cell { feature: Feature::FastCommit, ..ordinary.clone() },
            Cell { journal_device: Some("card".to_owned()), ..ordinary.clone() },
            Cell { synchronous: Synchronous::Normal, ..ordinary.clone() },
            Cell { waldio_options: options, ..ordinary.clone() },
            Cell { threads: 10, ..ordinary.clone() },
            Cell { file_mib: 64, ..ordinary.clone() },
            Cell { batch_atomic: true, ..ordinary.clone() },
            Cell { directory_sync: false, ..ordinary.clone() },
            Cell { recording: Some("app".to_owned()), ..ordinary.clone() },
            Cell { range_mib: Some(64), ..ordinary.clone() },
            Cell { compat: true, ..ordinary.clone() },
            Cell { order: CellOrder::Dependent, ..ordinary.clone() },
            Cell { recorder: Recorder::Bpf, ..ordinary.clone() },
            Cell { store: Store::Lsmvbt, ..ordinary.clone() },
        ];
        assert!(plain.matches(&ordinary));
        assert!(variants.iter().all(|cell| !plain.matches(cell)));
        let named = selector(serde_json::json!({"mode": "waldio", "waldio_options": ["layout=embedded"]}));
        assert!(named.matches(&variants[3]) && !named.matches(&ordinary));
        let outside = selector(serde_json::json!({"journal_device": "card"}));
        assert!(outside.matches(&variants[1]) && !outside.matches(&ordinary));
    }

    #[test]
    fn a_field_that_no_cell_has_is_refused() {
        let wrong = serde_json::from_value::<Selector>(serde_json::json!({"modes": "wal"}));
        assert!(wrong.unwrap_err().to_string().contains("modes"));
    }
}
