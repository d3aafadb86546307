//! What to hold against a result, each with its remedy.
//!
//! Thresholds are where a ratio of two rows begins to say something about the machine's other work instead of
//! the rows: found by running the same plan on an idle machine and beside a compiler.

use crate::bench::document::{Document, Limit, Warning};
use crate::bench::many_writers::ContendedRow;
use crate::bench::measurement::Measurement;
use crate::bench::pairs::{alike, is_refused};
use crate::bench::promise::Reservation;
use crate::bench::row::Row;
use crate::bench::run::Run;
use crate::bench::study::parts::Study;
use crate::statistics::Estimate;

/// Share of all cores that others may use before flushes have to wait for a core.
const OTHERS_SHARE_MAX: f64 = 0.25;

/// Share of latencies near the scheduler's tick that an idle machine does not reach.
const TICK_SHARE_MAX: f64 = 0.05;

/// Half width of an interval, relative to its median, past which a row's median says little.
const HALF_WIDTH_MAX: f64 = 0.15;

/// Others' bytes per second as a share of what joj's overwrites cause, past which device columns mislead.
const FOREIGN_SHARE_MAX: f64 = 0.25;

/// Share of a run's time past which its longest wait may have been longer still.
const WAIT_SHARE_MAX: f64 = 0.5;

/// Time that must have been watched before others' writes are judged, in nanoseconds.
const IDLE_NS_MIN: f64 = 10e6;

/// Everything doubtful about `document`, worst first.
pub fn warnings(document: &Document) -> Vec<Warning> {
    let checks = [
        place_without_a_promise,
        failed_rows,
        busy_cores,
        ticks,
        foreign_writes,
        moving_limit,
        wide_intervals,
        few_runs,
        failed_inserts,
        cut_waits,
    ];
    checks.iter().filter_map(|check| check(document)).collect()
}

fn warning(kind: &str, what: String, remedy: &str) -> Option<Warning> {
    Some(Warning { kind: kind.to_owned(), what, remedy: remedy.to_owned() })
}

fn place_without_a_promise(document: &Document) -> Option<Warning> {
    let environment = &document.environment;
    let reservation = Reservation::of(&environment.filesystem, environment.device.as_ref())?;
    warning(reservation.word(), reservation.what(&environment.directory), reservation.remedy())
}

fn failed_rows(document: &Document) -> Option<Warning> {
    let failed = document.failures();
    let (key, reason) = failed.first()?;
    let of_study = document.study.as_ref().map_or(0, Study::row_count);
    let all = document.rows.len() + document.contended.len() + document.io.len() + of_study;
    warning(
        "failed_rows",
        format!("{} of {all} rows FAILED, first {key}: {reason}", failed.len()),
        "do not use them; run that row alone, and report it with the JSON file if it fails again",
    )
}

fn median(values: Vec<f64>) -> Option<f64> {
    Estimate::of(&values).map(|estimate| estimate.median)
}

/// What was measured without SQLite or by the study: its name, its runs.
fn measurements(document: &Document) -> impl Iterator<Item = (String, &Measurement)> {
    let of_io = document.io.iter().map(|row| (row.key.to_string(), &row.records));
    document.study.iter().flat_map(Study::measurements).chain(of_io)
}

fn measured_runs(document: &Document) -> impl Iterator<Item = &Run> {
    measurements(document).flat_map(|(_, measurement)| &measurement.runs)
}

fn busy_cores(document: &Document) -> Option<Warning> {
    let cores = document.environment.cores.max(1) as f64;
    let of_rows = document.rows.iter().flat_map(|row| &row.runs).filter_map(|run| run.others_cores);
    let of_limits = document.limits.iter().flat_map(|limit| &limit.runs).filter_map(|run| run.others_cores);
    let contended = document.contended.iter().flat_map(|row| &row.runs);
    let of_contended = contended.filter_map(|run| run.run.others_cores);
    let of_study = measured_runs(document).filter_map(|run| run.others_cores);
    let others = median(of_rows.chain(of_limits).chain(of_contended).chain(of_study).collect())?;
    if others <= cores * OTHERS_SHARE_MAX {
        return None;
    }
    warning(
        "busy_cores",
        format!("others kept {others:.1} of {cores} cores busy, so flushes waited for a core"),
        "end or pause the other work (`top` names it) and run again",
    )
}

fn ticks(document: &Document) -> Option<Warning> {
    let of_limits = document.limits.iter().flat_map(|limit| &limit.runs).map(|run| run.tick_share);
    let of_rows = document.rows.iter().flat_map(|row| &row.runs).map(|run| run.tick_share);
    let of_study = measured_runs(document).map(|run| run.tick_share);
    let shares: Vec<f64> = of_limits.chain(of_rows).chain(of_study).collect();
    let touched = shares.iter().filter(|share| **share > TICK_SHARE_MAX).count();
    // One run in ten may have met something else that takes 4 ms.
    if touched == 0 || touched * 10 < shares.len() {
        return None;
    }
    warning(
        "scheduler_ticks",
        format!(
            "in {touched} of {} runs many flushes took 4 ms or a multiple of it: the scheduler's tick, \
             not the disk's",
            shares.len()
        ),
        "free a core, or give the machine another one, and run again; every ratio in these runs is too small",
    )
}

/// (bytes the device wrote, nanoseconds it had) over all runs of the limits that `wanted` picks.
fn device_traffic(document: &Document, wanted: impl Fn(&Limit) -> bool) -> (f64, f64) {
    let runs = document.limits.iter().filter(|limit| wanted(limit)).flat_map(|limit| &limit.runs);
    let traffic = runs.filter_map(|run| Some((run.device?.written_bytes as f64, run.elapsed_ns as f64)));
    traffic.fold((0.0, 0.0), |sum, run| (sum.0 + run.0, sum.1 + run.1))
}

/// While the file is clean joj writes nothing, so what the device writes then is somebody else's. While joj does
/// write, some file systems add as much again and more, so that time tells nothing about others.
fn foreign_writes(document: &Document) -> Option<Warning> {
    let (foreign_bytes, idle_ns) = device_traffic(document, |limit| !limit.kind.stores_data());
    let (all_bytes, busy_ns) = device_traffic(document, |limit| limit.kind.stores_data());
    let share = (foreign_bytes / idle_ns) / (all_bytes / busy_ns);
    if idle_ns < IDLE_NS_MIN || !share.is_finite() || share <= FOREIGN_SHARE_MAX {
        return None;
    }
    warning(
        "foreign_writes",
        format!(
            "others wrote {:.1} MB a second to this device, {:.0} % of what joj's own overwrites make it write",
            foreign_bytes * 1e3 / idle_ns,
            share * 100.0
        ),
        "stop whatever else writes to this device (`iotop` names it); the disk KB column includes its bytes",
    )
}

/// The runs of each row, of whatever kind.
fn runs_of_rows(document: &Document) -> impl Iterator<Item = Vec<&Run>> {
    let of_rows = document.rows.iter().map(|row| row.runs.iter().collect());
    let of_contended = document.contended.iter().map(|row| row.plain_runs().collect());
    let others = measurements(document).map(|(_, measurement)| measurement.runs.iter().collect());
    of_rows.chain(of_contended).chain(others)
}

fn moving_limit(document: &Document) -> Option<Warning> {
    let limits: Vec<Vec<Option<f64>>> =
        runs_of_rows(document).map(|runs| runs.iter().map(|run| run.limit_per_s).collect()).collect();
    let rounds_alike: Vec<Vec<bool>> = limits.iter().map(|of_row| alike(of_row)).collect();
    let is_left_out = |alike: &&bool| !**alike;
    let left_out = rounds_alike.iter().flatten().filter(is_left_out).count();
    if left_out == 0 {
        return None;
    }
    let known = || limits.iter().flatten().copied().flatten();
    let (slowest, fastest) = (known().fold(f64::INFINITY, f64::min), known().fold(0.0, f64::max));
    let refused = rounds_alike.iter().filter(|of_row| is_refused(of_row)).count();
    let refusal = if refused == 0 {
        String::new()
    } else {
        format!("; {refused} of {} rows have none, as half of their runs or more were such", limits.len())
    };
    warning(
        "moving_limit",
        format!(
            "the disk's limit moved between {slowest:.0} and {fastest:.0} writes per second: {left_out} of {} runs, made \
             when it was more than a third off its median, count in no ratio{refusal}",
            limits.iter().flatten().count()
        ),
        "wait until the disk is left alone and run again; figures that are no ratios hold for these moments only",
    )
}

/// (what was measured, its throughput) of every row, of whatever kind.
fn speeds(document: &Document) -> Vec<(String, Estimate)> {
    let of_row = |row: &Row| Some((row.key.to_string(), row.summary.as_ref()?.transactions_per_s));
    let of_contended = |row: &ContendedRow| Some((row.key.to_string(), row.summary.as_ref()?.commits_per_s));
    let rows = document.rows.iter().filter_map(of_row);
    let others = measurements(document)
        .filter_map(|(name, found)| Some((name, found.summary.as_ref()?.operations_per_s)));
    rows.chain(document.contended.iter().filter_map(of_contended)).chain(others).collect()
}

fn wide_intervals(document: &Document) -> Option<Warning> {
    let intervals: Vec<(String, f64)> =
        speeds(document).into_iter().map(|(key, speed)| (key, speed.relative_half_width())).collect();
    let wide: Vec<&(String, f64)> = intervals.iter().filter(|(_, width)| *width > HALF_WIDTH_MAX).collect();
    let (widest, width) = wide.iter().max_by(|left, right| left.1.total_cmp(&right.1))?;
    warning(
        "wide_intervals",
        format!(
            "{} of {} rows have an interval wider than +-{:.0} %; widest: {widest}, +-{:.0} %",
            wide.len(),
            intervals.len(),
            HALF_WIDTH_MAX * 100.0,
            width * 100.0
        ),
        "run again with more runs (`--runs 11`) on an idle machine",
    )
}

fn few_runs(document: &Document) -> Option<Warning> {
    let least = speeds(document).iter().map(|(_, speed)| speed.samples).min()?;
    if least >= 3 {
        return None;
    }
    warning(
        "few_runs",
        format!("{least} run(s) of a row give no interval worth the name"),
        "leave out `--runs` and `--quick`: the default gives an interval",
    )
}

fn failed_inserts(document: &Document) -> Option<Warning> {
    let errors = |row: &ContendedRow| row.summary.as_ref().map_or(0, |summary| summary.errors);
    let failed: Vec<&ContendedRow> = document.contended.iter().filter(|row| errors(row) > 0).collect();
    let worst = failed.iter().max_by_key(|row| errors(row))?;
    warning(
        "failed_inserts",
        format!("INSERTs failed in {}, most in {}: {}", row_count(failed.len()), worst.key, errors(worst)),
        "read `errors` in the JSON (`--json FILE`); SQLITE_BUSY is a wait longer than busy_timeout, which latencies lack",
    )
}

fn row_count(count: usize) -> String {
    if count == 1 { "1 row".to_owned() } else { format!("{count} rows") }
}

/// A wait cannot be seen to be longer than the run it is in.
fn cut_waits(document: &Document) -> Option<Warning> {
    let is_cut = |row: &&ContendedRow| {
        row.runs.iter().any(|run| run.run.latency.max_ns as f64 > run.run.elapsed_ns as f64 * WAIT_SHARE_MAX)
    };
    let cut: Vec<&ContendedRow> = document.contended.iter().filter(is_cut).collect();
    let first = cut.first()?;
    warning(
        "cut_waits",
        format!(
            "in {} a writer waited for more than half of a run, first {}: longer waits cannot show",
            row_count(cut.len()),
            first.key
        ),
        "run again with longer runs (`--seconds 20`)",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::document::LimitRun;
    use crate::bench::document::tests::{contended, document, study};
    use crate::bench::run::{DeviceDelta, Latency};
    use crate::bench::study::initialisation::InitialisationRow;

    fn kinds(document: &Document) -> Vec<String> {
        warnings(document).into_iter().map(|warning| warning.kind).collect()
    }

    fn limit_run(elapsed_ns: u64, device_bytes: u64) -> LimitRun {
        LimitRun {
            round: 0,
            operations: 100,
            elapsed_ns,
            latency: Latency::default(),
            own_bytes: 409_600,
            device: Some(DeviceDelta { written_bytes: device_bytes, write_requests: 100, flushes: None }),
            others_cores: None,
            tick_share: 0.0,
        }
    }

    #[test]
    fn a_quiet_machine_gets_none() {
        assert_eq!(kinds(&document()), Vec::<String>::new());
    }

    #[test]
    fn each_doubt_is_named_alone() {
        let mut in_memory = document();
        in_memory.environment.filesystem.kind = "tmpfs".to_owned();
        assert_eq!(kinds(&in_memory), ["in_memory"]);

        let mut busy = document();
        busy.rows.iter_mut().flat_map(|row| &mut row.runs).for_each(|run| run.others_cores = Some(1.4));
        assert_eq!(kinds(&busy), ["busy_cores"]);

        let mut ticking = document();
        ticking.rows[0].runs[0].tick_share = 0.5;
        assert_eq!(kinds(&ticking), ["scheduler_ticks"]);

        let mut shared = document();
        shared.limits[0].runs = vec![limit_run(100_000_000, 4_096_000); 3];
        assert_eq!(kinds(&shared), Vec::<String>::new(), "a file system may write ten times as much");
        shared.limits[2].runs = vec![limit_run(20_000_000, 0)];
        assert_eq!(kinds(&shared), Vec::<String>::new());
        shared.limits[2].runs = vec![limit_run(20_000_000, 819_200)];
        assert_eq!(kinds(&shared), ["foreign_writes"]);

        let mut moving = document();
        for row in &mut moving.rows {
            row.runs[1].limit_per_s = Some(1_340.0);
        }
        assert_eq!(kinds(&moving), ["moving_limit"]);
        assert!(warnings(&moving)[0].what.contains("2 of 6 runs"), "{:?}", warnings(&moving));
        assert!(!warnings(&moving)[0].what.contains("have none"), "{:?}", warnings(&moving));
        for row in &mut moving.rows {
            row.runs[0].limit_per_s = Some(740.0);
        }
        assert!(warnings(&moving)[0].what.contains("2 of 2 rows have none"), "{:?}", warnings(&moving));

        let mut failed = document();
        failed.rows[1].failure = Some("count is 99 and 100 were acknowledged".to_owned());
        assert_eq!(kinds(&failed), ["failed_rows"]);
    }

    #[test]
    fn contended_rows_are_judged_too() {
        assert_eq!(kinds(&contended()), Vec::<String>::new());
        let mut failing = contended();
        failing.contended[1].summary.as_mut().unwrap().errors = 3;
        assert_eq!(kinds(&failing), ["failed_inserts"]);
        let mut waiting = contended();
        waiting.contended[0].runs[2].run.latency.max_ns = 150_000_000_000;
        assert_eq!(kinds(&waiting), ["cut_waits"]);
        assert!(warnings(&waiting)[0].what.starts_with("in 1 row a writer"), "{:?}", warnings(&waiting));
        let mut wrong = contended();
        wrong.contended[0].failure = Some("integrity_check said: no".to_owned());
        assert_eq!(kinds(&wrong), ["failed_rows"]);
        let mut wide = contended();
        wide.contended[0].summary.as_mut().unwrap().commits_per_s =
            Estimate::of(&[100.0, 500.0, 900.0]).unwrap();
        assert_eq!(kinds(&wide), ["wide_intervals"]);
    }

    #[test]
    fn rows_of_the_study_are_judged_too() {
        assert_eq!(kinds(&study()), Vec::<String>::new());
        let mut failed = study();
        failed.study.as_mut().unwrap().initialisation[0].failure = Some("a block is lost".to_owned());
        assert_eq!(kinds(&failed), ["failed_rows"]);
        let mut busy = study();
        let rows = &mut busy.study.as_mut().unwrap().initialisation;
        let runs = rows.iter_mut().flat_map(|row| &mut row.second_pass.runs);
        runs.for_each(|run| run.others_cores = Some(1.9));
        let rows = &mut busy.study.as_mut().unwrap().initialisation;
        rows.iter_mut().for_each(|row| row.first_pass.runs.truncate(2));
        rows.iter_mut().for_each(InitialisationRow::summarise);
        assert_eq!(kinds(&busy), ["few_runs"], "half of the runs are not most");
    }

    #[test]
    fn intervals_and_runs_are_judged_by_their_summary() {
        let mut wide = document();
        let summary = wide.rows[0].summary.as_mut().unwrap();
        summary.transactions_per_s = Estimate::of(&[100.0, 500.0, 900.0]).unwrap();
        assert_eq!(kinds(&wide), ["wide_intervals"]);
        summary_of_one(&mut wide);
        assert_eq!(kinds(&wide), ["few_runs"]);
        assert!(warnings(&wide).iter().all(|warning| !warning.remedy.is_empty()));
    }

    fn summary_of_one(document: &mut Document) {
        for row in &mut document.rows {
            row.summary.as_mut().unwrap().transactions_per_s = Estimate::of(&[500.0]).unwrap();
        }
    }
}
