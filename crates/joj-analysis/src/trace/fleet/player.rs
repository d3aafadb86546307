//! Plays a trace: one commit after the other, the checkpoints between them, a recovery.

use super::chance::{mixed, share, whole};
use super::plan::{FleetModel, FleetPlan, FleetTrace, Program};
use super::truth::FleetSums;
use super::work::{ProgramFile, ProgramNames, SqliteWork};
use crate::trace::attribution::attribute::Outcome;
use crate::trace::attribution::request::{SyncId, TransactionId, TransactionKind};
use crate::trace::texts::Texts;

const OUTLIER_FACTOR: f64 = 8.0;
/// How long a write takes without the regression.
const WRITE_NS: f64 = 100_000.0;
const BLOCK_BYTES: u64 = 4096;
/// After so many commits of a program with a log it copies that into the database.
const COMMITS_PER_CHECKPOINT: u64 = 16;
/// Of so many traces one begins with a recovery, and what that writes.
const RECOVERY_EVERY: u64 = 7;
const RECOVERY_BYTES: u64 = 8 * BLOCK_BYTES;

impl FleetTrace {
    /// Hands on everything that happens in it, and says what a report must say of it.
    /// # Errors
    /// Those of the sink.
    pub fn play<E>(
        &self,
        plan: &FleetPlan,
        sink: &mut dyn FnMut(&Outcome<'_>, &Texts) -> Result<(), E>,
    ) -> Result<(FleetSums, Texts), E> {
        let mut texts = Texts::default();
        let model = self.model();
        let names: Vec<_> =
            model.programs.iter().map(|program| ProgramNames::keep(program, &mut texts)).collect();
        let mut player = Player::of(self, plan, &names);
        let mut sink = |outcome: &Outcome<'_>| sink(outcome, &texts);
        if self.number.is_multiple_of(RECOVERY_EVERY) {
            player.recovery(&mut sink)?;
        }
        for number in 0..plan.commits {
            // The begin of the trace is the recovery's.
            let begun_ns = model.span_ns / (plan.commits + 1) * (number + 1);
            player.commit(begun_ns, &mut sink)?;
        }
        let sums = FleetSums { traces: 1, span_ns: model.span_ns, ..player.sums };
        Ok((sums, texts))
    }
}

struct Player<'a> {
    model: &'static FleetModel,
    /// Of each of the model's programs.
    names: &'a [ProgramNames],
    random: u64,
    /// Nanoseconds of a flush, on average.
    flush_ns: f64,
    /// By how much everything that is written is more.
    factor: f64,
    works: u64,
    syncs: u64,
    /// Bytes in the log of each program, and the commits that they are of.
    logs: Vec<(u64, u64)>,
    sums: FleetSums,
}

/// What receives everything that happens.
type PlaySink<'a, E> = dyn FnMut(&Outcome<'_>) -> Result<(), E> + 'a;

impl<'a> Player<'a> {
    fn of(trace: &FleetTrace, plan: &FleetPlan, names: &'a [ProgramNames]) -> Self {
        let model = trace.model();
        // The same for both versions: devices differ, and a comparison by pairs does not see it.
        let of_unit = 0.8 + 0.4 * share(mixed(plan.seed ^ mixed(trace.number / 2)));
        let slow = if trace.is_outlier { OUTLIER_FACTOR } else { 1.0 };
        Self {
            model,
            names,
            random: mixed(plan.seed.wrapping_add(mixed(trace.number + 1))),
            flush_ns: model.flush_us as f64 * 1e3 * of_unit * slow * trace.factor,
            factor: trace.factor,
            works: 0,
            syncs: 0,
            logs: vec![(0, 0); names.len()],
            sums: FleetSums::default(),
        }
    }

    fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed(self.random)
    }

    /// So many blocks, times the factor: by chance one more or less, so that the mean is right.
    fn blocks(&mut self, blocks: u64) -> u64 {
        let wanted = blocks as f64 * self.factor;
        let whole = whole(wanted);
        whole + u64::from(share(self.random()) < wanted - whole as f64)
    }

    fn flush_time(&mut self) -> u64 {
        let tail = if self.random().is_multiple_of(100) { 10.0 } else { 1.0 };
        whole(self.flush_ns * (0.7 + 0.6 * share(self.random())) * tail)
    }

    fn work(&mut self, kind: TransactionKind, which: usize, begun_ns: u64) -> SqliteWork<'a> {
        let id = TransactionId(self.works);
        self.works += 1;
        let program: &'static Program = &self.model.programs[which];
        SqliteWork { id, kind, program, names: &self.names[which], which: which as u64, begun_ns }
    }

    /// A program by chance: the number of its first place in the list.
    fn program(&mut self) -> usize {
        let programs = self.model.programs;
        let chosen = usize::try_from(self.random() % programs.len() as u64).unwrap_or(0);
        programs.iter().position(|program| program.name == programs[chosen].name).unwrap_or(chosen)
    }

    fn commit<E>(&mut self, begun_ns: u64, sink: &mut PlaySink<'_, E>) -> Result<(), E> {
        let which = self.program();
        let pages = 1 + self.random() % self.model.pages_max;
        let work = self.work(TransactionKind::Commit, which, begun_ns);
        let program = work.program;
        let data = self.blocks(if program.is_log { pages } else { 2 * pages + 1 }) * BLOCK_BYTES;
        let journal = self.blocks(program.journal_blocks) * BLOCK_BYTES;
        let write_ns = whole(WRITE_NS * self.factor);
        let mut time_ns = begun_ns;
        if data > 0 {
            self.sums.count_file(&work.names.journal_path, data);
            sink(&Outcome::Request(&work.write(ProgramFile::Journal, data, time_ns, time_ns + write_ns)))?;
            time_ns += write_ns;
        }
        if journal > 0 {
            sink(&Outcome::Request(&work.write_journal(journal, time_ns, time_ns + write_ns)))?;
            time_ns += write_ns;
        }
        time_ns = self.sync(&work, ProgramFile::Journal, program.journal_syncs, time_ns, sink)?;
        time_ns = self.sync(&work, ProgramFile::Database, program.database_syncs, time_ns, sink)?;
        if !program.is_log {
            sink(&Outcome::Note(&work.journal_ends(time_ns), Some(work.id)))?;
        }
        let syncs = program.journal_syncs + program.database_syncs;
        let transaction = work.transaction([data, journal], syncs, time_ns);
        sink(&Outcome::Transaction(&transaction))?;
        self.sums.count(program, &transaction);
        let (log_bytes, commits) = self.logs[which];
        self.logs[which] = (log_bytes + data, commits + 1);
        if program.is_log && commits + 1 == COMMITS_PER_CHECKPOINT {
            self.checkpoint(which, time_ns + 1_000_000, sink)?;
        }
        Ok(())
    }

    /// So many sync calls of a file, one flush in each. Returns when the last is over.
    fn sync<E>(
        &mut self,
        work: &SqliteWork<'_>,
        file: ProgramFile,
        calls: u64,
        begun_ns: u64,
        sink: &mut PlaySink<'_, E>,
    ) -> Result<u64, E> {
        let mut time_ns = begun_ns;
        for _ in 0..calls {
            let flush_ns = self.flush_time();
            sink(&Outcome::Request(&work.flush(time_ns, flush_ns)))?;
            sink(&Outcome::Sync(&work.sync(SyncId(self.syncs), file, time_ns, flush_ns)))?;
            self.sums.count_flush(flush_ns);
            self.syncs += 1;
            time_ns += flush_ns;
        }
        Ok(time_ns)
    }

    /// Half of what is in the log: pages that were changed twice are written once.
    fn checkpoint<E>(&mut self, which: usize, begun_ns: u64, sink: &mut PlaySink<'_, E>) -> Result<(), E> {
        let work = self.work(TransactionKind::Checkpoint, which, begun_ns);
        let (log_bytes, _) = std::mem::take(&mut self.logs[which]);
        let data = (log_bytes / BLOCK_BYTES).div_ceil(2) * BLOCK_BYTES;
        sink(&Outcome::Request(&work.write(ProgramFile::Database, data, begun_ns, begun_ns + 90_000)))?;
        let ended_ns = self.sync(&work, ProgramFile::Database, 1, begun_ns + 100_000, sink)?;
        sink(&Outcome::Transaction(&work.transaction([data, 0], 1, ended_ns)))?;
        self.sums.checkpoint_bytes += data;
        self.sums.count_file(&work.names.database_path, data);
        Ok(())
    }

    /// What a killed program left: it belongs to no commit.
    fn recovery<E>(&mut self, sink: &mut PlaySink<'_, E>) -> Result<(), E> {
        let work = self.work(TransactionKind::Recovery, 0, 1);
        sink(&Outcome::Request(&work.write(ProgramFile::Database, RECOVERY_BYTES, 1, 90_000)))?;
        sink(&Outcome::Transaction(&work.transaction([RECOVERY_BYTES, 0], 0, 100_000)))?;
        self.sums.count_file(&work.names.database_path, RECOVERY_BYTES);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn sums(number: u64, plan: &FleetPlan) -> FleetSums {
        let mut nothing = |_: &Outcome<'_>, _: &Texts| Ok::<(), Infallible>(());
        let trace = FleetTrace::numbered(number, plan);
        trace.play(plan, &mut nothing).unwrap_or_else(|never| match never {}).0
    }

    #[test]
    fn the_second_version_writes_as_much_more_as_was_planted() {
        let plan = FleetPlan { seed: 3, commits: 20_000, regression: 1.25 };
        let [one, two] = [0, 1].map(|number| sums(number, &plan));
        let ratio = two.written_bytes as f64 / one.written_bytes as f64;
        assert!((ratio - 1.25).abs() < 0.02, "{ratio}");
        assert_eq!((one.commits, sums(0, &plan)), (20_000, one.clone()), "the same at each call");
        let same = FleetPlan { regression: 1.0, ..plan };
        assert_eq!(sums(0, &same), one);
    }

    #[test]
    fn files_have_what_commits_and_checkpoints_write_and_a_recovery() {
        let plan = FleetPlan { seed: 3, commits: 500, regression: 1.0 };
        for number in 0..10 {
            let sums = sums(number, &plan);
            let recovery = if number.is_multiple_of(RECOVERY_EVERY) { RECOVERY_BYTES } else { 0 };
            let data = sums.written_bytes - sums.journal_of_journal_bytes;
            assert_eq!(sums.files.values().sum::<u64>(), data + sums.checkpoint_bytes + recovery, "{number}");
        }
    }
}
