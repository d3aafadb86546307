//! What the requests of a recording were for: the export `runs` of `joj trace`, asked by place.

use crate::lab::job::guest_path;

/// The columns that are read.
const COLUMNS: [&str; 9] = [
    "issued_ns",
    "disk",
    "first_sector",
    "byte_length",
    "operation",
    "class",
    "part",
    "file_path",
    "file_offset",
];
const SECTOR_BYTES: u64 = 512;

/// Which device of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoggedDisk {
    /// The filesystem's.
    Filesystem,
    /// That of its external journal.
    Journal,
}

impl LoggedDisk {
    /// The one with this `major:minor`: the filesystem's is the first device of its kind.
    fn of(numbers: &str) -> LoggedDisk {
        if numbers.ends_with(":0") { LoggedDisk::Filesystem } else { LoggedDisk::Journal }
    }
}

/// Runs of writes.
#[derive(Debug, Default)]
pub struct WrittenFor {
    runs: Vec<Run>,
}

#[derive(Debug)]
struct Run {
    issued_ns: u64,
    disk: LoggedDisk,
    offset_bytes: u64,
    len_bytes: u64,
    /// Class and part.
    what: String,
    /// The file below the volume, and its byte there, where it is one's.
    file: Option<(String, u64)>,
}

impl WrittenFor {
    /// From the text of the export. Lines of another form are left out: less is known then.
    pub fn read(text: &str) -> WrittenFor {
        let mut lines = text.lines();
        let head: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
        let place = |name: &&str| head.iter().position(|column| column == name);
        let Some(places) = COLUMNS.iter().map(place).collect::<Option<Vec<usize>>>() else {
            return WrittenFor::default();
        };
        let mut runs: Vec<Run> = lines.filter_map(|line| run(&cells(line), &places)).collect();
        runs.sort_by_key(|run| run.issued_ns);
        WrittenFor { runs }
    }

    /// What the last write to this byte of `disk` was for, of those that were issued until `until_ns`; and what the volume is called in
    /// names goes away.
    pub fn last(&self, disk: LoggedDisk, offset_bytes: u64, until_ns: u64) -> Option<String> {
        let issued = self.runs.partition_point(|run| run.issued_ns <= until_ns);
        let covers = |run: &&Run| {
            run.disk == disk && (run.offset_bytes..run.offset_bytes + run.len_bytes).contains(&offset_bytes)
        };
        let run = self.runs[..issued].iter().rev().find(covers)?;
        Some(match &run.file {
            Some((name, _)) if name.is_empty() => format!("{} of the directory /data", run.what),
            Some((name, at)) => {
                format!("{} of {name}, byte {}", run.what, at + (offset_bytes - run.offset_bytes))
            }
            None => run.what.clone(),
        })
    }
}

fn run(cells: &[String], places: &[usize]) -> Option<Run> {
    let [issued, disk, sector, length, operation, class, part, path, at] =
        <[&String; 9]>::try_from(places.iter().map(|place| cells.get(*place)).collect::<Option<Vec<_>>>()?)
            .ok()?;
    if !operation.starts_with("write") {
        return None;
    }
    let what = if part.is_empty() || part == "none" || part == class {
        class.clone()
    } else {
        format!("{class} ({})", part.replace('-', " "))
    };
    let below = path.strip_prefix(guest_path::VOLUME).unwrap_or(path).trim_start_matches('/');
    let file = at.parse().ok().filter(|_| !path.is_empty()).map(|at| (below.to_owned(), at));
    Some(Run {
        issued_ns: issued.parse().ok()?,
        disk: LoggedDisk::of(disk),
        offset_bytes: sector.parse::<u64>().ok()? * SECTOR_BYTES,
        len_bytes: length.parse().ok()?,
        what,
        file,
    })
}

/// The cells of a line of comma-separated values (RFC 4180).
fn cells(line: &str) -> Vec<String> {
    let (mut cells, mut quoted) = (vec![String::new()], false);
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        let last = cells.len() - 1;
        match letter {
            '"' if quoted && letters.peek() == Some(&'"') => {
                letters.next();
                cells[last].push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(String::new()),
            other => cells[last].push(other),
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
queued_ns,issued_ns,disk,first_sector,byte_length,operation,class,part,file_path,file_offset
1,10,43:0,80,8192,write,data,,\"/volume/a, \"\"b\"\"\",4096
1,20,43:0,80,4096,write,journal,descriptor,,-1
1,30,43:0,88,4096,read,data,,/volume/c,0
damaged
1,40,43:0,88,4096,write,metadata,inode-table,,-1
1,50,43:0,96,4096,write,data,,/volume/,0
1,60,43:32,96,4096,write,journal,commit,,
";

    #[test]
    fn the_last_write_in_time_to_that_place_counts() {
        let written = WrittenFor::read(TEXT);
        let last = |offset, until| written.last(LoggedDisk::Filesystem, offset, until);
        assert_eq!(last(40_960, 10).as_deref(), Some("data of a, \"b\", byte 4096"));
        assert_eq!(last(45_056, 39).as_deref(), Some("data of a, \"b\", byte 8192"));
        assert_eq!(last(45_056, 40).as_deref(), Some("metadata (inode table)"));
        assert_eq!(last(40_960, 99).as_deref(), Some("journal (descriptor)"));
        assert_eq!(last(49_152, 99).as_deref(), Some("data of the directory /data"));
        assert_eq!((last(40_960, 9), last(0, 99)), (None, None));
        let journal = written.last(LoggedDisk::Journal, 49_152, 99);
        assert_eq!(journal.as_deref(), Some("journal (commit)"));
    }

    #[test]
    fn another_text_tells_nothing() {
        assert!(WrittenFor::read("").runs.is_empty());
        assert!(WrittenFor::read("a,b\n1,2\n").runs.is_empty());
    }
}
