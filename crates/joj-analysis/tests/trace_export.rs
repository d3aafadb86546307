//! Goal: exported traces are what the programs that they are for expect.
//! Method: the fixture of trace_import; fio itself replays its log where it is installed, Perfetto's packets are taken apart again.

#![allow(clippy::unwrap_used, reason = "clippy exempts test functions, not the helpers they share")]

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::process::Command;

use joj_analysis::filesystem::class::{Class, Part};
use joj_analysis::trace::event::{DeviceNumber, Operation, RequestFlags};
use joj_analysis::trace::export::Exporter;
use joj_analysis::trace::export::fio::Iolog;
use joj_analysis::trace::export::perfetto::{AttributedRun, Perfetto, SyncSlice};
use joj_analysis::trace::header::{Disk, Header};
use joj_analysis::trace::import::ftrace;
use joj_analysis::trace::texts::Texts;

const FTRACE: &[u8] = include_bytes!("../../../fixtures/import/ext4_sqlite.ftrace");

fn iolog() -> String {
    let number = DeviceNumber::new(7, 1).unwrap();
    let disk = Disk { number, whole: number, name: "loop1".to_owned(), ..Disk::default() };
    let header = Header { disks: vec![disk], started_ns: 51_534_924_815_000, ..Header::default() };
    let mut out = Vec::new();
    let mut iolog = Iolog::new(&header, &mut out).unwrap();
    ftrace::import(std::io::Cursor::new(FTRACE), &mut |event, _| {
        iolog.event(event, &Texts::default(), &mut out).unwrap();
        ControlFlow::Continue(())
    })
    .unwrap();
    iolog.finish(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn a_journals_commit_keeps_its_write_and_its_flushes() {
    let log = iolog();
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(
        lines[..4],
        ["fio version 3 iolog", "0 /dev/loop1 add", "0 /dev/loop1 open", "0 /dev/loop1 read 4475904 1024"]
    );
    let commit = lines.iter().position(|line| *line == "43613 /dev/loop1 write 16788480 1024").unwrap();
    assert_eq!([lines[commit - 1], lines[commit + 1]], ["43613 /dev/loop1 datasync 0 0"; 2]);
}

/// How many reads, writes and syncs fio did.
fn replay(directory: &std::path::Path, log: &str) -> [u64; 3] {
    let [path, disk] = ["trace.iolog", "disk"].map(|name| directory.join(name));
    std::fs::write(&path, log).unwrap();
    std::fs::File::create(&disk).unwrap().set_len(64 << 20).unwrap();
    let replayed = Command::new("fio")
        .args(["--name=replay", "--ioengine=psync", "--replay_no_stall=1", "--output-format=json"])
        .arg(format!("--read_iolog={}", path.display()))
        .arg(format!("--replay_redirect={}", disk.display()))
        .current_dir(directory)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&replayed.stdout);
    assert!(replayed.status.success(), "{told}{}", String::from_utf8_lossy(&replayed.stderr));
    let result: serde_json::Value = serde_json::from_str(&told[told.find('{').unwrap()..]).unwrap();
    ["read", "write", "sync"].map(|kind| result["jobs"][0][kind]["total_ios"].as_u64().unwrap())
}

#[test]
fn fio_replays_the_log() {
    if Command::new("fio").arg("--version").output().is_err() {
        println!("skipped: fio is not installed");
        return;
    }
    let directory = std::env::temp_dir().join(format!("joj-iolog-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let log = iolog();
    // fio 3.33 does datasync, as strace shows, but counts sync only.
    let done = [replay(&directory, &log), replay(&directory, &log.replace(" datasync ", " sync "))];
    std::fs::remove_dir_all(&directory).unwrap();
    let lines = |word: &str| log.lines().filter(|line| line.contains(word)).count() as u64;
    let [reads, writes, syncs] = [" read ", " write ", " datasync "].map(lines);
    assert!(syncs > 3, "{log}");
    assert_eq!(done, [[reads, writes, 0], [reads, writes, syncs]]);
}

/// Fields of a message by number: numbers as they are, bytes as text.
#[derive(Debug, Default, Clone)]
struct Fields(BTreeMap<u64, Vec<Field>>);

#[derive(Debug, Clone)]
enum Field {
    Number(u64),
    Bytes(Vec<u8>),
}

impl Fields {
    fn parse(mut bytes: &[u8]) -> Self {
        let mut fields = Self::default();
        while !bytes.is_empty() {
            let tag = varint(&mut bytes);
            let field = match tag & 7 {
                0 => Field::Number(varint(&mut bytes)),
                1 => Field::Number(u64::from_le_bytes(take(&mut bytes, 8).try_into().unwrap())),
                2 => {
                    let length = usize::try_from(varint(&mut bytes)).unwrap();
                    Field::Bytes(take(&mut bytes, length).to_vec())
                }
                other => panic!("wire type {other}"),
            };
            fields.0.entry(tag >> 3).or_default().push(field);
        }
        fields
    }

    fn number(&self, field: u64) -> u64 {
        match self.0.get(&field).map(|values| &values[0]) {
            Some(Field::Number(number)) => *number,
            _ => 0,
        }
    }

    fn text(&self, field: u64) -> String {
        match self.0.get(&field).map(|values| &values[0]) {
            Some(Field::Bytes(bytes)) => String::from_utf8(bytes.clone()).unwrap(),
            _ => String::new(),
        }
    }

    fn message(&self, field: u64) -> Option<Self> {
        match self.0.get(&field).map(|values| &values[0]) {
            Some(Field::Bytes(bytes)) => Some(Self::parse(bytes)),
            _ => None,
        }
    }
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let byte = take(bytes, 1)[0];
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    value
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> &'a [u8] {
    let (taken, rest) = bytes.split_at(length);
    *bytes = rest;
    taken
}

fn perfetto() -> Vec<u8> {
    let run = AttributedRun {
        issued_ns: 2_000,
        completed_ns: 9_000,
        device: DeviceNumber::new(8, 0).unwrap(),
        sector: 2048,
        bytes: 8192,
        operation: Operation::Write,
        flags: RequestFlags::SYNC,
        class: Class::Data,
        part: Part::Plain,
        file_name: "data/app.db-wal",
        file_offset: 4096,
        thread_name: "sqlite3",
        sync_call: 5,
    };
    let journal =
        AttributedRun { class: Class::Journal, part: Part::Commit, file_name: "", bytes: 4096, ..run };
    let call = SyncSlice {
        number: 5,
        begin_ns: 1_000,
        end_ns: 12_000,
        call: "fdatasync",
        file_name: "data/app.db-wal",
        thread: 7,
        thread_name: "sqlite3",
    };
    let mut out = Vec::new();
    let mut perfetto = Perfetto::new(&mut out).unwrap();
    perfetto.sync_call(&call, &mut out).unwrap();
    perfetto.run(&run, &mut out).unwrap();
    perfetto.run(&AttributedRun { issued_ns: 3_000, ..run }, &mut out).unwrap();
    perfetto.run(&AttributedRun { issued_ns: 9_000, completed_ns: 9_500, ..run }, &mut out).unwrap();
    perfetto.run(&journal, &mut out).unwrap();
    if let Some(path) = std::env::var_os("JOJ_WRITE_PERFETTO") {
        std::fs::write(path, &out).unwrap();
    }
    out
}

#[test]
fn perfetto_gets_a_track_for_each_file_and_slices_that_do_not_overlap() {
    let bytes = perfetto();
    let trace = Fields::parse(&bytes);
    let (mut names, mut slices) = (BTreeMap::new(), Vec::new());
    for packet in &trace.0[&1] {
        let Field::Bytes(packet) = packet else { panic!("{packet:?}") };
        let packet = Fields::parse(packet);
        assert_eq!(packet.number(10), 1, "a packet without its sequence is dropped");
        if let Some(track) = packet.message(60) {
            names.insert(track.number(1), (track.text(2), track.number(5)));
        }
        if let Some(event) = packet.message(11) {
            slices.push((
                event.number(11),
                packet.number(8),
                event.number(9),
                event.text(23),
                event.number(47),
            ));
        }
    }
    let named: Vec<_> = names.values().map(|(name, parent)| (name.as_str(), *parent)).collect();
    let file = ("data/app.db-wal", 1);
    assert_eq!(
        named,
        [("requests by file", 0), ("sync calls by thread", 0), ("sqlite3 7", 2), file, file, ("journal", 1)]
    );
    let none = String::new;
    let write = || "write 8 KiB".to_owned();
    let wanted = [
        (3, 1_000, 1, "fdatasync data/app.db-wal".to_owned(), 5),
        (3, 12_000, 2, none(), 0),
        (4, 2_000, 1, write(), 5),
        (4, 9_000, 2, none(), 0),
        (5, 3_000, 1, write(), 5),
        (5, 9_000, 2, none(), 0),
        (4, 9_000, 1, write(), 5),
        (4, 9_500, 2, none(), 0),
        (6, 2_000, 1, "write 4 KiB, commit".to_owned(), 5),
        (6, 9_000, 2, none(), 0),
    ];
    assert_eq!(slices, wanted);
}
