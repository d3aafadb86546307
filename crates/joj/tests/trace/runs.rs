//! The table of runs that `joj trace --export runs=FILE` writes, line by line.

use std::collections::HashMap;
use std::path::Path;

/// A line: value by name of column.
pub type Line = HashMap<String, String>;

/// Reads the table. Quoted values are not taken apart: no name in these tests has a comma.
pub fn read(path: &Path) -> Vec<Line> {
    let text = std::fs::read_to_string(path).expect("a table of runs");
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().expect("names").split(',').collect();
    let line = |line: &str| {
        names
            .iter()
            .zip(line.split(','))
            .map(|(name, value)| ((*name).to_owned(), value.to_owned()))
            .collect()
    };
    lines.map(line).collect()
}

/// A column as a number.
pub fn number(line: &Line, name: &str) -> i64 {
    line[name].parse().unwrap_or_else(|error| panic!("{name} of {line:?}: {error}"))
}

/// What was written to each 4 KiB of the disk, in order of issue: (sector, class, inode, generation, byte of the file). Runs are cut
/// differently where a capture sees more of them.
pub fn written_blocks(lines: &[Line]) -> Vec<(i64, String, i64, i64, i64)> {
    let mut writes: Vec<&Line> = lines.iter().filter(|line| line["operation"] == "write").collect();
    writes.sort_by_key(|line| (number(line, "issued_ns"), number(line, "first_sector")));
    let blocks = |line: &&Line| {
        let (first, bytes) = (number(line, "first_sector"), number(line, "byte_length"));
        let in_file = line["class"] == "data";
        let offset = if in_file { number(line, "file_offset") } else { 0 };
        let [inode, generation] = ["file_inode", "file_generation"].map(|name| number(line, name));
        let class = line["class"].clone();
        let block = move |at: i64| {
            let offset = if in_file { offset + at * 4096 } else { 0 };
            (first + at * 8, class.clone(), inode, generation, offset)
        };
        (0..(bytes + 4095) / 4096).map(block).collect::<Vec<_>>()
    };
    writes.iter().flat_map(blocks).collect()
}

/// The same with the part of its class that each block is: (sector, class and part, inode, byte of the file).
pub fn written_parts_of_blocks(lines: &[Line]) -> Vec<(i64, String, i64, i64)> {
    let with_part = |line: &Line| {
        let mut line = line.clone();
        let both = format!("{} {}", line["class"], line["part"]);
        if line["class"] != "data" {
            line.insert("class".to_owned(), both);
        }
        line
    };
    let lines: Vec<Line> = lines.iter().map(with_part).collect();
    let blocks = written_blocks(&lines);
    blocks.into_iter().map(|(sector, class, inode, _, offset)| (sector, class, inode, offset)).collect()
}
