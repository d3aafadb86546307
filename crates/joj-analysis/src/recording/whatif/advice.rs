//! What to make of the rows, in sentences that claim no more than was measured.
//!
//! A configuration is worth a word where its rounds were all faster than all rounds of the recorded one, and by a twentieth at least.
//! What overlaps is said to show no clear difference. Of two configurations that are the same, such a difference comes up once in ten
//! times with three rounds, and once in three with two. So two rounds show nothing. On emulated disks rounds may be alike to a ten-thousandth,
//! and other addresses of the same files make more of a difference: what differs by less than a hundredth is the same there.

use crate::recording::whatif::breakdown::BlockedPart;
use crate::recording::whatif::configuration::Configuration;
use crate::recording::whatif::outcome::{WhatifFigures, WhatifResult, WhatifRow};
use crate::recording::whatif::standing::{GAIN_MIN, Standing, another_length, standing};
use crate::statistics::Estimate;

/// With fewer rounds every difference may be chance.
const ROUNDS_MIN: u32 = 3;
/// What a row writes is as much as recorded where it differs by no larger a share.
const SAME_WRITES_MAX: f64 = 0.05;
/// A part of the time in calls is named where it is no smaller a share.
const SHARE_MIN: f64 = 0.25;

/// Said where a row has a range of waits.
const WAITS: &str = "The recording does not tell whether waits with a limit would end earlier than recorded. Low is the time if all do, and high \
                     if none does.";

fn has_waits(row: &WhatifRow) -> bool {
    row.figures().is_some_and(|figures| figures.waits.is_some())
}

/// The sentences.
pub fn sentences(result: &WhatifResult) -> Vec<String> {
    let Some(recorded) = result.figures(Configuration::Recorded) else { return Vec::new() };
    let mut said = vec![where_time_goes(result, recorded)];
    said.extend(another_length(result, recorded));
    said.extend(truth(result));
    said.extend(not_known(result));
    let others = result.rows.iter().filter(|row| row.configuration != Configuration::Recorded);
    let (others, changed): (Vec<_>, Vec<_>) = others
        .filter_map(|row| row.figures().map(|figures| (row.configuration, figures)))
        .partition(|(_, figures)| figures.differing <= recorded.differing);
    said.extend(changed.iter().map(|(row, figures)| other_results(*row, figures)));
    said.extend(result.rows.iter().any(has_waits).then(|| WAITS.to_owned()));
    if result.rounds < ROUNDS_MIN {
        said.push(format!(
            "Fewer than {ROUNDS_MIN} rounds tell no difference from chance: take --rounds {ROUNDS_MIN}."
        ));
        return said;
    }
    said.extend(standings(result, recorded, others));
    said
}

/// Which other rows are faster than the recorded one, which are slower, and of which that is not known.
fn standings(
    result: &WhatifResult,
    recorded: &WhatifFigures,
    others: Vec<(Configuration, &WhatifFigures)>,
) -> Vec<String> {
    let mut said = Vec::new();
    let (few, others): (Vec<_>, Vec<_>) =
        others.into_iter().partition(|(_, figures)| figures.elapsed_ns.has_few_samples());
    let others: Vec<(Configuration, &WhatifFigures, Standing)> = others
        .into_iter()
        .map(|(configuration, figures)| {
            let seems = standing(figures, recorded, result.emulated);
            let lacks_closes = result.lacks_closes && configuration.has_commits();
            let standing = if lacks_closes && seems.is_faster() { Standing::WithoutCloses } else { seems };
            (configuration, figures, standing)
        })
        .collect();
    let mut faster: Vec<(Configuration, &WhatifFigures)> = others
        .iter()
        .filter(|(_, _, standing)| *standing == Standing::Faster)
        .map(|(configuration, figures, _)| (*configuration, *figures))
        .collect();
    faster.sort_by(|one, other| one.1.elapsed_ns.median.total_cmp(&other.1.elapsed_ns.median));
    let (durable, less): (Vec<_>, Vec<_>) =
        faster.iter().partition(|(configuration, _)| configuration.is_durable());
    for (begin, rows) in [("With commits that survive a power cut", durable), ("With less durability", less)]
    {
        if !rows.is_empty() {
            said.push(format!("{begin}: {}.{}", list(&rows), overlaps(&rows)));
        }
    }
    said.extend(same_work(&faster, recorded).filter(|_| result.emulated));
    let perhaps = others.iter().filter(|(_, _, standing)| *standing == Standing::PerhapsFaster);
    let perhaps: Vec<_> = perhaps.map(|(configuration, figures, _)| (*configuration, *figures)).collect();
    if !perhaps.is_empty() {
        said.push(format!(
            "Faster only if waits end earlier: {}.",
            list(&perhaps.iter().collect::<Vec<_>>())
        ));
    }
    for (wanted, begin) in [
        (Standing::WithoutCloses, "Perhaps faster, perhaps slower, as closes of the database are left out"),
        (Standing::Unclear, "No clear difference"),
        (Standing::LittleFaster, "Less than 5 % faster"),
        (Standing::Slower, "Slower"),
    ] {
        let titles: Vec<&str> = others
            .iter()
            .filter(|(_, _, standing)| *standing == wanted)
            .map(|(configuration, ..)| configuration.title())
            .collect();
        if !titles.is_empty() {
            said.push(format!("{begin}: {}.", titles.join("; ")));
        }
    }
    if !few.is_empty() {
        let titles: Vec<&str> = few.iter().map(|(configuration, _)| configuration.title()).collect();
        said.push(format!("Too few rounds to tell: {}.", titles.join("; ")));
    }
    let is_any = |wanted| others.iter().any(|(_, _, standing)| *standing == wanted);
    let is_told = !faster.is_empty() || !perhaps.is_empty() || is_any(Standing::WithoutCloses);
    if !is_told && !others.is_empty() && result.left_out.is_empty() {
        let rows: Vec<_> = others.iter().map(|(row, figures, _)| (*row, *figures)).collect();
        said.push(in_storage(&rows, recorded));
    }
    said
}

/// Which of the faster rows have the disk do the same: on a model of a card, whose merges depend on addresses, that may be chance.
fn same_work(faster: &[(Configuration, &WhatifFigures)], recorded: &WhatifFigures) -> Option<String> {
    let is_same = |(_, figures): &&(Configuration, &WhatifFigures)| {
        let bytes = |figures: &WhatifFigures| figures.device_bytes.map_or(0.0, |bytes| bytes.median);
        let (own, before) = (bytes(figures), bytes(recorded));
        figures.syncs != Some(0)
            && figures.syncs == recorded.syncs
            && (own - before).abs() <= before * SAME_WRITES_MAX
    };
    let titles: Vec<&str> = faster.iter().filter(is_same).map(|(row, _)| row.title()).collect();
    (!titles.is_empty()).then(|| {
        format!(
            "As many syncs and writes as recorded: {}. On a card that merges blocks such a gain may be the chance of addresses.",
            titles.join("; ")
        )
    })
}

/// Where the program also has the disk work in a way that is not replayed.
fn not_known(result: &WhatifResult) -> Option<String> {
    let told: Vec<String> =
        result.left_out.iter().map(|(call, calls)| format!("{} of {call}", of_calls(*calls))).collect();
    (!told.is_empty()).then(|| {
        format!(
            "The program also makes {}, which no row replays. All rows have their time, so without syncs and in RAM it may be much faster \
             than its row.",
            told.join(", ")
        )
    })
}

/// Of a row that is none of the program's: its calls failed, or did something else.
fn other_results(row: Configuration, figures: &WhatifFigures) -> String {
    format!(
        "In {} {} had another result than in the recording, such as an error: so its time is not the program's.",
        row.title(),
        of_calls(figures.differing)
    )
}

fn of_calls(calls: u64) -> String {
    if calls == 1 { "1 call".to_owned() } else { format!("{calls} calls") }
}

/// What to say where the program as a whole is not faster: a user may wait for the storage all the same, between long pauses.
fn in_storage(rows: &[(Configuration, &WhatifFigures)], recorded: &WhatifFigures) -> String {
    let before = &recorded.blocked_ns;
    let is_less = |(_, figures): &&(Configuration, &WhatifFigures)| {
        let blocked = &figures.blocked_ns;
        !blocked.overlaps(before) && blocked.median <= before.median * (1.0 - GAIN_MIN)
    };
    let mut less: Vec<_> = rows.iter().filter(is_less).collect();
    if less.is_empty() {
        return "Of what was measured, nothing is worth changing.".to_owned();
    }
    less.sort_by(|one, other| one.1.blocked_ns.median.total_cmp(&other.1.blocked_ns.median));
    let one = |(configuration, figures): &&(Configuration, &WhatifFigures)| {
        format!("{} {}", configuration.title(), interval(&figures.blocked_ns))
    };
    let told: Vec<String> = less.iter().map(one).collect();
    format!(
        "Nothing makes the program as a whole 5 % faster. It would be in storage for less time than now, {}: {}.",
        interval(before),
        told.join("; ")
    )
}

/// How far the forecast is off where the program itself was run.
fn truth(result: &WhatifResult) -> Option<String> {
    let errors = result.rows.iter().filter_map(|row| Some((row.configuration, row.error()?)));
    let errors: Vec<(Configuration, f64)> = errors.collect();
    let (worst, error) = errors.iter().max_by(|one, other| one.1.abs().total_cmp(&other.1.abs()))?;
    let mean = errors.iter().map(|(_, error)| error.abs()).sum::<f64>() / errors.len() as f64;
    Some(format!(
        "The program itself was run in {} of these configurations. There the forecast is off by {:.1} % in the mean, and by {:+.1} % at worst ({}).",
        errors.len(),
        mean * 100.0,
        error * 100.0,
        worst.title()
    ))
}

/// Of which time how much are calls, and what most of them are.
fn where_time_goes(result: &WhatifResult, recorded: &WhatifFigures) -> String {
    let (elapsed, blocked) = (&recorded.elapsed_ns, &recorded.blocked_ns);
    let begin = match result.threads {
        0 | 1 => format!("Of {} {} are calls on files", seconds(elapsed.median), seconds(blocked.median)),
        threads => format!(
            "In {} its {threads} threads are {} in calls on files",
            seconds(elapsed.median),
            seconds(blocked.median)
        ),
    };
    let named = result.parts.iter().take(2);
    let named: Vec<String> = named
        .filter(|part| part.blocked_ns.median >= blocked.median * SHARE_MIN)
        .map(|part| part_words(part, result))
        .collect();
    match named.as_slice() {
        [] => format!("{begin}."),
        named => format!("{begin}: {}.", named.join(", ")),
    }
}

fn part_words(part: &BlockedPart, result: &WhatifResult) -> String {
    let database = result.databases.iter().find(|database| database.path == part.files);
    let mode = database.map_or_else(String::new, |database| match database.journal_mode.as_str() {
        // The recording does not tell how the journal ends, or there is none.
        "journal" => " (a rollback journal)".to_owned(),
        "none" => " (no journal)".to_owned(),
        mode => format!(" ({mode} mode)"),
    });
    format!("{} are {} {} of {}{mode}", seconds(part.blocked_ns.median), part.calls, part.call, part.files)
}

/// The names with their times.
fn list(rows: &[&(Configuration, &WhatifFigures)]) -> String {
    let one = |row: &&(Configuration, &WhatifFigures)| {
        let (elapsed_ns, (low, high)) = (row.1.elapsed_ns, row.1.range_ns());
        format!("{} would take {}", row.0.title(), interval(&Estimate { low, high, ..elapsed_ns }))
    };
    rows.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// A time with its interval.
fn interval(time: &Estimate) -> String {
    let [median, low, high] = [time.median, time.low, time.high].map(seconds);
    if low == high { median } else { format!("{median} ({low} to {high})") }
}

/// What to say where the next ones of a list are not clearly slower.
fn overlaps(rows: &[&(Configuration, &WhatifFigures)]) -> &'static str {
    let is_one = |pair: &[&(Configuration, &WhatifFigures)]| {
        let [one, other] = [0, 1].map(|at| pair[at].1.range_ns());
        one.0 <= other.1 && other.0 <= one.1
    };
    if rows.windows(2).any(is_one) { " Where these times overlap, there is no clear difference." } else { "" }
}

/// Nanoseconds as people say them.
pub fn seconds(ns: f64) -> String {
    match ns {
        ns if ns >= 99.95e9 => format!("{:.1} s", ns / 1e9),
        ns if ns >= 0.9995e9 => format!("{:.2} s", ns / 1e9),
        ns if ns >= 9.95e6 => format!("{:.0} ms", ns / 1e6),
        ns => format!("{:.2} ms", ns / 1e6),
    }
}

#[cfg(test)]
mod tests;
