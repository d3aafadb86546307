//! A part of `joj lab run --shard` (docs/lab_format.md), and the result that all of them make.

use std::collections::BTreeMap;
use std::iter::zip;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::lab::cell::Cell;
use crate::lab::result::{CellOutcome, CellResult, LabMachine, LabResult, RESULT_FORMAT, RESULT_VERSION};
use crate::lab::shards::shard::Shard;
use crate::lab::shards::whole::{Part, differs, machine_differs, made_from_differs};

/// First word of a part.
pub const LAB_PART_FORMAT: &str = "joj-lab-part";
/// Version that this joj writes.
pub const LAB_PART_VERSION: u32 = 2;

/// What one shard of a plan gave.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct LabPart {
    /// Always `joj-lab-part`.
    pub format: String,
    /// Version of the format, 1 or more.
    pub version: u32,
    /// Its number, from 1 on.
    pub shard: u32,
    /// How many there are.
    pub shards: u32,
    pub title: String,
    /// What it ran on.
    pub machine: LabMachine,
    /// What else every shard has to have alike: a checksum of each file by its name, and how cells are traced.
    pub made_from: BTreeMap<String, String>,
    /// All cells of the run, those of other shards too.
    pub cells: Vec<Cell>,
    /// What came of the cells of this shard, in the order of their indices.
    pub outcomes: Vec<IndexedOutcome>,
    /// Of all the rest.
    pub checksum: String,
}

/// What came of the cell of this index.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct IndexedOutcome {
    /// Its place in `cells`, from 0 on.
    pub index: usize,
    /// What came of it.
    pub outcome: CellOutcome,
}

impl LabPart {
    /// What this shard alone gave, in the form of a result.
    pub fn own_result(&self) -> LabResult {
        let own = self.outcomes.iter().filter_map(|IndexedOutcome { index, outcome }| {
            Some(CellResult { cell: self.cells.get(*index)?.clone(), outcome: outcome.clone() })
        });
        result(self.title.clone(), self.machine.clone(), own.collect())
    }

    /// The result of the parts of all shards, in their order.
    pub(super) fn join(parts: Vec<LabPart>) -> LabResult {
        let mut outcomes = BTreeMap::new();
        let (mut title, mut machine, mut cells) = (String::new(), LabMachine::default(), Vec::new());
        for part in parts {
            outcomes.extend(part.outcomes.into_iter().map(|one| (one.index, one.outcome)));
            (title, machine, cells) = (part.title, part.machine, part.cells);
        }
        assert!(
            cells.len() == outcomes.len(),
            "each shard has its cells, or it would have been called damaged"
        );
        let cells = zip(cells, outcomes.into_values()).map(|(cell, outcome)| CellResult { cell, outcome });
        result(title, machine, cells.collect())
    }
}

fn result(title: String, machine: LabMachine, cells: Vec<CellResult>) -> LabResult {
    LabResult { format: RESULT_FORMAT.to_owned(), version: RESULT_VERSION, title, machine, cells }
}

impl Part for LabPart {
    const FORMAT: &'static str = LAB_PART_FORMAT;
    const VERSION: u32 = LAB_PART_VERSION;

    fn numbers(&self) -> (u32, u32) {
        (self.shard, self.shards)
    }

    fn flaw(&self, shard: Shard) -> Option<String> {
        let own = self.outcomes.iter().map(|one| one.index);
        (!own.eq(shard.indices(self.cells.len()))).then(|| {
            let cells = self.cells.len();
            format!("its outcomes are not those of the cells that shard {shard} has of {cells}")
        })
    }

    fn checksum_mut(&mut self) -> &mut String {
        &mut self.checksum
    }

    fn difference(&self, other: &LabPart) -> Option<String> {
        let cells_differ = || {
            if self.cells.len() != other.cells.len() {
                let [own, other] = [&self.cells, &other.cells].map(Vec::len);
                return Some(format!("its plan has {other} cells, not {own}"));
            }
            let (own, other) = zip(&self.cells, &other.cells).find(|(own, other)| own != other)?;
            Some(format!("its plan has a cell `{other}` where `{own}` is"))
        };
        differs("title", &self.title, &other.title)
            .or_else(cells_differ)
            .or_else(|| machine_differs(&self.machine, &other.machine))
            .or_else(|| made_from_differs(&self.made_from, &other.made_from))
    }
}

#[cfg(test)]
mod tests {
    //! Goal: parts become the bytes of one run, in any order, and what is not one part of each shard is told.
    //! Method: a made-up result of seven cells in three parts, then with one thing wrong.

    use super::*;
    use crate::bench::key::JournalMode;
    use crate::lab::report::facts::sample;
    use crate::lab::shards::merge::{Merged, merge};
    use crate::lab::shards::whole::sealed;

    fn cells() -> Vec<CellResult> {
        (1..=7).map(|number| sample::at(JournalMode::Wal, 100 * number)).collect()
    }

    fn of_one_run() -> LabResult {
        sample::result(cells())
    }

    fn part(number: u32, count: u32) -> LabPart {
        let run = of_one_run();
        let own = Shard::new(number, count).unwrap().indices(run.cells.len());
        let outcome = |index: usize| IndexedOutcome { index, outcome: run.cells[index].outcome.clone() };
        LabPart {
            format: LAB_PART_FORMAT.to_owned(),
            version: LAB_PART_VERSION,
            shard: number,
            shards: count,
            title: run.title.clone(),
            machine: run.machine.clone(),
            made_from: BTreeMap::from([("joj".to_owned(), "1f".to_owned())]),
            cells: run.cells.iter().map(|one| one.cell.clone()).collect(),
            outcomes: own.map(outcome).collect(),
            checksum: String::new(),
        }
    }

    fn files(parts: &[LabPart]) -> Vec<(String, String)> {
        let text = |part: &LabPart| serde_json::to_string_pretty(&sealed(part.clone()).unwrap()).unwrap();
        parts.iter().zip('a'..).map(|(part, name)| (format!("{name}.json"), text(part))).collect()
    }

    fn said(parts: &[LabPart]) -> String {
        merge(&files(parts)).unwrap_err().to_string()
    }

    #[test]
    fn parts_in_any_order_are_the_bytes_of_one_run() {
        let expected = serde_json::to_string_pretty(&of_one_run()).unwrap();
        for order in [[1, 2, 3], [3, 1, 2], [2, 3, 1]] {
            let merged = merge(&files(&order.map(|number| part(number, 3)))).unwrap();
            let Merged::Plan(result) = merged else { panic!("another kind") };
            assert_eq!(serde_json::to_string_pretty(&result).unwrap(), expected);
        }
        let more: Vec<LabPart> = (1..=9).map(|number| part(number, 9)).collect();
        assert!(more[8].outcomes.is_empty(), "more shards than cells");
        assert_eq!(merge(&files(&more)).unwrap(), Merged::Plan(of_one_run()));
    }

    #[test]
    fn a_part_shows_its_own_cells() {
        let cells = of_one_run().cells;
        assert_eq!(part(2, 3).own_result().cells, [cells[1].clone(), cells[4].clone()]);
    }

    #[test]
    fn missing_and_doubled_shards_are_named() {
        let all = [1, 2, 3].map(|number| part(number, 3));
        let expected = "shard 2/3 is missing; run `--shard 2/3`, and give what it writes, too";
        assert_eq!(said(&[all[2].clone(), all[0].clone()]), expected);
        assert!(said(&all[..1]).starts_with("shards 2/3, 3/3 are missing; run `--shard 2/3` and so on"));
        let doubled = [all[0].clone(), all[1].clone(), all[2].clone(), all[1].clone()];
        assert_eq!(said(&doubled), "b.json and d.json are both shard 2/3; leave one of them out");
        let expected = "b.json is shard 2/2, and a.json is 1/3; give the parts of one run";
        assert_eq!(said(&[part(1, 3), part(2, 2)]), expected);
        assert!(merge(&[]).unwrap_err().to_string().contains("no parts"));
    }

    #[test]
    fn parts_of_another_run_say_in_what_they_differ() {
        let with = |change: &dyn Fn(&mut LabPart)| {
            let mut other = part(2, 3);
            change(&mut other);
            let said = said(&[part(1, 3), other, part(3, 3)]);
            assert!(said.starts_with("b.json is a part of another run than a.json: its "), "{said}");
            said
        };
        let title = with(&|part| "other".clone_into(&mut part.title));
        assert!(title.contains("title is \"other\""), "{title}");
        let kernel = with(&|part| "6.99".clone_into(&mut part.machine.kernel));
        assert!(kernel.contains("kernel is \"6.99\""), "{kernel}");
        for change in [
            |part: &mut LabPart| "9".clone_into(&mut part.machine.joj),
            |part: &mut LabPart| "9".clone_into(&mut part.machine.qemu),
            |part: &mut LabPart| "9".clone_into(&mut part.machine.clock),
            |part: &mut LabPart| part.machine.sqlite.push(("system".to_owned(), "9".to_owned())),
        ] {
            with(&change);
        }
        let plan = with(&|part| {
            let cells = part.cells.len();
            part.cells[cells - 1].transactions += 1;
        });
        assert!(plan.contains("its plan has a cell `"), "{plan}");
        let longer = with(&|part| {
            part.cells.push(sample::cell(JournalMode::Delete));
            let outcome = part.outcomes[0].outcome.clone();
            part.outcomes.push(IndexedOutcome { index: 7, outcome });
        });
        assert!(longer.contains("its plan has 8 cells, not 7"), "{longer}");
        let build = with(&|part| drop(part.made_from.insert("joj".to_owned(), "2e".to_owned())));
        assert!(build.contains("its joj is another one (2e, not 1f)"), "{build}");
        let traced = with(&|part| drop(part.made_from.insert("trace".to_owned(), "auto".to_owned())));
        assert!(traced.contains("its trace is another one (auto, not none)"), "{traced}");
    }

    #[test]
    fn what_is_no_whole_part_is_refused_by_its_name() {
        let with = |file: &str, text: &str| {
            let mut files = files(&[part(1, 3), part(2, 3)]);
            files.push((file.to_owned(), text.to_owned()));
            merge(&files).unwrap_err().to_string()
        };
        let text = |part: &LabPart| serde_json::to_string_pretty(&sealed(part.clone()).unwrap()).unwrap();
        let third = part(3, 3);
        let newer = with("new.json", &text(&LabPart { version: LAB_PART_VERSION + 1, ..third.clone() }));
        assert!(newer.contains("version of new.json is 3") && newer.contains("a newer one"), "{newer}");
        let none = with("old.json", &text(&LabPart { version: 0, ..third.clone() }));
        assert!(none.contains("version of old.json is 0"), "{none}");
        let old = text(&LabPart { version: 1, ..third.clone() }).replace("\"checksum\"", "\"none\"");
        let old = with("old.json", &old);
        assert!(old.contains("version of old.json is 1") && old.contains("run its shard again"), "{old}");
        let changed = with("bit.json", &text(&third).replace("\"shard\": 3", "\"shard\": 2"));
        assert_eq!(
            changed,
            "bit.json is damaged: its content is not that of its checksum; run its shard again"
        );
        let whole = with("whole.json", &serde_json::to_string(&of_one_run()).unwrap());
        assert!(whole.starts_with("whole.json is the result of a whole run"), "{whole}");
        let other = with("x.json", r#"{"format": "joj-trace", "version": 1}"#);
        assert!(other.contains("x.json is no part (its format is \"joj-trace\")"), "{other}");
        for damaged in ["", "{", "[]", "{\"format\": \"joj-lab-part\"}"] {
            assert!(with("cut.json", damaged).starts_with("cut.json is no part ("), "{damaged}");
        }
        let cut = with("cut.json", &text(&third).replace("\"title\"", "\"tilte\""));
        assert!(cut.starts_with("cut.json is damaged: missing field `title`"), "{cut}");
        let nowhere = with("zero.json", &text(&LabPart { shard: 0, ..third.clone() }));
        assert!(nowhere.contains("zero.json is damaged: shard 0 is none of 3"), "{nowhere}");
        let moved = with("moved.json", &text(&LabPart { outcomes: part(2, 3).outcomes, ..third.clone() }));
        assert!(moved.contains("moved.json is damaged: its outcomes are not"), "{moved}");
        let fewer = with("fewer.json", &text(&LabPart { outcomes: Vec::new(), ..third }));
        assert!(fewer.contains("fewer.json is damaged: its outcomes are not"), "{fewer}");
    }
}
