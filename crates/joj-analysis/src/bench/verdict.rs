//! What a result says of waldio on this disk: how it stands beside stock WAL with many writers and with one, and whether a log is worth it.
//!
//! Nothing is said that was not measured. A difference counts only where the intervals of the two speeds have no value in common, and the
//! ratio paired by round lies on the same side of 1.

use crate::bench::document::{Document, Limit};
use crate::bench::environment::SqliteBuild;
use crate::bench::key::{JournalMode, LogState, RowKey, Schema, Synchronous, Workload};
use crate::bench::many_writers::{ContendedKey, ContendedRow};
use crate::bench::promise::Reservation;
use crate::bench::row::Row;
use crate::statistics::Estimate;

/// How one speed stands to another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Beside {
    /// So many times as fast, more than 1.
    Faster(f64),
    /// So many times as fast, less than 1.
    Slower(f64),
    /// The intervals overlap.
    Unclear,
    /// Fewer than three runs: their interval tells of no difference.
    TooFewRuns,
    /// The disk's limit moved so far that nothing is compared ([pairs](crate::bench::pairs)).
    DiskMoved,
}

impl Beside {
    /// How `ours` stands to `stock`; `paired` is their ratio by round.
    pub fn of(ours: &Estimate, stock: &Estimate, paired: Option<Estimate>) -> Beside {
        if ours.has_few_samples() || stock.has_few_samples() {
            return Beside::TooFewRuns;
        }
        let Some(ratio) = paired else { return Beside::DiskMoved };
        if ours.overlaps(stock) {
            return Beside::Unclear;
        }
        if ours.median > stock.median && ratio.low > 1.0 {
            Beside::Faster(ratio.median)
        } else if ours.median < stock.median && ratio.high < 1.0 {
            Beside::Slower(ratio.median)
        } else {
            Beside::Unclear
        }
    }

    /// True where there is something to gain.
    pub fn is_faster(self) -> bool {
        matches!(self, Beside::Faster(_))
    }
}

/// The most writers that were measured with stock and with waldio.
#[derive(Debug, Clone, PartialEq)]
pub struct Contest<'a> {
    /// Which row, waldio's.
    pub key: &'a ContendedKey,
    /// Commits a second of waldio beside stock WAL.
    pub speed: Beside,
    /// Longest wait of any run for a COMMIT: stock, waldio, in nanoseconds.
    pub longest_wait_ns: [u64; 2],
}

/// An INSERT of one writer through waldio beside one on stock WAL.
#[derive(Debug, Clone, PartialEq)]
pub struct OneWriter<'a> {
    /// The build of SQLite.
    pub build: Option<&'a SqliteBuild>,
    /// State of the log.
    pub log: LogState,
    /// Transactions a second of waldio beside stock WAL.
    pub speed: Beside,
}

/// What a result says.
#[derive(Debug, Clone, PartialEq)]
pub struct Findings<'a> {
    /// Why a durable write is none there; absent on a disk.
    pub reservation: Option<Reservation>,
    /// What the disk can do at best.
    pub limit: Option<&'a Limit>,
    /// Many writers; absent where none were measured in both modes.
    pub many_writers: Option<Contest<'a>>,
    /// One writer, for each build of SQLite; empty where none was measured in both modes.
    pub one_writer: Vec<OneWriter<'a>>,
    /// An INSERT in DELETE mode beside one in stock WAL; absent where one was not measured.
    pub delete_mode: Option<Beside>,
}

/// What `document` says; `None` where no transaction of SQLite's was measured in WAL mode, by itself or beside others.
pub fn findings(document: &Document) -> Option<Findings<'_>> {
    if document.rows.is_empty() && document.contended.is_empty() {
        return None;
    }
    let many =
        document.contended.iter().filter(|row| row.key.writers > 1).filter_map(|row| contest(document, row));
    let many = many.max_by_key(|contest| (contest.key.synchronous == Synchronous::Full, contest.key.writers));
    let mut one_writer = alone(document);
    if one_writer.is_empty() {
        let single = document.contended.iter().filter(|row| row.key.writers == 1);
        one_writer.extend(single.filter_map(|row| contest(document, row)).map(|contest| OneWriter {
            build: build(document, &contest.key.library),
            log: LogState::Steady,
            speed: contest.speed,
        }));
    }
    let environment = &document.environment;
    Some(Findings {
        reservation: Reservation::of(&environment.filesystem, environment.device.as_ref()),
        limit: document.best_limit(),
        many_writers: many,
        one_writer,
        delete_mode: document
            .rows
            .iter()
            .filter(|row| row.key.mode == JournalMode::Delete)
            .find_map(delete_mode(document)),
    })
}

fn build<'a>(document: &'a Document, name: &str) -> Option<&'a SqliteBuild> {
    document.builds.iter().find(|build| build.name == name)
}

/// How a row of waldio with FULL stands to its row of stock.
fn contest<'a>(document: &'a Document, row: &'a ContendedRow) -> Option<Contest<'a>> {
    let wanted = row.key.stock_wal();
    let is_sound = |row: &&ContendedRow| row.failure.is_none();
    let stock =
        document.contended.iter().find(|other| other.key == wanted).filter(is_sound)?.summary.as_ref()?;
    let ours =
        Some(row).filter(is_sound).filter(|row| row.key.mode == JournalMode::Waldio)?.summary.as_ref()?;
    Some(Contest {
        key: &row.key,
        speed: Beside::of(&ours.commits_per_s, &stock.commits_per_s, ours.versus_stock_wal),
        longest_wait_ns: [stock.latency.max_ns, ours.latency.max_ns],
    })
}

fn is_plain_insert(key: &RowKey) -> bool {
    (key.workload, key.schema, key.synchronous) == (Workload::Insert, Schema::Waldio, Synchronous::Full)
}

fn beside(document: &Document, row: &Row) -> Option<Beside> {
    let wanted = row.key.stock_wal();
    let is_sound = |row: &&Row| row.failure.is_none();
    let stock = document.rows.iter().find(|other| other.key == wanted).filter(is_sound)?.summary.as_ref()?;
    let ours = Some(row).filter(is_sound)?.summary.as_ref()?;
    Some(Beside::of(&ours.transactions_per_s, &stock.transactions_per_s, ours.versus_stock_wal))
}

/// One for each build: with a log in use where that was measured, else with a new one.
fn alone(document: &Document) -> Vec<OneWriter<'_>> {
    let rows = || {
        document.rows.iter().filter(|row| is_plain_insert(&row.key) && row.key.mode == JournalMode::Waldio)
    };
    let mut found: Vec<(&str, OneWriter<'_>)> = Vec::new();
    for log in [LogState::Steady, LogState::Fresh] {
        for row in rows().filter(|row| row.key.log == log) {
            let is_told = found.iter().any(|(name, _)| *name == row.key.library);
            if let Some(speed) = beside(document, row).filter(|_| !is_told) {
                let build = build(document, &row.key.library);
                found.push((&row.key.library, OneWriter { build, log, speed }));
            }
        }
    }
    found.into_iter().map(|(_, alone)| alone).collect()
}

fn delete_mode(document: &Document) -> impl FnMut(&Row) -> Option<Beside> {
    |row| if is_plain_insert(&row.key) { beside(document, row) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::document::tests::{contended, document, study};
    use crate::bench::row::tests::{key, row};
    use crate::bench::run::Latency;

    fn with_speeds(stock: &[u64], ours: &[u64]) -> Document {
        let mut rows = vec![
            row(key(JournalMode::Wal, LogState::Steady), stock),
            row(key(JournalMode::Waldio, LogState::Steady), ours),
        ];
        crate::bench::row::summarise(&mut rows, &[Latency::default(); 2]);
        Document { rows, ..document() }
    }

    fn speed(stock: &[u64], ours: &[u64]) -> Beside {
        findings(&with_speeds(stock, ours)).unwrap().one_writer[0].speed
    }

    #[test]
    fn only_intervals_apart_are_a_difference() {
        assert!(
            matches!(speed(&[500, 510, 490], &[900, 910, 890]), Beside::Faster(ratio) if (ratio - 1.8).abs() < 0.1)
        );
        assert!(matches!(speed(&[900, 910, 890], &[500, 510, 490]), Beside::Slower(_)));
        // In each round 10 % faster, and yet the two intervals have speeds in common.
        assert_eq!(speed(&[500, 600, 700], &[550, 660, 770]), Beside::Unclear);
        assert_eq!(speed(&[500, 510], &[900, 910]), Beside::TooFewRuns);
    }

    #[test]
    fn where_the_disk_moved_nothing_is_said() {
        let mut moved = with_speeds(&[500, 510, 490], &[900, 910, 890]);
        moved.rows[1].summary.as_mut().unwrap().versus_stock_wal = None;
        assert_eq!(findings(&moved).unwrap().one_writer[0].speed, Beside::DiskMoved);
    }

    #[test]
    fn failed_rows_and_what_was_not_measured_are_left_out() {
        let mut failed = with_speeds(&[500, 510, 490], &[900, 910, 890]);
        failed.rows[0].failure = Some("a row is lost".to_owned());
        let found = findings(&failed).unwrap();
        assert_eq!((found.one_writer, found.many_writers, found.delete_mode), (vec![], None, None));
        assert_eq!(findings(&study()), None);
    }

    #[test]
    fn the_most_writers_speak_and_a_log_in_use_does() {
        let mut many = contended();
        many.contended.extend(contended().contended.into_iter().map(|mut row| {
            row.key.writers = 1;
            row
        }));
        let found = findings(&many).unwrap();
        let contest = found.many_writers.unwrap();
        assert_eq!((contest.key.writers, contest.speed.is_faster()), (2, true));
        assert_eq!(found.one_writer.len(), 1, "one writer among the many is one writer");
        let mut both = with_speeds(&[500, 510, 490], &[500, 510, 490]);
        both.rows.extend(document().rows);
        for row in &mut both.rows {
            row.key.library = "system".to_owned();
        }
        let found = findings(&both).unwrap();
        assert_eq!(found.one_writer.len(), 1);
        assert_eq!((found.one_writer[0].log, found.one_writer[0].speed), (LogState::Steady, Beside::Unclear));
    }

    #[test]
    fn delete_mode_stands_beside_a_new_log() {
        let mut rows = vec![
            row(key(JournalMode::Wal, LogState::Fresh), &[500, 510, 490]),
            row(key(JournalMode::Delete, LogState::None), &[100, 101, 99]),
        ];
        crate::bench::row::summarise(&mut rows, &[Latency::default(); 2]);
        let found = Document { rows, ..document() };
        assert!(matches!(findings(&found).unwrap().delete_mode, Some(Beside::Slower(ratio)) if ratio < 0.21));
    }
}
