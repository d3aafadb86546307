//! What is the same in every row of a trace's tables: which trace, of which device, under which kernel, with which labels.

use std::collections::BTreeMap;
use std::hash::Hasher;

use fnv::FnvHasher;
use joj_analysis::trace::event::DeviceNumber;
use joj_analysis::trace::header::Header;
use serde::Serialize;

use super::cell::{TableCell, TableColumn, text};

/// The version of the tables, as docs/trace_tables.md describes them.
pub const TABLES_VERSION: u32 = 2;

/// Labels of these names have a column of their own; the others are in `labels` alone.
pub const NAMED: [&str; 4] = ["device", "device_id", "application", "sqlite_build"];

/// The columns that every table begins with.
pub const FACT_COLUMNS: [TableColumn; 7] = [
    text("trace_id"),
    text("device"),
    text("device_id"),
    text("kernel"),
    text("sqlite_build"),
    text("labels"),
    text("application"),
];

/// What a trace says of itself, and what `--label` says of it.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// 16 hexadecimal digits: the same for two exports of one trace. The files are called so.
    pub trace_id: String,
    /// `uname -r`; empty where unknown.
    pub kernel: String,
    /// What `--label` says, by key.
    pub labels: BTreeMap<String, String>,
    /// The same as JSON.
    labels_json: String,
    /// The program, where the trace is of one; a label comes first.
    application: String,
    /// `st_dev` of the files of each filesystem, and its kind.
    filesystems: Vec<(DeviceNumber, String)>,
    /// Calendar time of the trace's clock at 0, nanoseconds since 1970; `None` where unknown.
    epoch_ns: Option<i64>,
}

/// What stands in the metadata of a table, beside its rows.
#[derive(Debug, Serialize)]
pub struct TableHeader<'a> {
    /// [`TABLES_VERSION`] of the writer.
    pub version: u32,
    /// The writer, for example `joj 0.1.0`.
    pub writer: String,
    /// `commits` or `runs`.
    pub table: &'static str,
    /// Rows of the file.
    pub rows: u64,
    /// From the trace's first event to its last.
    pub span_ns: u64,
    /// Events that the capture lost; `None` where it does not tell.
    pub lost: Option<u64>,
    pub trace_id: &'a str,
    /// 16 hexadecimal digits: the same in both tables of one export, and another one where anything differs.
    pub export_id: &'a str,
    pub kernel: &'a str,
    pub labels: &'a BTreeMap<String, String>,
    /// Kinds of the trace's filesystems.
    pub filesystems: Vec<&'a str>,
}

impl Facts {
    /// Of the trace with this head.
    pub fn of(header: &Header, labels: &[(String, String)]) -> Self {
        let program = header.command.first().map_or("", |word| word.rsplit('/').next().unwrap_or(word));
        let labels: BTreeMap<String, String> = labels.iter().cloned().collect();
        let unix_ns = i64::try_from(header.started_unix_ns).ok().filter(|unix_ns| *unix_ns > 0);
        let epoch_ns = unix_ns.zip(i64::try_from(header.started_ns).ok());
        Self {
            kernel: header.kernel.clone(),
            application: program.to_owned(),
            filesystems: header.filesystems.iter().map(|one| (one.device, one.kind.clone())).collect(),
            epoch_ns: epoch_ns.map(|(unix_ns, clock_ns)| unix_ns - clock_ns),
            trace_id: trace_id(header),
            labels_json: serde_json::to_string(&labels).unwrap_or_default(),
            labels,
        }
    }

    /// The cells of [`FACT_COLUMNS`]; `program`: what the row itself knows of its application.
    pub fn cells<'a>(&'a self, program: &'a str) -> [TableCell<'a>; FACT_COLUMNS.len()] {
        let label = |key: &str| self.labels.get(key).map_or("", String::as_str);
        let [device, device_id, application, sqlite_build] = NAMED.map(label);
        let known = [application, program, &self.application];
        let application = known.into_iter().find(|one| !one.is_empty()).unwrap_or_default();
        [&self.trace_id, device, device_id, &self.kernel, sqlite_build, &self.labels_json, application]
            .map(TableCell::Text)
    }

    /// The kind of the filesystem whose files have this device number; empty where unknown.
    pub fn filesystem(&self, device: DeviceNumber) -> &str {
        self.filesystems.iter().find(|(number, _)| *number == device).map_or("", |(_, kind)| kind)
    }

    /// Calendar time of a moment of the trace's clock.
    pub fn calendar(&self, time_ns: u64) -> TableCell<'static> {
        let time_ns = i64::try_from(time_ns).ok().zip(self.epoch_ns);
        time_ns.map_or(TableCell::Null, |(time_ns, epoch_ns)| {
            TableCell::Signed(epoch_ns.saturating_add(time_ns))
        })
    }

    /// The header of a table with so many rows; its export's number is to be filled in.
    pub fn header(&self, table: &'static str, rows: u64, span_ns: u64, lost: Option<u64>) -> TableHeader<'_> {
        let mut filesystems: Vec<&str> = self.filesystems.iter().map(|(_, kind)| kind.as_str()).collect();
        filesystems.sort_unstable();
        filesystems.dedup();
        TableHeader {
            version: TABLES_VERSION,
            writer: format!("joj {}", env!("CARGO_PKG_VERSION")),
            table,
            rows,
            span_ns,
            lost,
            trace_id: &self.trace_id,
            export_id: "",
            kernel: &self.kernel,
            labels: &self.labels,
            filesystems,
        }
    }
}

/// Of what tells traces apart: not of what is known at their end only, where the time of their begin is known.
fn trace_id(header: &Header) -> String {
    let ending = header.ending.as_ref().filter(|_| header.started_unix_ns == 0);
    let ending = ending.map(|ending| (ending.ended_ns, ending.events));
    let disks: Vec<_> =
        header.disks.iter().map(|disk| (disk.number.to_string(), &disk.name, disk.sectors)).collect();
    let started = (header.started_unix_ns, header.started_ns);
    hashed(
        &serde_json::json!([started, header.source, header.kernel, header.command, disks, ending])
            .to_string(),
    )
}

/// 16 hexadecimal digits: FNV-1a of a text.
pub fn hashed(text: &str) -> String {
    let mut hasher = FnvHasher::default();
    hasher.write(text.as_bytes());
    format!("{:016x}", hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use joj_analysis::trace::header::Ending;

    #[test]
    fn a_trace_has_the_same_id_while_it_runs_and_when_it_is_over() {
        let begun = Header { started_unix_ns: 7, ..Header::default() };
        let over = Header { ending: Some(Ending { events: 9, ..Ending::default() }), ..begun.clone() };
        let other = Header { started_unix_ns: 8, ..Header::default() };
        assert_eq!(trace_id(&begun), trace_id(&over));
        assert_ne!(trace_id(&begun), trace_id(&other));
    }

    #[test]
    fn a_label_comes_before_what_the_trace_knows() {
        let header = Header { command: vec!["/usr/bin/app".to_owned()], ..Header::default() };
        let label = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let application = |facts: &Facts, program: &str| format!("{:?}", facts.cells(program)[6]);
        assert_eq!(application(&Facts::of(&header, &[]), ""), "Text(\"app\")");
        assert_eq!(application(&Facts::of(&header, &[]), "worker"), "Text(\"worker\")");
        let labelled = Facts::of(&header, &[label("application", "mail"), label("device", "A1")]);
        assert_eq!(application(&labelled, "worker"), "Text(\"mail\")");
        assert_eq!(labelled.cells("")[1], TableCell::Text("A1"));
        assert_eq!(labelled.cells("")[5], TableCell::Text(r#"{"application":"mail","device":"A1"}"#));
    }
}
