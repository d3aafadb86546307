//! Which contended rows to measure: numbers of writers, and the two modes for each.

use joj_analysis::bench::contended::{ContendedKey, WriterKind};
use joj_analysis::bench::key::{JournalMode, Schema, Word};

/// Longest clock of the run that counts calls for durability, in nanoseconds.
const COUNTING_RUN_NS_MAX: u64 = 1_000_000_000;

/// What the command line chose.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contention {
    /// Numbers of writing threads.
    pub threads: Vec<u32>,
    /// Numbers of writing processes.
    pub processes: Vec<u32>,
    /// Schemas; empty for the usual one.
    pub schemas: Vec<Schema>,
    /// Modes; empty for both.
    pub modes: Vec<JournalMode>,
    /// How long the clock of a run goes, in nanoseconds.
    pub run_ns: u64,
    /// Least time of a flush, in nanoseconds; 0 for the device as it is.
    pub flush_delay_ns: u64,
}

impl Contention {
    /// Says what cannot be measured.
    /// # Errors
    /// What to choose instead.
    pub fn check(&self) -> Result<(), String> {
        if let Some(mode) = self.modes.iter().find(|mode| !mode.has_log()) {
            let word = mode.word();
            return Err(format!(
                "many writers are measured with `--modes wal,waldio`, not with {word}; leave it out"
            ));
        }
        if self.schemas.contains(&Schema::Mobibench) {
            let text =
                "many writers insert into one table, and mobibench has three; take `--schemas waldio,atc13`";
            return Err(text.to_owned());
        }
        Ok(())
    }

    /// The clock of the extra run that counts calls; none where every run counts them.
    pub fn counting_run_ns(&self) -> Option<u64> {
        (self.flush_delay_ns == 0).then(|| self.run_ns.min(COUNTING_RUN_NS_MAX))
    }

    /// The rows to measure with SQLite builds of these names, by table; stock and waldio are neighbours.
    pub fn groups(&self, libraries: &[String]) -> Vec<Vec<ContendedKey>> {
        let schemas = if self.schemas.is_empty() { &[Schema::Waldio][..] } else { &self.schemas };
        let mut groups = Vec::new();
        for library in libraries {
            for schema in schemas {
                for (kind, counts) in
                    [(WriterKind::Threads, &self.threads), (WriterKind::Processes, &self.processes)]
                {
                    groups.push(self.group(kind, counts, *schema, library));
                }
            }
        }
        groups.retain(|keys| !keys.is_empty());
        groups
    }

    fn group(&self, kind: WriterKind, counts: &[u32], schema: Schema, library: &str) -> Vec<ContendedKey> {
        let mut counts = counts.to_vec();
        counts.sort_unstable();
        counts.dedup();
        let mut keys = Vec::new();
        for writers in counts {
            for mode in [JournalMode::Wal, JournalMode::Waldio] {
                if self.modes.is_empty() || self.modes.contains(&mode) {
                    let library = library.to_owned();
                    let flush_delay_ns = self.flush_delay_ns;
                    keys.push(ContendedKey { kind, writers, schema, mode, flush_delay_ns, library });
                }
            }
        }
        keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_of_writers_is_measured_in_both_modes() {
        let contention =
            Contention { threads: vec![8, 1, 8], processes: vec![4], run_ns: 9, ..Contention::default() };
        let groups = contention.groups(&["system".to_owned()]);
        let shape = |keys: &[ContendedKey]| {
            keys.iter().map(|key| (key.kind, key.writers, key.mode)).collect::<Vec<_>>()
        };
        let threads = [
            (1, JournalMode::Wal),
            (1, JournalMode::Waldio),
            (8, JournalMode::Wal),
            (8, JournalMode::Waldio),
        ];
        assert_eq!(shape(&groups[0]), threads.map(|(writers, mode)| (WriterKind::Threads, writers, mode)));
        assert_eq!(shape(&groups[1]).len(), 2);
        assert!(groups.iter().all(|keys| keys.iter().all(|key| key.same_group(&keys[0]))));
        assert!(contention.check().is_ok());
    }

    #[test]
    fn what_cannot_be_measured_is_refused() {
        let of = |modes: &[JournalMode], schemas: &[Schema]| Contention {
            modes: modes.to_vec(),
            schemas: schemas.to_vec(),
            ..Contention::default()
        };
        assert!(of(&[JournalMode::Delete], &[]).check().unwrap_err().contains("delete"));
        assert!(of(&[], &[Schema::Mobibench]).check().unwrap_err().contains("atc13"));
    }

    #[test]
    fn a_slow_device_counts_in_every_run() {
        let slow = Contention { run_ns: 5_000_000_000, flush_delay_ns: 1, ..Contention::default() };
        assert_eq!(slow.counting_run_ns(), None);
        let fast = Contention { flush_delay_ns: 0, ..slow };
        assert_eq!(fast.counting_run_ns(), Some(COUNTING_RUN_NS_MAX));
    }
}
