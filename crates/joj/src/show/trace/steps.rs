//! Transactions step by step, as text: which call made which requests.

use joj_analysis::filesystem::class::Class;
use joj_analysis::trace::attribution::request::{Request, Sync, Transaction, TransactionKind};
use joj_analysis::trace::event::{DeviceNumber, Event, EventKind, Operation, RequestFlags};
use joj_analysis::trace::file_type::FileType;
use joj_analysis::trace::header::{Header, Source};
use joj_analysis::trace::steps::{StepsOwner, TransactionStep, TransactionSteps};
use joj_analysis::trace::texts::{Text, Texts};

use crate::show::text::{count, number, wrap};
use crate::show::trace::contents as trace_contents;
use crate::show::words::{counted, kib_of, last_part, path, plain};

/// The width of what a step does; its duration stands behind it.
const STEP_LETTERS: usize = 62;

/// All transactions, one behind the other.
pub fn transactions(transactions: &[TransactionSteps], texts: &Texts, header: &Header) -> String {
    let blocks: Vec<String> = transactions.iter().map(|one| transaction(one, texts, header)).collect();
    blocks.join("\n")
}

/// One transaction: a line about the whole, then a line for each step with its microseconds from the start.
fn transaction(told: &TransactionSteps, texts: &Texts, header: &Header) -> String {
    let (head, begun_ns) = match &told.owner {
        StepsOwner::Transaction(transaction) => {
            (transaction_head(transaction, &told.steps, texts, header), transaction.begun_ns)
        }
        StepsOwner::Sync(sync) => (sync_head(sync, texts), sync.begun_ns),
    };
    let mut disks: Vec<DeviceNumber> = requests(&told.steps).map(|request| request.disk).collect();
    disks.sort_unstable();
    disks.dedup();
    let mut text = format!("{head}\n");
    if let StepsOwner::Sync(sync) = &told.owner {
        text.push_str(&sync_line(sync, begun_ns, texts));
    }
    let mut steps: Vec<(u64, &TransactionStep)> =
        told.steps.iter().map(|step| (shown_ns(step), step)).collect();
    steps.sort_by_key(|(time_ns, _)| *time_ns);
    for (time_ns, step) in steps {
        text.push_str(&match step {
            TransactionStep::Sync(sync) => sync_line(sync, begun_ns, texts),
            TransactionStep::Request(request) => {
                let disk = (disks.len() > 1).then(|| disk_name(request.disk, header));
                let what = request_words(request, disk.as_deref(), texts);
                let time = request.latency_ns().map_or_else(|| "not complete".to_owned(), microseconds);
                let who = plain(texts.get(request.command));
                line(time_ns, begun_ns, &format!("  {what}"), &format!("{time}  [{who}]"))
            }
            TransactionStep::Note(event) => line(time_ns, begun_ns, &note_words(event, texts), ""),
        });
    }
    text
}

/// When a step is shown: a request when it was handed over, but a flush, and a write that waited for one, when it was issued.
fn shown_ns(step: &TransactionStep) -> u64 {
    match step {
        TransactionStep::Request(request)
            if request.operation == Operation::Flush
                || request.runs.iter().any(|run| run.intended.has(RequestFlags::PREFLUSH)) =>
        {
            request.issued_ns
        }
        _ => step.time_ns(),
    }
}

fn requests(steps: &[TransactionStep]) -> impl Iterator<Item = &Request> {
    steps.iter().filter_map(|step| match step {
        TransactionStep::Request(request) => Some(request),
        _ => None,
    })
}

fn line(time_ns: u64, begun_ns: u64, what: &str, behind: &str) -> String {
    let since = if time_ns >= begun_ns {
        (time_ns - begun_ns) as f64
    } else {
        // A request may have been handed over before the lock that its transaction begins with.
        -((begun_ns - time_ns) as f64)
    };
    let indent = what.len() - what.trim_start().len();
    let room = STEP_LETTERS - indent;
    let mut pieces = wrap(what.trim_start(), room, room - 4).into_iter();
    let first = format!("{:indent$}{}", "", pieces.next().unwrap_or_default());
    let first = format!("{:>10.1}  {first:<STEP_LETTERS$}  {behind}", since / 1e3);
    let mut text = format!("{}\n", first.trim_end());
    for piece in pieces {
        text.push_str(&format!("{:18}{piece}\n", ""));
    }
    text
}

/// `302 us`.
fn microseconds(nanoseconds: u64) -> String {
    let us = nanoseconds as f64 / 1e3;
    let text = if us < 99.5 { number(us) } else { count((nanoseconds + 500) / 1000) };
    format!("{text:>7} us")
}

fn sync_line(sync: &Sync, begun_ns: u64, texts: &Texts) -> String {
    let took = sync.ended_ns.map(|ended_ns| microseconds(ended_ns.saturating_sub(sync.begun_ns)));
    let took = took.unwrap_or_else(|| "did not return".to_owned());
    let name = if sync.name == Text::NONE { "name not seen".to_owned() } else { short(sync.name, texts) };
    let failed = if sync.result < 0 {
        format!(" FAILED, errno {}", sync.result.unsigned_abs())
    } else {
        String::new()
    };
    let call = plain(texts.get(sync.call));
    let idle = if sync.requests == 0 { "  (no request)" } else { "" };
    line(sync.begun_ns, begun_ns, &format!("{call}({name}){failed}{idle}"), &took)
}

fn short(name: Text, texts: &Texts) -> String {
    path(last_part(texts.get(name)), 40)
}

fn disk_name(disk: DeviceNumber, header: &Header) -> String {
    header.disk(disk).map_or_else(|| disk.to_string(), |disk| plain(&disk.name))
}

fn transaction_head(
    transaction: &Transaction,
    steps: &[TransactionStep],
    texts: &Texts,
    header: &Header,
) -> String {
    let name = texts.get(transaction.name);
    let name = path(name.strip_suffix("-shm").unwrap_or(name), 40);
    let kind = match transaction.kind {
        TransactionKind::Commit => {
            format!("commit {}  {}", transaction.id.0, way(transaction, steps, texts, header))
        }
        TransactionKind::Checkpoint => format!("checkpoint {}", transaction.id.0),
        TransactionKind::Recovery => format!("recovery {}", transaction.id.0),
    };
    let joj = match transaction.journal_of_journal_bytes {
        0 => String::new(),
        bytes => format!(" ({} of it for SQLite's journal)", kib_of(bytes)),
    };
    format!(
        "{kind}  {name}  {}\n    {}{joj}; {}, {}, {}",
        duration_of(transaction.begun_ns, transaction.ended_ns),
        volume(&transaction.bytes),
        counted(transaction.writes, "write", "writes"),
        counted(transaction.flushes, "flush", "flushes"),
        counted(transaction.syncs, "sync", "syncs"),
    )
}

fn sync_head(sync: &Sync, texts: &Texts) -> String {
    format!(
        "{} {}  {}  {}\n    {}; {}, {}",
        plain(texts.get(sync.call)),
        sync.id.0,
        path(texts.get(sync.name), 40),
        duration_of(sync.begun_ns, sync.ended_ns),
        volume(&sync.bytes),
        counted(sync.writes, "write", "writes"),
        counted(sync.flushes, "flush", "flushes"),
    )
}

fn duration_of(begun_ns: u64, ended_ns: Option<u64>) -> String {
    ended_ns.map_or_else(
        || "not over".to_owned(),
        |ended_ns| microseconds(ended_ns.saturating_sub(begun_ns)).trim_start().to_owned(),
    )
}

/// `56 KiB = 24 data + 32 journal`.
fn volume(bytes: &[u64; Class::ALL.len()]) -> String {
    let classes = Class::ALL.iter().map(|class| (class.text(), bytes[usize::from(class.code())]));
    let parts: Vec<String> = classes
        .filter(|(_, bytes)| *bytes > 0)
        .map(|(name, bytes)| format!("{} {name}", kib_of(bytes)))
        .collect();
    match parts.as_slice() {
        [] => "nothing written".to_owned(),
        _ => format!("{} KiB = {}", kib_of(bytes.iter().sum()), parts.join(" + ")),
    }
}

/// How SQLite made it durable, as far as its lock and its files show.
fn way(transaction: &Transaction, steps: &[TransactionStep], texts: &Texts, header: &Header) -> &'static str {
    if texts.get(transaction.name).ends_with("-shm") {
        return "WAL";
    }
    let notes = || {
        steps.iter().filter_map(|step| match step {
            TransactionStep::Note(event) => Some((event.kind, texts.get(event.name))),
            _ => None,
        })
    };
    let writes = || requests(steps).filter(|request| request.operation == Operation::Write);
    let runs = || writes().flat_map(|request| &request.runs);
    let synced = steps.iter().any(
        |step| matches!(step, TransactionStep::Sync(sync) if sync.file_type == FileType::RollbackJournal),
    );
    let journal_written = runs().any(|run| run.file_type == FileType::RollbackJournal);
    if notes().any(|(kind, name)| kind == EventKind::Unlinked && name.ends_with("-journal")) {
        "rollback journal, deleted"
    } else if notes().any(|(kind, _)| kind == EventKind::Truncated) {
        "rollback journal, truncated"
    } else if synced || journal_written {
        if tells_removals(header, transaction.file.device) {
            "rollback journal, kept"
        } else {
            "rollback journal"
        }
    } else if runs().any(|run| run.file_type == FileType::WriteAheadLog) {
        "WAL"
    } else {
        "no journal written"
    }
}

/// True where a journal that was deleted or cut would be a step: a capture on a filesystem whose records are of the thread that did it.
fn tells_removals(header: &Header, device: DeviceNumber) -> bool {
    let filesystem = header.filesystems.iter().find(|filesystem| filesystem.device == device);
    let kind = filesystem.map_or("", |filesystem| filesystem.kind.as_str());
    match header.source {
        Source::Bpf => matches!(kind, "ext4" | "ext3" | "ext2" | "xfs" | "f2fs"),
        // Where blocks have no extents, cutting a file is not told.
        Source::Tracefs | Source::Generated => matches!(kind, "ext4" | "f2fs"),
        _ => false,
    }
}

fn note_words(event: &Event, texts: &Texts) -> String {
    let name = short(event.name, texts);
    match event.kind {
        EventKind::Unlinked if event.detail > 0 => {
            format!("unlink {name}, {} left", counted(event.detail.unsigned_abs(), "name", "names"))
        }
        EventKind::Unlinked => format!("unlink {name}"),
        EventKind::Truncated => format!("truncate {name} to {} KiB", kib_of(event.bytes)),
        other => format!("{} {name}", other.text()),
    }
}

fn request_words(request: &Request, disk: Option<&str>, texts: &Texts) -> String {
    let disk = disk.map_or_else(String::new, |disk| format!("{disk}:"));
    let mut text = match request.operation {
        Operation::Flush if request.runs.is_empty() => "flush".to_owned(),
        Operation::Flush => format!("flush {disk}").trim_end_matches([':', ' ']).to_owned(),
        operation => format!("{} {} KiB @{disk}{}", operation.text(), kib_of(request.bytes), request.sector),
    };
    let contents = trace_contents::words(&request.runs, texts);
    if request.operation != Operation::Flush && !contents.is_empty() {
        text.push_str(&format!("  {contents}"));
    }
    let any = |flag| request.runs.iter().any(|run| run.intended.has(flag));
    let wanted: Vec<&str> = [(RequestFlags::PREFLUSH, "PREFLUSH"), (RequestFlags::FUA, "FUA")]
        .into_iter()
        .filter(|(flag, _)| request.operation == Operation::Write && any(*flag))
        .map(|(_, name)| name)
        .collect();
    if !wanted.is_empty() {
        text.push_str(&format!("  wants {}", wanted.join("+")));
    }
    if request.unissued {
        text.push_str("  (never seen at the driver)");
    }
    if request.error != 0 {
        text.push_str(&format!("  FAILED, errno {}", request.error.unsigned_abs()));
    }
    text
}

#[cfg(test)]
mod tests {
    use joj_analysis::trace::header::MountedFilesystem;

    use super::*;
    use crate::show::trace::sample;

    #[test]
    fn a_commit_is_told_step_by_step() {
        let sample = sample::small();
        let text = transactions(&sample.transactions[..1], &sample.texts, &sample.summary.header);
        println!("{text}");
        assert_eq!(text, include_str!("steps.expected"));
    }

    /// A commit, another process's call that fails on another filesystem, and a checkpoint.
    fn with_another_process(command_process: Option<u32>) -> sample::Sample {
        let other = DeviceNumber((8 << 20) + 1);
        let mut writer = sample::SampleWriter::new("/data/app.db");
        writer.commit_with_log(3);
        writer.failed_sync(other);
        writer.checkpoint();
        let mut header = Header { command_process, ..sample::header() };
        header.filesystems.push(MountedFilesystem {
            device: other,
            kind: "ext4".to_owned(),
            ..MountedFilesystem::default()
        });
        writer.finish(&header)
    }

    #[test]
    fn a_log_a_checkpoint_and_a_call_that_failed_are_told() {
        let sample = with_another_process(None);
        let text = transactions(&sample.transactions, &sample.texts, &sample.summary.header);
        println!("{text}");
        assert_eq!(text, include_str!("steps_of_log.expected"));
    }

    #[test]
    fn a_command_that_has_transactions_is_shown_alone() {
        let processes = |command_process| {
            let sample = with_another_process(command_process);
            let of = |told: &TransactionSteps| match &told.owner {
                StepsOwner::Transaction(transaction) => transaction.process,
                StepsOwner::Sync(sync) => sync.process,
            };
            sample.transactions.iter().map(of).collect::<Vec<u32>>()
        };
        let everybodys = processes(None);
        assert!(everybodys.contains(&200) && everybodys.len() > 1, "{everybodys:?}");
        assert_eq!(processes(Some(200)), [200]);
        assert_eq!(processes(Some(1)), everybodys, "it has none, as a shell whose children have them");
    }

    #[test]
    fn a_journal_counts_as_kept_only_where_its_removal_would_be_told() {
        let told = |source, kind: &str| {
            let device = DeviceNumber(9);
            let filesystem =
                MountedFilesystem { device, kind: kind.to_owned(), ..MountedFilesystem::default() };
            tells_removals(&Header { source, filesystems: vec![filesystem], ..Header::default() }, device)
        };
        let kinds = ["ext4", "xfs", "btrfs", "f2fs", "nilfs2", "ext3"];
        assert_eq!(kinds.map(|kind| told(Source::Bpf, kind)), [true, true, false, true, false, true]);
        assert_eq!(kinds.map(|kind| told(Source::Tracefs, kind)), [true, false, false, true, false, false]);
        assert_eq!(kinds.map(|kind| told(Source::Ftrace, kind)), [false; 6]);
    }

    #[test]
    fn steps_are_told_in_the_order_of_the_times_beside_them() {
        let mut sample = sample::small();
        sample.transactions[0].steps.reverse();
        let text = transactions(&sample.transactions[..1], &sample.texts, &sample.summary.header);
        assert_eq!(text, include_str!("steps.expected"));
    }

    #[test]
    fn a_transaction_on_two_disks_names_them() {
        let mut sample = sample::small();
        let transaction = &mut sample.transactions[0];
        for step in &mut transaction.steps {
            if let TransactionStep::Request(request) = step
                && request.sector > 1_000_000
            {
                // As with a journal on a disk of its own.
                request.disk = DeviceNumber((8 << 20) + 1);
            }
        }
        let text = transactions(&sample.transactions[..1], &sample.texts, &sample.summary.header);
        for expected in ["write 12 KiB @loop2:270456", "write 4 KiB @8:1:1049120", "flush loop2"] {
            assert!(text.contains(expected), "{expected} is not in\n{text}");
        }
    }
}
