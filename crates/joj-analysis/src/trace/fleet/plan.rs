//! Which traces a fleet has: their device models, versions and programs, each by its number.

use super::chance::mixed;
use crate::trace::event::DeviceNumber;

/// Versions of the application.
pub const VERSIONS: [&str; 2] = ["1.0", "2.0"];
/// Of so many devices one is slow.
const OUTLIER_EVERY: u64 = 97;
/// Of so many traces one has neither `device_id` nor `app_version`.
const UNLABELLED_EVERY: u64 = 41;
/// `st_dev` of the files.
pub const FILES: DeviceNumber = DeviceNumber((254 << 20) + 1);
const HOUR_NS: u64 = 3_600_000_000_000;

/// A device model and what it is used for.
pub struct FleetModel {
    pub name: &'static str,
    /// How long a flush takes, microseconds.
    pub flush_us: u64,
    /// Transactions change one page to so many.
    pub pages_max: u64,
    /// How long each of its traces is.
    pub span_ns: u64,
    /// What runs on it; one that is named twice commits twice as often. No median is at the border of two programs.
    pub programs: &'static [Program],
}

/// Some have rollback journals alone, some logs alone, and their transactions differ.
pub static MODELS: [FleetModel; 5] = [
    model("phone-a", 900, 4, 24, &[MAIL, MAIL, CHAT, BROWSER, MAPS]),
    model("phone-b", 2_500, 4, 24, &[MAIL, MAIL, CHAT, BROWSER, MAPS]),
    model("car-a", 6_000, 8, 12, &[MAIL, MAIL, MAPS]),
    model("car-b", 1_600, 6, 12, &[CHAT, MAPS, MAPS]),
    model("server-a", 300, 12, 48, &[MAIL, MAIL, BROWSER]),
];

const fn model(
    name: &'static str,
    flush_us: u64,
    pages_max: u64,
    hours: u64,
    programs: &'static [Program],
) -> FleetModel {
    FleetModel { name, flush_us, pages_max, span_ns: hours * HOUR_NS, programs }
}

/// A program and how it uses SQLite.
pub struct Program {
    pub name: &'static str,
    pub is_log: bool,
    /// What ends a rollback journal: deleted, or cut.
    pub deletes: bool,
    /// Sync calls of the journal or log.
    pub journal_syncs: u64,
    /// Sync calls of the database.
    pub database_syncs: u64,
    pub call: &'static str,
    /// Blocks that the filesystem's journal writes for SQLite's.
    pub journal_blocks: u64,
}

const MAIL: Program = program("mail", true, false, [1, 0], "fdatasync", 1);
const CHAT: Program = program("chat", false, true, [2, 1], "fsync", 4);
const BROWSER: Program = program("browser", true, false, [0, 0], "fdatasync", 0);
const MAPS: Program = program("maps", false, false, [1, 1], "fdatasync", 2);

const fn program(
    name: &'static str,
    is_log: bool,
    deletes: bool,
    syncs: [u64; 2],
    call: &'static str,
    journal_blocks: u64,
) -> Program {
    let [journal_syncs, database_syncs] = syncs;
    Program { name, is_log, deletes, journal_syncs, database_syncs, call, journal_blocks }
}

/// What is to be made.
#[derive(Debug, Clone, Copy)]
pub struct FleetPlan {
    /// Another number makes another fleet.
    pub seed: u64,
    /// Commits of each trace.
    pub commits: u64,
    /// By how much version 2.0 writes more, and its flushes take longer.
    pub regression: f64,
}

/// A trace of a fleet: whose it is.
#[derive(Debug, Clone, PartialEq)]
pub struct FleetTrace {
    /// Its number, from 0.
    pub number: u64,
    /// Which of `MODELS`.
    pub model: usize,
    /// Empty where nobody labelled it.
    pub device_id: String,
    /// Empty likewise.
    pub version: &'static str,
    /// By how much it writes more, and its flushes take longer, than without the regression.
    pub factor: f64,
    /// True for a device that is slower than the others of its model.
    pub is_outlier: bool,
}

impl FleetTrace {
    /// The trace of the plan with this number.
    pub fn numbered(number: u64, plan: &FleetPlan) -> Self {
        let unit = number / 2;
        let is_second = number % 2 == 1;
        let is_labelled = number % UNLABELLED_EVERY != UNLABELLED_EVERY - 1;
        Self {
            number,
            model: usize::try_from(unit % MODELS.len() as u64).unwrap_or(0),
            device_id: if is_labelled { format!("unit-{unit:06}") } else { String::new() },
            version: if is_labelled { VERSIONS[usize::from(is_second)] } else { "" },
            factor: if is_second { plan.regression } else { 1.0 },
            is_outlier: unit % OUTLIER_EVERY == 13,
        }
    }

    /// Its device's model.
    pub fn model(&self) -> &'static FleetModel {
        &MODELS[self.model]
    }

    /// 16 hexadecimal digits: another one for each trace of each fleet.
    pub fn id(&self, plan: &FleetPlan) -> String {
        format!("{:016x}", mixed(plan.seed.wrapping_mul(0x1_0000_0000).wrapping_add(self.number)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_differ() {
        let plan = FleetPlan { seed: 3, commits: 1, regression: 1.0 };
        let mut ids: Vec<String> =
            (0..5_000).map(|number| FleetTrace::numbered(number, &plan).id(&plan)).collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 5_000);
    }
}
