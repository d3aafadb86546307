//! What befalls a process.

use super::{Engine, Stop, expected, heard};
use crate::generator::verdict::Kind;
use crate::real::refusal;

/// Calls that stock SQLite does not make, or does without, when the kernel says that they do not exist or are forbidden.
const OPTIONAL: [&str; 5] = ["cachestat", "flock", "fallocate", "renameat2", "pwritev2"];

impl Engine<'_> {
    pub(super) fn befall(&mut self, process: usize, words: &str) -> Result<(), Stop> {
        let words: Vec<&str> = words.split_whitespace().collect();
        match words[..] {
            ["kill"] => {
                self.stats.kills += 1;
                self.stock.kill(process);
                self.waldio.kill(process);
                for (who, role) in self.program.cast.iter().enumerate() {
                    if role.process == process {
                        self.waiting[who].clear();
                        self.past[who] = false;
                    }
                }
                return self.check();
            }
            ["fail", call, error, _] => {
                if !refusal::is_possible() {
                    return Ok(());
                }
                // SQLite itself goes on without them.
                self.compares &= OPTIONAL.contains(&call) && matches!(error, "EPERM" | "ENOSYS");
            }
            ["files" | "bytes", value] => self.compares &= value == "all",
            _ => {}
        }
        self.both(|side| side.ask(process, &words)).map(|_| ())
    }

    /// Ends every hardship that can be ended.
    pub(super) fn relieve(&mut self) -> Result<(), Stop> {
        self.stock.set_mode(0o755);
        self.waldio.set_mode(0o755);
        let mut ends: Vec<Vec<&str>> = Vec::new();
        ends.extend(
            ["bytes", "files"]
                .into_iter()
                .filter(|what| self.program.has(what))
                .map(|what| vec![what, "all"]),
        );
        if self.program.has("fail ") && refusal::is_possible() {
            ends.extend(refusal::CALLS.iter().map(|(call, ..)| vec!["fail", *call, "EPERM", "0"]));
        }
        for end in ends {
            for process in self.stock.started() {
                expected(self.stock.ask(process, &end))?;
            }
            for process in self.waldio.started() {
                heard(self.waldio.ask(process, &end))?;
            }
        }
        Ok(())
    }

    /// After a hardship: who can write on stock's side can write on waldio's.
    pub(super) fn probe(&mut self) -> Result<(), Stop> {
        const FIRST_ID: u64 = 1_000_000;
        // A write or a sync of the log that failed may end its use until it is closed.
        let closes = self.program.acts.iter().any(|act| act.to_string().contains(" EIO "));
        let count = self.program.cast.len();
        for who in 0..count {
            if closes {
                expected(self.stock.close(who))?;
                heard(self.waldio.close(who))?;
            }
        }
        for who in 0..count {
            for sql in ["ROLLBACK", "PRAGMA locking_mode = NORMAL", "SELECT count(*) FROM kept"] {
                expected(self.stock.sql(who, sql))?;
                heard(self.waldio.sql(who, sql))?;
            }
        }
        for who in 0..count {
            for id in (FIRST_ID..).take(2) {
                let sql = format!("INSERT INTO kept VALUES ({})", id + 10 * who as u64);
                let by_stock = expected(self.stock.sql(who, &sql))?;
                let by_waldio = heard(self.waldio.sql(who, &sql))?;
                if id == FIRST_ID && by_waldio.error.starts_with("error 8:") {
                    // What SQLite could not open for writing for a moment it keeps read-only, until it is opened anew.
                    heard(self.waldio.close(who))?;
                }
                if by_stock.error.is_empty() && !by_waldio.error.is_empty() && id > FIRST_ID {
                    let what =
                        format!("after all hardships ended: {sql}\nstock:  ok\nwaldio: {}", by_waldio.error);
                    return Err(Stop::Broken(Kind::StaysBroken, what));
                }
            }
        }
        Ok(())
    }
}
