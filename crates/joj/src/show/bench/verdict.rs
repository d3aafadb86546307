//! A result in four sentences: the disk, many writers, one writer, what to change.

use joj_analysis::bench::document::Document;
use joj_analysis::bench::key::{LogState, Word};
use joj_analysis::bench::promise::Reservation;
use joj_analysis::bench::verdict::{Beside, Contest, Findings, OneWriter, findings};

use crate::show::paper::{Mood, Paper};
use crate::show::text::{duration, number};

/// A sentence, and what it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sentence {
    /// What it is about, in a word or two.
    pub about: &'static str,
    /// What was found.
    pub text: String,
    /// Whether that is good.
    pub mood: Mood,
}

/// The four sentences; none where no transaction of SQLite's was measured.
pub fn sentences(document: &Document) -> Vec<Sentence> {
    let Some(found) = findings(document) else { return Vec::new() };
    let many = found.many_writers.as_ref();
    let sentence = |about, text, mood| Sentence { about, text, mood };
    vec![
        sentence("Your disk", disk(&found), Mood::Plain),
        sentence("Many writers", many_writers(document, many), mood(many.map(|contest| contest.speed))),
        sentence("One writer", one_writer(&found.one_writer), mood(common(&found.one_writer))),
        sentence("What to change", change(document, &found), Mood::Plain),
    ]
}

/// For a terminal; empty without sentences.
pub fn text(document: &Document, paper: &Paper) -> String {
    let sentences = sentences(document);
    if sentences.is_empty() {
        return String::new();
    }
    let line = |sentence: &Sentence| {
        let about = format!("{:<16}", format!("{}:", sentence.about));
        let mood = if sentence.mood == Mood::Plain { Mood::Strong } else { sentence.mood };
        paper.item(&paper.paint(mood, &about), &sentence.text)
    };
    format!("\n{}", sentences.iter().map(line).collect::<String>())
}

fn mood(speed: Option<Beside>) -> Mood {
    match speed {
        Some(Beside::Faster(_)) => Mood::Good,
        Some(Beside::Slower(_)) => Mood::Bad,
        _ => Mood::Plain,
    }
}

fn disk(found: &Findings<'_>) -> String {
    if found.reservation == Some(Reservation::Memory) {
        return "there is none: files are in memory here, and nothing survives a power cut".to_owned();
    }
    let Some((limit, speed)) = found.limit.and_then(|limit| Some((limit, limit.operations_per_s?))) else {
        return "its own speed was not measured".to_owned();
    };
    let (median, slow) = (duration(limit.latency.p50_ns), duration(limit.latency.p99_ns));
    let per_s = number(speed.median);
    format!(
        "makes {per_s} writes of 4 KiB durable in a second; half of them within {median}, 99 % within {slow}"
    )
}

fn many_writers(document: &Document, contest: Option<&Contest<'_>>) -> String {
    let Some(contest) = contest else {
        let failed = document.contended.iter().any(|row| row.key.writers > 1 && row.failure.is_some());
        return if failed { "FAILED, see below" } else { "not measured; `joj bench --threads 8` does" }
            .to_owned();
    };
    let [stock, ours] = contest.longest_wait_ns.map(duration);
    let speed = match contest.speed {
        Beside::Faster(ratio) | Beside::Slower(ratio) => {
            format!("{} times as many commits with waldio", number(ratio))
        }
        Beside::Unclear => "no clear difference in commits with waldio".to_owned(),
        Beside::TooFewRuns => TOO_FEW.to_owned(),
        Beside::DiskMoved => MOVED.to_owned(),
    };
    let (writers, kind) = (contest.key.writers, contest.key.kind.word());
    format!("{speed}; the longest wait was {ours} instead of {stock} ({writers} {kind})")
}

const TOO_FEW: &str = "fewer than three runs tell of no difference";
const MOVED: &str = "the disk changed too much to compare";

/// What all builds have in common; `None` where they differ.
fn common(all: &[OneWriter<'_>]) -> Option<Beside> {
    let first = all.first()?.speed;
    let is_like =
        |other: &OneWriter<'_>| std::mem::discriminant(&other.speed) == std::mem::discriminant(&first);
    all.iter().all(is_like).then_some(first)
}

fn one_writer(all: &[OneWriter<'_>]) -> String {
    let words = |speed| match speed {
        Beside::Faster(ratio) | Beside::Slower(ratio) => {
            format!("{} times as fast with waldio", number(ratio))
        }
        Beside::Unclear => "no clear difference with waldio".to_owned(),
        Beside::TooFewRuns => TOO_FEW.to_owned(),
        Beside::DiskMoved => MOVED.to_owned(),
    };
    let Some(first) = all.first() else {
        return "not measured with and without waldio".to_owned();
    };
    let log = if first.log == LogState::Fresh { "new log" } else { "log in use" };
    let version = |one: &OneWriter<'_>| one.build.map_or("", |build| &build.version).to_owned();
    match common(all) {
        Some(speed @ (Beside::Unclear | Beside::TooFewRuns | Beside::DiskMoved)) => {
            let versions = all.iter().map(version).collect::<Vec<_>>().join(" and ");
            format!("{} ({log}, SQLite {versions})", words(speed))
        }
        _ => {
            let each = all.iter().map(|one| format!("{} (SQLite {})", words(one.speed), version(one)));
            format!("{}; {log}", each.collect::<Vec<_>>().join(", "))
        }
    }
}

/// Only what the rows above show: nobody is sent to waldio for a gain that was not seen.
fn change(document: &Document, found: &Findings<'_>) -> String {
    if !document.is_sound() {
        return "do not use the rows that FAILED; see below".to_owned();
    }
    if let Some(reservation) = found.reservation {
        return format!("{}: what holds there, these rows cannot tell", reservation.remedy());
    }
    let many = found.many_writers.as_ref().map(|contest| contest.speed);
    let one = found.one_writer.iter().map(|one| one.speed);
    let any_one = one.clone().any(Beside::is_faster);
    let mut all = many.into_iter().chain(one);
    let waldio = match (many, any_one) {
        (Some(Beside::Faster(_)), true) => "load waldio (docs/usage.md)",
        (Some(Beside::Faster(_)), false) => "load waldio where several connections write (docs/usage.md)",
        (_, true) => "load waldio where one connection writes (docs/usage.md)",
        (None, false) if found.one_writer.is_empty() => "",
        _ if all.clone().any(|speed| speed == Beside::TooFewRuns) => "measure again, with three runs or more",
        _ if all.any(|speed| speed == Beside::DiskMoved) => "measure again on a disk that is left alone",
        _ => "nothing: waldio gains nothing that could be measured here",
    };
    let wal = match found.delete_mode {
        Some(Beside::Slower(ratio)) => {
            format!("use WAL: one writer is {} times as fast with it as in DELETE mode", number(1.0 / ratio))
        }
        _ => String::new(),
    };
    let parts: Vec<&str> = [waldio, &wal].into_iter().filter(|part| !part.is_empty()).collect();
    if parts.is_empty() { "nothing that these rows tell of".to_owned() } else { parts.join("; ") }
}
