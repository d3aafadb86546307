//! Samples under each other: a column for each quantity of each thing that did anything.
//!
//! A thing that never did anything takes one row of values, not a row for each interval: a phone has 200 sources of
//! interrupts, of which ten are used.

use std::collections::HashMap;

use crate::monitor::quantity::{QuantityKind, Weight};
use crate::monitor::sample::{CounterSample, Item};
use crate::monitor::summary::SeriesSummary;

/// One thing over the time.
#[derive(Debug, Clone)]
pub struct Thing {
    pub kind: QuantityKind,
    /// Its name; empty for what a machine has one of.
    pub name: String,
    /// A column for each of [`QuantityKind::quantities`], a value for each sample; not a number where there is none. Empty as long
    /// as it did nothing.
    columns: Vec<Vec<f64>>,
    /// The first sample it was in, of those without a gap.
    since: usize,
    /// Samples that it has been in or was left out of.
    rows: usize,
    /// What it shows while it does nothing.
    idle: Vec<f64>,
}

/// The samples of a whole measurement, a column for each quantity.
#[derive(Debug, Clone, Default)]
pub struct Table {
    /// When each sample ended, in nanoseconds since the first reading.
    pub ends_ns: Vec<u64>,
    /// How long each was.
    pub spans_ns: Vec<u64>,
    /// Disks that are kept whatever they do; where it is empty, all that do anything.
    chosen: Vec<String>,
    things: Vec<Thing>,
    index: HashMap<QuantityKind, HashMap<String, usize>>,
}

impl Table {
    /// An empty table that keeps only these disks, or all with traffic if `chosen` is empty.
    pub fn new(chosen: Vec<String>) -> Table {
        Table { chosen, ..Table::default() }
    }

    /// How many samples there are.
    pub fn len(&self) -> usize {
        self.spans_ns.len()
    }

    /// True before the first sample.
    pub fn is_empty(&self) -> bool {
        self.spans_ns.is_empty()
    }

    /// True for what belongs into the table if it does anything.
    pub fn is_wanted(&self, item: &Item) -> bool {
        item.kind != QuantityKind::Disk || self.chosen.is_empty() || self.chosen.contains(&item.name)
    }

    /// Adds a sample; it must not be earlier than the last.
    pub fn push(&mut self, began_ns: u64, sample: &CounterSample) {
        assert!(sample.at_ns >= began_ns, "a sample before the beginning");
        let row = self.len();
        for item in &sample.items {
            if !self.is_wanted(item) {
                continue;
            }
            let names = self.index.entry(item.kind).or_default();
            let index = match names.get(item.name.as_str()) {
                Some(index) => *index,
                None => {
                    names.insert(item.name.clone(), self.things.len());
                    self.things.push(Thing::new(item, row));
                    self.things.len() - 1
                }
            };
            let is_kept =
                item.kind.is_whole_machine() || (item.kind == QuantityKind::Disk && !self.chosen.is_empty());
            self.things[index].push(row, item, is_kept || item.has_traffic());
        }
        self.ends_ns.push(sample.at_ns - began_ns);
        self.spans_ns.push(sample.span_ns);
    }

    /// The things that did anything, kind by kind, and what was chosen.
    pub fn things(&self) -> Vec<&Thing> {
        let mut found: Vec<&Thing> = self.things.iter().filter(|thing| !thing.columns.is_empty()).collect();
        found.sort_by_key(|thing| thing.kind);
        found
    }

    /// A column of `thing`, as long as the table, cut at the most that its quantity can be.
    pub fn column(&self, thing: &Thing, quantity: usize) -> Vec<f64> {
        let quantity_of = &thing.kind.quantities()[quantity];
        self.counted(thing, quantity).into_iter().map(|value| quantity_of.cut(value)).collect()
    }

    fn counted(&self, thing: &Thing, quantity: usize) -> Vec<f64> {
        let mut column = thing.columns.get(quantity).cloned().unwrap_or_default();
        column.resize(self.len(), f64::NAN);
        column
    }

    /// What a column was like; `None` where it has no value.
    pub fn summary(&self, thing: &Thing, quantity: usize, whole_ns: u64) -> Option<SeriesSummary> {
        let weight_by = |other: &str| self.column(thing, thing.kind.index_of(other));
        let spans = self.spans_ns.iter().map(|span_ns| *span_ns as f64);
        let weights: Vec<f64> = match thing.kind.quantities()[quantity].weight {
            Weight::Time => spans.collect(),
            Weight::Count(other) => weight_by(other),
            Weight::Rate(other) => {
                weight_by(other).iter().zip(spans).map(|(rate, span)| rate * span).collect()
            }
        };
        let is_long: Vec<bool> = self.spans_ns.iter().map(|span_ns| *span_ns >= whole_ns / 2).collect();
        let summary = SeriesSummary::of(&self.counted(thing, quantity), &weights, &is_long)?;
        Some(summary.cut(&thing.kind.quantities()[quantity]))
    }
}

impl Thing {
    fn new(item: &Item, row: usize) -> Thing {
        let (kind, name) = (item.kind, item.name.clone());
        Thing { kind, name, columns: Vec::new(), since: row, rows: row, idle: item.values.clone() }
    }

    /// Adds its values of sample `row`.
    fn push(&mut self, row: usize, item: &Item, is_shown: bool) {
        if self.columns.is_empty() {
            if self.rows != row {
                // It was away: nothing is known of that time.
                self.since = row;
            }
            if is_shown {
                let column = |idle: &f64| {
                    let mut column = vec![f64::NAN; self.since];
                    column.resize(row, *idle);
                    column
                };
                self.columns = self.idle.iter().map(column).collect();
            } else {
                self.idle.clone_from(&item.values);
            }
        }
        for (column, value) in self.columns.iter_mut().zip(&item.values) {
            column.resize(row, f64::NAN);
            column.push(*value);
        }
        self.rows = row + 1;
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::sample::tests::reading;
    use super::*;

    fn disk(name: &str, busy: f64) -> Item {
        let mut values = vec![0.0; QuantityKind::Disk.quantities().len()];
        values[0] = busy;
        Item { kind: QuantityKind::Disk, name: name.to_owned(), values }
    }

    fn push(table: &mut Table, items: Vec<Item>) {
        let at_ns = (table.len() as u64 + 1) * 1_000;
        table.push(0, &CounterSample { at_ns, span_ns: 1_000, items });
    }

    fn busy(table: &Table, name: &str) -> Option<Vec<Option<f64>>> {
        let things = table.things();
        let thing = things.iter().find(|thing| thing.name == name)?;
        Some(
            table
                .column(thing, 0)
                .into_iter()
                .map(|value| Some(value).filter(|value| !value.is_nan()))
                .collect(),
        )
    }

    /// A second of one disk at work and one idle, three samples.
    pub(crate) fn table() -> Table {
        let mut table = Table::new(Vec::new());
        for step in 0..3 {
            let (then, now) = (reading(1_000 + step * 500, step), reading(1_500 + step * 500, step + 1));
            table.push(1_000_000_000, &CounterSample::between(&then, &now));
        }
        table
    }

    #[test]
    fn devices_come_and_go_and_are_never_zero_while_away() {
        let mut table = Table::new(Vec::new());
        push(&mut table, vec![disk("late", 0.0), disk("never", 0.0)]);
        push(&mut table, vec![disk("never", 0.0), disk("late", 0.0), disk("new", 7.0)]);
        push(&mut table, vec![disk("late", 5.0)]);
        push(&mut table, vec![]);
        push(&mut table, vec![disk("late", 0.0), disk("new", 0.0)]);
        assert_eq!(busy(&table, "late"), Some(vec![Some(0.0), Some(0.0), Some(5.0), None, Some(0.0)]));
        assert_eq!(busy(&table, "new"), Some(vec![None, Some(7.0), None, None, Some(0.0)]));
        assert_eq!(busy(&table, "never"), None);
    }

    #[test]
    fn an_idle_device_that_was_away_did_not_idle_then() {
        let mut table = Table::new(Vec::new());
        for items in [vec![disk("a", 0.0)], vec![], vec![disk("a", 0.0)], vec![disk("a", 1.0)]] {
            push(&mut table, items);
        }
        assert_eq!(busy(&table, "a"), Some(vec![None, None, Some(0.0), Some(1.0)]));
    }

    #[test]
    fn ticks_that_fall_into_the_next_interval_are_not_lost_to_the_mean() {
        let mut table = Table::new(Vec::new());
        for busy in [0.0, 200.0, 50.0, 30.0] {
            push(&mut table, vec![disk("a", busy)]);
        }
        let things = table.things();
        let summary = table.summary(things[0], 0, 1_000).unwrap();
        assert_eq!((summary.mean, summary.max, summary.p99), (70.0, 100.0, 100.0));
        assert_eq!(table.column(things[0], 0), [0.0, 100.0, 50.0, 30.0]);
    }

    #[test]
    fn chosen_disks_are_kept_and_no_others() {
        let mut table = Table::new(vec!["a".to_owned()]);
        push(&mut table, vec![disk("a", 0.0), disk("b", 9.0)]);
        assert_eq!((busy(&table, "a"), busy(&table, "b")), (Some(vec![Some(0.0)]), None));
    }

    #[test]
    fn things_are_in_the_order_of_their_kinds() {
        let table = table();
        let names: Vec<(QuantityKind, &str)> =
            table.things().iter().map(|thing| (thing.kind, thing.name.as_str())).collect();
        let expected = [
            (QuantityKind::Cpu, ""),
            (QuantityKind::System, ""),
            (QuantityKind::Memory, ""),
            (QuantityKind::Disk, "vda"),
            (QuantityKind::Network, "eth0"),
            (QuantityKind::Interrupt, "36 virtio1-req.0"),
        ];
        assert_eq!(names, expected);
        assert_eq!(table.ends_ns, [500_000_000, 1_000_000_000, 1_500_000_000]);
    }

    /// One short interval with many slow writes, one long with few fast ones: the mean is of all writes.
    #[test]
    fn the_mean_wait_is_that_of_all_requests() {
        let item = |writes: f64, wait: f64| {
            let mut item = disk("a", 1.0);
            item.values[QuantityKind::Disk.index_of("writes")] = writes;
            item.values[QuantityKind::Disk.index_of("write_wait")] = wait;
            item
        };
        let mut table = Table::new(Vec::new());
        table.push(0, &CounterSample { at_ns: 1_000, span_ns: 1_000, items: vec![item(900.0, 10.0)] });
        table.push(0, &CounterSample { at_ns: 4_000, span_ns: 3_000, items: vec![item(100.0, 2.0)] });
        let thing = table.things()[0];
        let mean = |name: &str| table.summary(thing, QuantityKind::Disk.index_of(name), 1_000).unwrap().mean;
        assert!((mean("write_wait") - 8.0).abs() < 1e-9, "{}", mean("write_wait"));
        assert!((mean("writes") - 300.0).abs() < 1e-9, "{}", mean("writes"));
    }
}
