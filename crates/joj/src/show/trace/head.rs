//! What a trace says of itself: where it comes from, which disks there were, and what a reader must know before the figures.

use joj_analysis::trace::header::{Disk, Source};
use joj_analysis::trace::summary::Summary;
use joj_analysis::trace::summary::counts::RequestCount;

use crate::show::text::{count, duration};
use crate::show::trace::processes;
use crate::show::words::{counted, kib_of, percent, plain};

/// Lines about the capture, the disks and the filesystems.
pub fn facts(summary: &Summary) -> Vec<String> {
    let header = &summary.header;
    let writer = if header.writer.is_empty() { "an unknown program" } else { &header.writer };
    let mut origin = format!("trace by {}, {}", plain(writer), source(header.source));
    if !header.kernel.is_empty() {
        origin.push_str(&format!(", kernel {}", plain(&header.kernel)));
    }
    let mut lines = vec![origin];
    if !header.command.is_empty() {
        lines.push(format!("command: {}", plain(&header.command.join(" "))));
    }
    lines.extend(processes::share(summary));
    let disks = disks(summary);
    lines.extend(disks.iter().map(|disk| format!("disk {}", device(disk))));
    for filesystem in &header.filesystems {
        let on_seen = |number| {
            disks.iter().any(|disk| header.disk(number).is_some_and(|part| part.whole == disk.number))
        };
        if filesystem.disks.iter().any(|&number| on_seen(number)) {
            let (kind, place) = (plain(&filesystem.kind), plain(&filesystem.mount_point));
            lines.push(format!("{kind} at {place} with {}", plain(&filesystem.options)));
        }
    }
    let discards = match summary.counts.discards {
        RequestCount { requests: 0, .. } => String::new(),
        RequestCount { requests, bytes } => {
            format!(
                ", {} KiB discarded or zeroed in {}",
                kib_of(bytes),
                counted(requests, "request", "requests")
            )
        }
    };
    lines.push(format!(
        "{}, {}, {}; {}{discards}",
        duration(summary.span_ns),
        counted(summary.events, "event", "events"),
        match summary.lost {
            Some(0) => "none lost".to_owned(),
            Some(lost) => format!("{} LOST", count(lost)),
            None => "how many were lost is not known".to_owned(),
        },
        match summary.counts.writes.bytes {
            0 => "nothing was written".to_owned(),
            bytes =>
                format!("{} of {} KiB written are placed", percent(summary.attributed_share), kib_of(bytes)),
        }
    ));
    lines
}

/// What makes figures smaller than the truth, or doubtful; a sentence each, the first letter small.
pub fn careful(summary: &Summary) -> Vec<String> {
    let (counts, header) = (&summary.counts, &summary.header);
    let mut found = Vec::new();
    if let Some(lost @ 1..) = summary.lost {
        let events = counted(lost, "event was", "events were");
        found.push(format!("{events} lost: requests are missing, and others stand without their file"));
    }
    match &header.ending {
        None => found.push(
            "the trace has no end: it was cut off, and what followed is not in these figures".to_owned(),
        ),
        Some(ending) => {
            if let Some(reason) = &ending.cut_short {
                found.push(format!("the capture ended early: {}", plain(reason)));
            }
        }
    }
    let unattributed = counts.written_by_evidence[2];
    if unattributed > 0 {
        let share = percent(unattributed as f64 / counts.written_by_evidence.iter().sum::<u64>() as f64);
        let kib = kib_of(unattributed);
        found.push(format!(
            "{kib} KiB ({share}) of what was written are unattributed: nobody saw whose they are"
        ));
    }
    if counts.unissued.requests > 0 {
        let requests = counted(counts.unissued.requests, "request was", "requests were");
        let kib = kib_of(counts.unissued.bytes);
        found.push(format!("{requests} ({kib} KiB) handed over and never seen at the driver"));
    }
    if counts.untold.requests > 0 {
        let requests = counted(counts.untold.requests, "request", "requests");
        found.push(format!(
            "the kernel did not tell when {requests} ({} KiB) were complete; they were, as what waited for them went on, so they are \
             counted, without a latency",
            kib_of(counts.untold.bytes)
        ));
    }
    if counts.errors > 0 {
        found.push(format!("{} failed", counted(counts.errors, "request", "requests")));
    }
    let sqlite = |name: &str| ["sqlite-database", "rollback-journal", "write-ahead-log"].contains(&name);
    if summary.commits.total == 0 && summary.sync_calls.iter().any(|calls| sqlite(&calls.file_type)) {
        let why = "locks were not captured, or SQLite held them throughout (locking_mode=EXCLUSIVE)";
        found.push(format!("SQLite's files were synced, but no commit was seen: {why}"));
    } else if summary.sqlite_syncs_outside > 0 {
        let calls = counted(summary.sqlite_syncs_outside, "sync call", "sync calls");
        let why = "SQLite takes no locks for the checkpoint of its last close, nor in exclusive locking mode";
        found.push(format!("{calls} of SQLite's files are in no commit and no checkpoint below: {why}"));
    }
    if summary.commits.until_close > 0 {
        let commits = counted(summary.commits.until_close, "commit", "commits");
        found.push(format!(
            "{commits} lasted until the connection closed (locking_mode=EXCLUSIVE): what was committed in between is not told apart"
        ));
    }
    found.extend(header.inferred.iter().map(|guess| format!("inferred: {}", plain(guess))));
    found
}

/// Whole disks that requests were seen of; all, where none were.
pub fn disks(summary: &Summary) -> Vec<&Disk> {
    let whole = || summary.header.disks.iter().filter(|disk| disk.number == disk.whole);
    let seen: Vec<&Disk> =
        whole().filter(|disk| summary.disks.iter().any(|one| one.disk == disk.name)).collect();
    if seen.is_empty() { whole().collect() } else { seen }
}

/// A disk in words: `loop2, write back, no FUA, in /img/disk`.
pub fn device(disk: &Disk) -> String {
    let cache = match disk.write_cache {
        Some(true) => "write back",
        Some(false) => "write through",
        None => "cache unknown",
    };
    let fua = match disk.fua {
        Some(true) => "FUA",
        Some(false) => "no FUA",
        None => "FUA unknown",
    };
    let behind = disk.behind.as_ref().map_or_else(String::new, |file| format!(", in {}", plain(file)));
    format!("{}, {cache}, {fua}{behind}", plain(&disk.name))
}

fn source(source: Source) -> &'static str {
    match source {
        Source::Bpf => "eBPF",
        Source::Tracefs => "tracefs",
        Source::Blktrace => "imported from blktrace",
        Source::Blkparse => "imported from blkparse",
        Source::Ftrace => "imported from ftrace",
        Source::Ptrace => "ptrace",
        Source::Strace => "imported from strace",
        Source::Mobigen => "imported from MobiGen",
        Source::Generated => "generated",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::show::trace::sample;
    use joj_analysis::trace::header::Ending;

    #[test]
    fn nothing_doubtful_is_silent() {
        let mut summary = sample::small().summary;
        assert!(careful(&summary).is_empty(), "a whole trace has no warning");
        summary.lost = Some(3);
        summary.counts.written_by_evidence = [1000 << 10, 0, 4096];
        summary.counts.errors = 1;
        summary.commits.total = 0;
        summary.header.inferred = vec!["the clock".to_owned()];
        summary.header.ending =
            Some(Ending { cut_short: Some("the disk is full".to_owned()), ..Ending::default() });
        let found = careful(&summary);
        let beginnings = [
            "3 events were lost: requests are missing",
            "the capture ended early: the disk is full",
            "4 KiB (0.4 %) of what was written are unattributed",
            "1 request failed",
            "SQLite's files were synced, but no commit was seen",
            "inferred: the clock",
        ];
        assert_eq!(found.len(), beginnings.len(), "{found:?}");
        for (text, beginning) in found.iter().zip(beginnings) {
            assert!(text.starts_with(beginning), "{text}");
        }
        summary.header.ending = None;
        assert!(careful(&summary)[1].starts_with("the trace has no end"));
    }
}
