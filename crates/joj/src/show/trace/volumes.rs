//! Requests and bytes of a trace as tables: by class and part, the panels of the papers' figures, files, disks.

use joj_analysis::trace::summary::counts::{ReadAndWritten, RequestCount};
use joj_analysis::trace::summary::files::FileVolume;
use joj_analysis::trace::summary::{DiskCheck, Summary};

use crate::show::sheet::Sheet;
use crate::show::text::count;
use crate::show::words::{counted, kib_of, part_of, path, plain};

/// So much of a path fits on a line.
const PATH_LETTERS: usize = 40;

/// What was written and read, by class and part.
pub fn classes(summary: &Summary) -> Sheet {
    let counts = &summary.counts;
    let mut sheet = Sheet::new(
        "What it was for",
        &["class, part", "KiB written", "share", "requests", "runs", "KiB read", "reads"],
    );
    for class in &counts.classes {
        let prefix = format!("{}: ", class.label);
        let own = |part: &&ReadAndWritten| part.label == class.label || part.label.starts_with(&prefix);
        let parts: Vec<&ReadAndWritten> = counts.parts.iter().filter(own).collect();
        let runs = parts.iter().map(|part| part.written.requests).sum();
        sheet.line(vec![
            class.label.clone(),
            kib_of(class.written.bytes),
            part_of(class.written.bytes, counts.writes.bytes),
            count(class.written.requests),
            count(runs),
            kib_of(class.read.bytes),
            count(class.read.requests),
        ]);
        // A class of which nothing more is known has one part, which says the same again.
        for part in parts.iter().filter(|part| parts.len() > 1 || part.label != class.label) {
            let name = part.label.strip_prefix(&prefix).unwrap_or("not known which");
            sheet.line(vec![
                format!("  {name}"),
                kib_of(part.written.bytes),
                part_of(part.written.bytes, counts.writes.bytes),
                String::new(),
                count(part.written.requests),
                kib_of(part.read.bytes),
                String::new(),
            ]);
        }
    }
    if !sheet.lines.is_empty() {
        sheet.line(vec![
            "all".to_owned(),
            kib_of(counts.writes.bytes),
            part_of(counts.writes.bytes, counts.writes.bytes),
            count(counts.writes.requests),
            count(counts.parts.iter().map(|part| part.written.requests).sum()),
            kib_of(counts.reads.bytes),
            count(counts.reads.requests),
        ]);
    }
    hide_reads(&mut sheet, counts.reads);
    sheet.notes = flush_notes(summary);
    sheet
}

/// The last two columns are about reads: not shown where nothing was read.
fn hide_reads(sheet: &mut Sheet, reads: RequestCount) {
    if reads.requests == 0 {
        sheet.without_column(sheet.head.len() - 1);
        sheet.without_column(sheet.head.len() - 1);
    }
}

fn flush_notes(summary: &Summary) -> Vec<String> {
    let counts = &summary.counts;
    let mut notes = Vec::new();
    if counts.flushes + counts.preflush_intended + counts.fua_intended + counts.fua_issued > 0 {
        notes.push(format!(
            "{} issued. Wanted with writes: {} PREFLUSH, {} FUA ({} issued as FUA).",
            counted(counts.flushes, "flush", "flushes"),
            count(counts.preflush_intended),
            count(counts.fua_intended),
            count(counts.fua_issued)
        ));
    }
    notes
}

/// The panels of ATC'13's Fig. 2, but the block types, which [`classes`] has.
pub fn panels(summary: &Summary) -> Vec<Sheet> {
    let counts = &summary.counts;
    let headings = |pairs: [(&str, RequestCount); 2]| {
        pairs.map(|(label, written)| ReadAndWritten {
            label: label.to_owned(),
            written,
            ..ReadAndWritten::default()
        })
    };
    let sync = headings([("sync", counts.sync_writes), ("buffered", counts.buffered_writes)]);
    let order = headings([("sequential", counts.sequential_writes), ("random", counts.random_writes)]);
    vec![
        panel("File types", "file type", "runs", &counts.file_types),
        panel("Sync and buffered writes", "somebody waits", "requests", &sync),
        panel("Sequential and random writes", "order", "requests", &order),
        panel("Sizes of requests", "size", "requests", &counts.sizes),
        interrupts(summary),
    ]
}

/// One panel: written bytes and requests, each with its share; reads where there are any.
fn panel(title: &str, what: &str, of: &str, headings: &[ReadAndWritten]) -> Sheet {
    let mut sheet = Sheet::new(title, &[what, "KiB written", "share", of, "share", "KiB read", "reads"]);
    let sum = |volume: fn(&ReadAndWritten) -> u64| headings.iter().map(volume).sum::<u64>();
    let (bytes, requests) = (sum(|one| one.written.bytes), sum(|one| one.written.requests));
    let reads = sum(|one| one.read.requests);
    for heading in headings.iter().filter(|one| one.written.requests + one.read.requests > 0) {
        sheet.line(vec![
            heading.label.clone(),
            kib_of(heading.written.bytes),
            part_of(heading.written.bytes, bytes),
            count(heading.written.requests),
            part_of(heading.written.requests, requests),
            kib_of(heading.read.bytes),
            count(heading.read.requests),
        ]);
    }
    hide_reads(&mut sheet, RequestCount { requests: reads, bytes: 0 });
    sheet
}

/// Interrupts by device, the traced disks' marked.
pub fn interrupts(summary: &Summary) -> Sheet {
    let mut sheet = Sheet::new("Interrupts by device", &["device", "interrupts", "share"]);
    let Some(ending) = &summary.header.ending else { return sheet };
    let all = ending.interrupts.iter().map(|(_, times)| times).sum();
    for (name, times) in ending.interrupts.iter().filter(|(_, times)| *times > 0) {
        let disks = summary.header.disks.iter().filter(|disk| disk.interrupt.as_ref() == Some(name));
        let disks: Vec<&str> = disks.map(|disk| disk.name.as_str()).collect();
        let owner = if disks.is_empty() { String::new() } else { format!(" ({})", disks.join(", ")) };
        sheet.line(vec![plain(&format!("{name}{owner}")), count(*times), part_of(*times, all)]);
    }
    sheet
}

/// The files with the most bytes.
pub fn files(summary: &Summary) -> Sheet {
    let mut sheet =
        Sheet::new("The largest files", &["file", "KiB written", "runs", "KiB read", "reads", "type"]);
    let mark = |file: &FileVolume| if file.deleted { " (deleted)" } else { "" };
    let short = |file: &FileVolume| path(&file.path, PATH_LETTERS - mark(file).len());
    for file in &summary.files {
        // Paths that differ only in what is left out are shown whole.
        let is_alone = summary.files.iter().filter(|other| short(other) == short(file)).count() == 1;
        let shown = if is_alone { short(file) } else { path(&file.path, usize::MAX) };
        sheet.line(vec![
            format!("{shown}{}", mark(file)),
            kib_of(file.written.bytes),
            count(file.written.requests),
            kib_of(file.read.bytes),
            count(file.read.requests),
            file.file_type.clone(),
        ]);
    }
    if summary.files.iter().all(|file| file.read.requests == 0) {
        sheet.without_column(4);
        sheet.without_column(3);
    }
    if summary.files_not_named > 0 {
        sheet.notes.push(format!(
            "{} not shown.",
            counted(summary.files_not_named, "smaller file is", "smaller files are")
        ));
    }
    sheet
}

/// What was seen of each disk beside its own counters.
pub fn disks(summary: &Summary) -> Sheet {
    let mut sheet = Sheet::new(
        "What was seen, and what the disk itself counted",
        &["disk", "seen", "counted", "difference"],
    );
    for disk in &summary.disks {
        for (what, seen, counter) in counters(disk) {
            if seen == 0 && counter.unwrap_or(0) == 0 {
                continue;
            }
            let shown = |value: u64| if what.starts_with("bytes") { kib_of(value) } else { count(value) };
            let name = format!("{} {}", plain(&disk.disk), what.replace("bytes", "KiB"));
            let difference = match counter {
                None => "-".to_owned(),
                Some(counter) if counter == seen => "0".to_owned(),
                Some(counter) if counter > seen => format!("{} not seen", shown(counter - seen)),
                Some(counter) => format!("{} more seen", shown(seen - counter)),
            };
            sheet.line(vec![name, shown(seen), counter.map_or_else(|| "-".to_owned(), shown), difference]);
        }
    }
    if !sheet.lines.is_empty() && sheet.lines.iter().all(|line| line[2] == "-") {
        sheet.title = "What was seen of each disk".to_owned();
        sheet.without_column(3);
        sheet.without_column(2);
        sheet.notes.push("The trace does not have the disk's own counters to compare with.".to_owned());
        return sheet;
    }
    if sheet.lines.iter().any(|line| line[3].ends_with("not seen")) {
        let why = "they are missing from this trace, or were under way when it began or ended";
        sheet.notes.push(format!("Not seen: {why}."));
    }
    sheet
}

fn counters(disk: &DiskCheck) -> [(&'static str, u64, Option<u64>); 5] {
    [
        ("discards", disk.discards, disk.counted_discards),
        ("writes", disk.written.requests + disk.empty_flushes, disk.counted_writes),
        ("bytes written", disk.written.bytes, disk.counted_written_bytes),
        ("reads", disk.read.requests, disk.counted_reads),
        ("flushes", disk.flushes, disk.counted_flushes),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn volume(requests: u64, kib: u64) -> RequestCount {
        RequestCount { requests, bytes: kib << 10 }
    }

    #[test]
    fn a_disk_that_counted_more_or_less_than_was_seen_says_so() {
        let check = |counted: Option<u64>| DiskCheck {
            disk: "vda".to_owned(),
            written: volume(10, 40),
            counted_writes: counted,
            counted_written_bytes: counted.map(|writes| writes << 12),
            ..DiskCheck::default()
        };
        let shown = |counted| {
            let sheet = disks(&Summary { disks: vec![check(counted)], ..Summary::default() });
            sheet.lines.iter().map(|line| line.join(" | ")).collect::<Vec<_>>()
        };
        assert_eq!(shown(Some(10)), ["vda writes | 10 | 10 | 0", "vda KiB written | 40 | 40 | 0"]);
        assert_eq!(shown(Some(12))[1], "vda KiB written | 40 | 48 | 8 not seen");
        assert_eq!(shown(Some(9))[0], "vda writes | 10 | 9 | 1 more seen");
        assert_eq!(
            shown(None),
            ["vda writes | 10", "vda KiB written | 40"],
            "what nobody counted is no zero"
        );
    }

    #[test]
    fn deleted_files_and_those_without_a_name_are_marked() {
        let file = |path: &str, deleted| FileVolume {
            path: path.to_owned(),
            file_type: "other".to_owned(),
            deleted,
            written: volume(1, 4),
            read: volume(2, 8),
        };
        let [first, second] = ["/first", "/second"].map(|start| format!("{start}{}/x", "/d".repeat(99)));
        let long = format!("/{}/x.db-journal", "directory".repeat(9));
        let files_of = vec![file(&long, true), file("", false), file(&first, false), file(&second, false)];
        let sheet = files(&Summary { files: files_of, files_not_named: 1, ..Summary::default() });
        assert!(sheet.lines[0][0].ends_with("/x.db-journal (deleted)"), "{sheet:?}");
        assert_eq!(sheet.lines[0][0].chars().count(), PATH_LETTERS);
        assert_eq!(sheet.lines[1], ["(name not seen)", "4", "1", "8", "2", "other"]);
        assert_eq!([&sheet.lines[2][0], &sheet.lines[3][0]], [&first, &second], "else they would look alike");
        assert_eq!(sheet.notes, ["1 smaller file is not shown."]);
    }

    #[test]
    fn parts_of_which_nothing_is_known_are_told_apart_from_those_that_are_known() {
        let heading = |label: &str, kib| ReadAndWritten {
            label: label.to_owned(),
            written: volume(1, kib),
            ..ReadAndWritten::default()
        };
        let mut summary = Summary::default();
        summary.counts.writes = volume(3, 16);
        summary.counts.classes = vec![heading("data", 4), heading("metadata", 12)];
        summary.counts.parts = vec![heading("data", 4), heading("metadata", 4), heading("metadata: tree", 8)];
        let names: Vec<String> = classes(&summary).lines.into_iter().map(|line| line[0].clone()).collect();
        assert_eq!(names, ["data", "metadata", "  not known which", "  tree", "all"]);
    }
}
