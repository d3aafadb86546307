//! Sequences that are delicate because several layers each know a part of what they do. Other acts come in between.

use super::{Actor, Kind, Maker};

impl Maker {
    /// One of them, by `who`.
    pub(super) fn phrase(&mut self, who: usize) {
        match self.chance.below(8) {
            0 | 1 => self.exclusive_rollback(who),
            2 => self.undone_spill(who),
            3 => self.refused_writer(who),
            4 => self.early_descriptors(who),
            5 => self.long_reader(who),
            6 => self.replaced_files(who),
            _ => self.wrapped_log(who),
        }
    }

    /// Now and then something else by somebody.
    fn others(&mut self, who: usize) {
        for _ in 0..self.chance.below(3) {
            let kind = *self.chance.pick(&[Kind::Keep, Kind::Change, Kind::Read]);
            let whom = if self.chance.below(2) == 0 { who } else { self.who() };
            self.act_of(kind, whom);
        }
    }

    fn all(&mut self, who: usize, statements: &[&str]) {
        for sql in statements {
            self.sql(who, (*sql).to_owned());
        }
    }

    /// No wal-index lock tells what an exclusive connection does.
    fn exclusive_rollback(&mut self, who: usize) {
        // Nobody else may have it open.
        let database = self.program.cast[who].database.clone();
        for other in 0..self.program.cast.len() {
            if other != who && self.program.cast[other].database == database {
                self.order(Actor::Connection(other), "close".to_owned());
            }
        }
        self.all(who, &["COMMIT", "PRAGMA cache_size = 2", "PRAGMA locking_mode = EXCLUSIVE"]);
        for _ in 0..2 + self.chance.below(3) {
            self.keep(who);
        }
        self.all(who, &["BEGIN", "UPDATE t SET c = replace(c, 'o', 'r')"]);
        let end = self.pick(&["ROLLBACK", "ROLLBACK", "ROLLBACK", "COMMIT"]);
        self.all(who, &[&end, "PRAGMA locking_mode = NORMAL", "SELECT count(*) FROM t"]);
        if self.chance.below(2) == 0 {
            self.others(who);
        }
        // Another process, if there is one: it knows nothing of what was undone.
        let count = self.program.cast.len();
        let process = self.program.cast[who].process;
        let elsewhere = |other: &usize| {
            let role = &self.program.cast[*other];
            role.database == database && role.process != process
        };
        let other = (0..count).find(elsewhere).unwrap_or_else(|| self.who());
        match self.chance.below(3) {
            0 => self.act_of(Kind::Change, other),
            _ => self.sql(other, "UPDATE t SET c = 'committed' || a".to_owned()),
        }
        self.keep(other);
        self.all(who, &["SELECT count(*), max(c) FROM t"]);
        let checkpoint = self.checkpoint();
        self.sql(who, checkpoint);
    }

    /// Frames in the file that the transaction took back itself.
    fn undone_spill(&mut self, who: usize) {
        self.all(who, &["PRAGMA cache_size = 2", "BEGIN"]);
        self.keep(who);
        self.all(who, &["SAVEPOINT s", "UPDATE t SET c = replace(c, 'o', 'r')", "ROLLBACK TO s"]);
        let change = self.change();
        self.all(who, &[&change, "COMMIT"]);
        let other = self.who();
        self.keep(other);
        self.keep(who);
    }

    /// The lock is refused, free again, and asked for by another one.
    fn refused_writer(&mut self, who: usize) {
        let other = self.who();
        self.all(who, &["BEGIN IMMEDIATE"]);
        self.all(other, &["BEGIN IMMEDIATE"]);
        self.keep(who);
        self.all(who, &["COMMIT"]);
        if self.chance.below(2) == 0 {
            let process = self.program.cast[who].process;
            self.order(Actor::Process(process), "sleep 1".to_owned());
        }
        self.all(who, &["BEGIN IMMEDIATE"]);
        self.others(who);
        self.all(who, &["COMMIT"]);
        self.keep(other);
    }

    /// A program closed its standard descriptors after it had opened its database.
    fn early_descriptors(&mut self, who: usize) {
        let process = self.program.cast[who].process;
        self.order(Actor::Connection(who), "close".to_owned());
        self.order(Actor::Connection(who), "open".to_owned());
        let closed = self.pick(&["standard", "stderr", "stderr"]);
        self.order(Actor::Process(process), closed);
        for _ in 0..3 {
            self.keep(who);
        }
        self.order(Actor::Process(process), "complain".to_owned());
        self.keep(who);
        let end = self.pick(&["kill", "kill", "complain"]);
        self.order(Actor::Process(process), end);
    }

    /// The log grows behind a reader, and is copied when that is gone.
    fn long_reader(&mut self, who: usize) {
        let other = self.who();
        self.all(other, &["BEGIN", "SELECT count(*) FROM t"]);
        for _ in 0..3 + self.chance.below(6) {
            self.act_of(Kind::Change, who);
            self.keep(who);
        }
        let checkpoint = self.checkpoint();
        self.all(who, &[&checkpoint]);
        self.all(other, &["SELECT count(*), max(c) FROM t", "COMMIT"]);
        self.all(who, &[&checkpoint]);
        self.keep(who);
    }

    /// The log is begun anew over its old frames, more than once.
    fn wrapped_log(&mut self, who: usize) {
        for _ in 0..2 + self.chance.below(2) {
            self.all(who, &["PRAGMA wal_checkpoint(RESTART)"]);
            self.keep(who);
            self.others(who);
            self.act_of(Kind::Change, who);
        }
        if self.chance.below(2) == 0 {
            let process = self.program.cast[who].process;
            self.order(Actor::Process(process), "kill".to_owned());
        }
    }

    /// Somebody has the old files open while others use the new ones at the same path.
    fn replaced_files(&mut self, who: usize) {
        let database = self.program.cast[who].database.clone();
        let of_it = |other: &usize| *other != who && self.program.cast[*other].database == database;
        let others: Vec<usize> = (0..self.program.cast.len()).filter(of_it).collect();
        for other in &others {
            self.order(Actor::Connection(*other), "close".to_owned());
        }
        let Some(other) = others.first().copied() else { return };
        self.all(
            who,
            &[
                "COMMIT",
                "PRAGMA locking_mode = NORMAL",
                "PRAGMA journal_mode = WAL",
                "SELECT count(*) FROM t",
            ],
        );
        self.order(Actor::World, format!("replace {database}"));
        self.keep(other);
        self.all(who, &["INSERT OR REPLACE INTO t VALUES (90, 90000, 'old')", "SELECT count(*) FROM t"]);
        self.keep(other);
        self.order(Actor::Connection(who), "close".to_owned());
        self.keep(other);
        self.keep(who);
    }
}
