//! What a cell's figures say about a value that is not the paper's. Nothing is guessed: amounts come from trace or counters,
//! times from the clock, and where neither amount nor processor time explains it, what is left is the device's description.

use crate::lab::report::facts::{CellFacts, Counted};
use crate::lab::report::outcome::{Cause, Reason};
use crate::lab::report::paper::Written;

/// An amount explains a speed where it differs by this factor at least, in the right direction.
const AMOUNT_FACTOR: f64 = 1.1;

/// What is known of a value and its cell.
#[derive(Debug)]
pub struct KnownValue<'a> {
    /// The lab's value as a multiple of the paper's; of a time the paper's as a multiple of the lab's. Above 1 a speed is higher here.
    pub ratio: f64,
    /// True for transactions per second and the like; else it is an amount.
    pub is_speed: bool,
    /// True where the device's counters gave the value, and not the trace.
    pub is_counted: bool,
    /// Whose amounts they are where those differ.
    pub writer: Cause,
    /// What was measured in the cell.
    pub facts: &'a CellFacts,
    /// Those of the row that the value is a multiple of.
    pub base: Option<&'a CellFacts>,
    /// What the paper says a transaction writes.
    pub written: Option<Written>,
}

/// The reason; none where the cell says nothing of what it wrote.
pub fn reason(known: &KnownValue<'_>) -> Option<Reason> {
    let here = if known.is_counted { known.facts.device } else { known.facts.written() };
    if !known.is_speed {
        let text = format!("a transaction is {}", amounts(here?, known.facts));
        return Some(Reason { cause: known.writer, text });
    }
    if let Some(base) = known.base {
        return of_multiple(known, base);
    }
    if let (Some(here), Some(paper)) = (here, known.written) {
        let amount = here.kib / paper.kib.max(f64::MIN_POSITIVE);
        let explains = if known.ratio > 1.0 { amount < 1.0 / AMOUNT_FACTOR } else { amount > AMOUNT_FACTOR };
        if explains {
            let writes = paper
                .writes
                .map_or_else(String::new, |writes| format!(" in {}", counted(writes, "write", "writes")));
            let text = format!(
                "a transaction is {}; the paper has {} KiB{writes}",
                amounts(here, known.facts),
                round(paper.kib)
            );
            return Some(Reason { cause: known.writer, text });
        }
    }
    Some(of_time(known.facts, here))
}

/// Processor or device, whichever takes the larger part of the time.
fn of_time(facts: &CellFacts, here: Option<Counted>) -> Reason {
    let cause = if facts.cpu_us * 2.0 > facts.elapsed_us { Cause::Processor } else { Cause::DeviceModel };
    let amounts = here.map_or_else(String::new, |here| format!("; it is {}", amounts(here, facts)));
    let text = format!("{}{amounts}", times(facts));
    Reason { cause, text }
}

/// Of a multiple: what both transactions write. The paper has the quotient only, so neither of the two can be blamed.
fn of_multiple(known: &KnownValue<'_>, base: &CellFacts) -> Option<Reason> {
    let (here, below) = (known.facts.written()?, base.written()?);
    let is_busy = known.facts.cpu_us * 2.0 > known.facts.elapsed_us;
    let cause = if is_busy { Cause::Processor } else { Cause::Quotient };
    let text = format!(
        "a transaction is {}, the one it is held against {}; {}",
        amounts(here, known.facts),
        amounts(below, base),
        times(known.facts)
    );
    Some(Reason { cause, text })
}

fn amounts(written: Counted, facts: &CellFacts) -> String {
    let mut text = format!("{} KiB", round(written.kib));
    if let Some(writes) = written.writes {
        text.push_str(&format!(" in {}", counted(writes, "write", "writes")));
    }
    if let Some(flushes) = written.flushes {
        text.push_str(&format!(" and {}", counted(flushes, "flush", "flushes")));
    }
    if let Some(costs) = &facts.traced {
        // The counters' mean has in it what comes rarely, a checkpoint for example; the trace's median has not.
        let which =
            if round(costs.kib()) == round(written.kib) { "" } else { "the traced one in the middle: " };
        text.push_str(&format!(
            " ({which}{} data, {} journal, {} other; {})",
            round(costs.data_kib),
            round(costs.journal_kib),
            round(costs.other_kib),
            counted(costs.syncs, "sync", "syncs")
        ));
    }
    text
}

fn counted(value: f64, one: &str, several: &str) -> String {
    let number = round(value);
    let word = if number == "1" { one } else { several };
    format!("{number} {word}")
}

fn times(facts: &CellFacts) -> String {
    format!(
        "of {} ms a transaction {} ms are the process's processor time",
        milliseconds(facts.elapsed_us),
        milliseconds(facts.cpu_us)
    )
}

fn milliseconds(microseconds: f64) -> String {
    format!("{:.2}", microseconds / 1e3)
}

/// A digit behind the point, unless it is a zero.
fn round(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::report::facts::sample;

    fn known(facts: &CellFacts, ratio: f64) -> KnownValue<'_> {
        KnownValue {
            ratio,
            is_speed: true,
            is_counted: false,
            writer: Cause::Software,
            facts,
            base: None,
            written: None,
        }
    }

    #[test]
    fn fewer_bytes_explain_a_faster_transaction_and_not_a_slower_one() {
        let facts = sample::facts();
        let written = Some(Written { kib: 64.0, writes: Some(8.0) });
        let found = reason(&KnownValue { written, ..known(&facts, 2.0) }).unwrap();
        assert_eq!(found.cause, Cause::Software);
        assert_eq!(
            found.text,
            "a transaction is 32 KiB in 3 writes and 2 flushes (8 data, 20 journal, 4 other; 1 sync); the paper has 64 KiB in 8 writes"
        );
        let found = reason(&KnownValue { written, ..known(&facts, 0.5) }).unwrap();
        assert_eq!(found.cause, Cause::DeviceModel);
        assert!(found.text.starts_with("of 2.00 ms a transaction 0.40 ms"), "{}", found.text);
        let found = reason(&KnownValue { written, writer: Cause::Waldio, ..known(&facts, 2.0) }).unwrap();
        assert_eq!(found.cause, Cause::Waldio);
    }

    #[test]
    fn where_the_processor_has_most_of_the_time_it_is_named() {
        let mut facts = sample::facts();
        facts.cpu_us = 1_500.0;
        assert_eq!(reason(&known(&facts, 0.5)).unwrap().cause, Cause::Processor);
    }

    #[test]
    fn an_amount_is_told_by_its_parts_and_without_trace_by_the_counters() {
        let mut facts = sample::facts();
        facts.traced = None;
        let found = reason(&KnownValue { is_speed: false, ..known(&facts, 2.0) }).unwrap();
        assert_eq!(found.text, "a transaction is 40 KiB in 4 writes and 2 flushes");
        let traced = sample::facts();
        let found = reason(&KnownValue { is_speed: false, is_counted: true, ..known(&traced, 2.0) }).unwrap();
        let parts = "(the traced one in the middle: 8 data, 20 journal, 4 other; 1 sync)";
        assert_eq!(found.text, format!("a transaction is 40 KiB in 4 writes and 2 flushes {parts}"));
        facts.device = None;
        assert_eq!(reason(&KnownValue { is_speed: false, ..known(&facts, 2.0) }), None);
    }

    #[test]
    fn a_multiple_tells_both_transactions() {
        let (facts, mut base) = (sample::facts(), sample::facts());
        base.traced = None;
        let found = reason(&KnownValue { base: Some(&base), ..known(&facts, 2.0) }).unwrap();
        assert!(found.text.contains("the one it is held against 40 KiB in 4 writes"), "{}", found.text);
    }
}
