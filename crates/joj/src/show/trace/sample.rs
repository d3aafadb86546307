//! A small trace for tests: SQLite on ext4 on a loop device, as docs of SQLite and jbd2 say that it writes.

use joj_analysis::filesystem::region::{Region, RegionUse};
use joj_analysis::trace::attribution::attribute::Attributor;
use joj_analysis::trace::event::{
    Backing, Content, DeviceNumber, Event, EventKind, FileKey, Operation, RequestFlags,
};
use joj_analysis::trace::file_type::FileTypes;
use joj_analysis::trace::header::{Disk, DiskCounters, Ending, Header, MountedFilesystem, Source};
use joj_analysis::trace::points::{PointCollector, Points};
use joj_analysis::trace::steps::{StepsOfTransactions, TransactionSteps};
use joj_analysis::trace::summary::{Summariser, Summary};
use joj_analysis::trace::texts::{Text, Texts};
use joj_analysis::trace::wanted::Wanted;

/// The disk, and the filesystem on it.
pub const DISK: DeviceNumber = DeviceNumber((7 << 20) + 2);
const JOURNAL_SECTOR: u64 = 1_049_000;
const RESERVED_BYTE: u64 = 0x4000_0001;
const SQLITE: u32 = 100;
const JBD2: u32 = 50;
const KWORKER: u32 = 51;

/// What the sample became.
#[derive(Debug)]
pub struct Sample {
    pub summary: Summary,
    pub points: Points,
    pub transactions: Vec<TransactionSteps>,
    pub texts: Texts,
}

/// Events under construction.
#[derive(Debug)]
pub struct SampleWriter {
    events: Vec<Event>,
    texts: Texts,
    now_ns: u64,
    log_sector: u64,
    generation: u32,
    database: Text,
}

/// The head: a 1 GB disk with ext4.
pub fn header() -> Header {
    let region =
        |sector, sectors, purpose| Region { disk: DISK, sector, sectors, purpose, journal_offset: 0 };
    Header {
        version: 1,
        writer: "joj 0.1.0".to_owned(),
        source: Source::Bpf,
        kernel: "6.18.44".to_owned(),
        command: vec!["sqlite3".to_owned(), "app.db".to_owned()],
        disks: vec![Disk {
            number: DISK,
            whole: DISK,
            name: "loop2".to_owned(),
            sectors: 2 << 20,
            write_cache: Some(true),
            fua: Some(false),
            behind: Some("/img/ext4".to_owned()),
            ..Disk::default()
        }],
        filesystems: vec![MountedFilesystem {
            device: DISK,
            kind: "ext4".to_owned(),
            mount_point: "/mnt".to_owned(),
            options: "rw,noatime".to_owned(),
            block_bytes: 4096,
            disks: vec![DISK],
            until_ns: None,
            regions: vec![
                region(2, 6, RegionUse::Superblock),
                region(8, 8, RegionUse::GroupDescriptors),
                region(1024, 8, RegionUse::BlockBitmap),
                region(1152, 8, RegionUse::InodeBitmap),
                region(1280, 4096, RegionUse::InodeTable),
                region(JOURNAL_SECTOR, 32_768, RegionUse::Journal),
            ],
        }],
        ending: Some(Ending {
            interrupts: vec![("virtio0-req.0".to_owned(), 412), ("LOC".to_owned(), 1_804)],
            ..Ending::default()
        }),
        ..Header::default()
    }
}

impl SampleWriter {
    /// Nothing yet, for a database with this name.
    pub fn new(database: &str) -> Self {
        let mut texts = Texts::default();
        let database = texts.keep(database);
        Self {
            events: Vec::new(),
            texts,
            now_ns: 1_000_000_000,
            log_sector: JOURNAL_SECTOR + 64,
            generation: 1,
            database,
        }
    }

    fn push(&mut self, after_us: u64, event: Event) {
        self.now_ns += after_us * 1000;
        self.events.push(Event { time_ns: self.now_ns, ..event });
    }

    fn by(&mut self, thread: u32) -> Event {
        let command = match thread {
            JBD2 => "jbd2/loop2-8",
            KWORKER => "kworker/u4:1",
            _ => "sqlite3",
        };
        let command = self.texts.keep(command);
        Event { thread, process: thread, command, device: DISK, ..Event::default() }
    }

    fn file(inode: u64, generation: u32) -> FileKey {
        FileKey { device: DISK, inode, generation }
    }

    fn named(&mut self, file: FileKey, name: &str) {
        let name = self.texts.keep(name);
        let event = Event { kind: EventKind::Named, file, name, ..self.by(SQLITE) };
        self.push(1, event);
    }

    fn name_with(&self, ending: &str) -> String {
        format!("{}{ending}", self.texts.get(self.database))
    }

    fn sync(&mut self, file: FileKey, inside: impl FnOnce(&mut Self)) {
        let name = self.texts.keep("fdatasync");
        let event = Event { file, name, ..self.by(SQLITE) };
        self.push(8, Event { kind: EventKind::SyncBegin, ..event });
        inside(self);
        self.push(6, Event { kind: EventKind::SyncEnd, ..event });
    }

    /// A write of these runs, from queue to completion.
    fn write(&mut self, thread: u32, sector: u64, flags: RequestFlags, runs: &[Event], took_us: u64) {
        let mut at = sector;
        for (index, run) in runs.iter().enumerate() {
            let continued = if index > 0 { RequestFlags::CONTINUED } else { RequestFlags::default() };
            let base = self.by(thread);
            let event = Event {
                kind: EventKind::Queue,
                sector: at,
                operation: Operation::Write,
                flags: flags.with(RequestFlags::SYNC).with(continued),
                command: base.command,
                thread,
                process: thread,
                ..*run
            };
            self.push(u64::from(index == 0) * 20, event);
            at += run.bytes / 512;
        }
        if flags.has(RequestFlags::PREFLUSH) {
            self.flush(thread, 240);
        }
        let bytes = (at - sector) * 512;
        let event = Event {
            sector,
            bytes,
            operation: Operation::Write,
            flags: RequestFlags::SYNC,
            ..self.by(thread)
        };
        self.push(3, Event { kind: EventKind::Issue, ..event });
        self.push(took_us, Event { kind: EventKind::Complete, ..event });
        if flags.has(RequestFlags::FUA) {
            self.flush(thread, 210);
        }
    }

    fn flush(&mut self, thread: u32, took_us: u64) {
        let event = Event { operation: Operation::Flush, ..self.by(thread) };
        self.push(2, Event { kind: EventKind::Issue, ..event });
        self.push(took_us, Event { kind: EventKind::Complete, ..event });
    }

    fn empty_flush(&mut self) {
        let event = Event {
            kind: EventKind::Queue,
            operation: Operation::Write,
            flags: RequestFlags::PREFLUSH,
            ..self.by(SQLITE)
        };
        self.push(4, event);
        self.flush(SQLITE, 190);
    }

    fn data(file: FileKey, offset: u64, bytes: u64) -> Event {
        Event { device: DISK, bytes, file, offset, backing: Backing::File, ..Event::default() }
    }

    /// A commit of jbd2 that logs the blocks of these sectors.
    fn journal(&mut self, homes: &[u64]) {
        let block = |content, offset, detail| Event {
            device: DISK,
            bytes: 4096,
            backing: Backing::Device,
            content,
            offset,
            detail,
            ..Event::default()
        };
        let mut runs = vec![block(Content::JournalDescriptor, self.log_sector * 512, 0)];
        // Of blocks logged before, a few bytes change.
        runs.extend(homes.iter().map(|home| block(Content::Other, home * 512, 97)));
        self.write(JBD2, self.log_sector, RequestFlags::default(), &runs, 110);
        self.log_sector += 8 * runs.len() as u64;
        let both = RequestFlags::PREFLUSH.with(RequestFlags::FUA);
        let commit = block(Content::JournalCommit, self.log_sector * 512, 0);
        self.write(JBD2, self.log_sector, both, &[commit], 64);
        self.log_sector += 8;
    }

    /// One INSERT with journal_mode=DELETE: 24 KiB of data, 32 of journal.
    pub fn commit_with_rollback_journal(&mut self) {
        self.generation += 1;
        let (database, journal, directory) =
            (Self::file(12, 1), Self::file(13, self.generation), Self::file(2, 0));
        let database_name = self.name_with("");
        let journal_name = self.name_with("-journal");
        self.named(database, &database_name);
        let lock = Event {
            kind: EventKind::Lock,
            file: database,
            offset: RESERVED_BYTE,
            bytes: 1,
            ..self.by(SQLITE)
        };
        self.push(500, Event { detail: 1, ..lock });
        self.named(journal, &journal_name);
        self.named(directory, "/");
        self.now_ns += 60_000;
        self.sync(journal, |writer| {
            writer.write(SQLITE, 270_456, RequestFlags::default(), &[Self::data(journal, 0, 12 << 10)], 95);
            writer.journal(&[1280, 20_000, 2, 1024, 8, 1152]);
        });
        self.sync(directory, |_| {});
        self.sync(journal, |writer| {
            writer.write(SQLITE, 270_456, RequestFlags::default(), &[Self::data(journal, 0, 4096)], 60);
            writer.empty_flush();
        });
        self.sync(database, |writer| {
            writer.write(SQLITE, 270_800, RequestFlags::default(), &[Self::data(database, 0, 8192)], 71);
            writer.empty_flush();
        });
        let name = self.texts.keep(&journal_name);
        let unlink = Event { kind: EventKind::Unlinked, file: journal, name, ..self.by(SQLITE) };
        self.push(12, unlink);
        self.push(5, Event { detail: 2, ..lock });
    }

    /// One INSERT with journal_mode=WAL into a log that grows: 8 KiB of data, 20 of journal.
    pub fn commit_with_log(&mut self, frame: u64) {
        let (log, index) = (Self::file(14, 1), Self::file(15, 1));
        let (log_name, index_name) = (self.name_with("-wal"), self.name_with("-shm"));
        self.named(log, &log_name);
        self.named(index, &index_name);
        let lock = Event { kind: EventKind::Lock, file: index, offset: 120, bytes: 1, ..self.by(SQLITE) };
        self.push(90, Event { detail: 1, ..lock });
        self.sync(log, |writer| {
            let data = Self::data(log, frame * 8192, 8192);
            writer.write(SQLITE, 280_000 + frame * 16, RequestFlags::default(), &[data], 66);
            writer.journal(&[1280, 1024, 8]);
        });
        self.push(4, Event { detail: 2, ..lock });
    }

    /// The log's pages go to the database.
    pub fn checkpoint(&mut self) {
        let (database, index) = (Self::file(12, 1), Self::file(15, 1));
        let lock = Event { kind: EventKind::Lock, file: index, offset: 121, bytes: 1, ..self.by(SQLITE) };
        self.push(30, Event { detail: 1, ..lock });
        self.sync(database, |writer| {
            writer.write(SQLITE, 270_800, RequestFlags::default(), &[Self::data(database, 0, 16_384)], 90);
            writer.empty_flush();
        });
        self.push(4, Event { detail: 2, ..lock });
    }

    /// A program that is not SQLite makes a file durable on another disk, and fails.
    pub fn failed_sync(&mut self, other: DeviceNumber) {
        let file = FileKey { device: other, inode: 90, generation: 1 };
        self.named(file, "/var/log/a\u{1b}[2Jb.log");
        let name = self.texts.keep("fsync");
        let call = Event { file, name, thread: 200, process: 200, ..self.by(SQLITE) };
        self.push(8, Event { kind: EventKind::SyncBegin, ..call });
        let write = Event {
            operation: Operation::Write,
            sector: 5000,
            bytes: 1536,
            thread: 200,
            device: other,
            ..self.by(SQLITE)
        };
        let queued = Event { file, backing: Backing::File, offset: 512, ..write };
        self.push(9, Event { kind: EventKind::Queue, ..queued });
        self.push(2, Event { kind: EventKind::Issue, ..write });
        self.push(700, Event { kind: EventKind::Complete, detail: -5, ..write });
        self.push(3, Event { kind: EventKind::SyncEnd, detail: -5, ..call });
    }

    /// A disk read, as at the opening of a database.
    pub fn read(&mut self, sector: u64, bytes: u64) {
        let file = Self::file(12, 1);
        let read = Event { operation: Operation::Read, sector, ..self.by(SQLITE) };
        let queued = Event {
            kind: EventKind::Queue,
            sector,
            operation: Operation::Read,
            thread: SQLITE,
            ..Self::data(file, 0, bytes)
        };
        self.push(10, queued);
        self.push(2, Event { kind: EventKind::Issue, bytes, ..read });
        self.push(80, Event { kind: EventKind::Complete, bytes, ..read });
    }

    /// A write of which nobody saw whose it is.
    pub fn unplaced_write(&mut self, sector: u64) {
        let write = Event { operation: Operation::Write, sector, bytes: 4096, ..self.by(7) };
        self.push(10, Event { kind: EventKind::Issue, ..write });
        self.push(300, Event { kind: EventKind::Complete, ..write });
    }

    /// Metadata on the way to its place, some seconds after its commit.
    pub fn metadata_written_back(&mut self) {
        for (sector, bytes) in [(1280, 8192), (1024, 4096), (2056, 16_384)] {
            let run = Event {
                device: DISK,
                bytes,
                backing: Backing::Device,
                offset: sector * 512,
                ..Event::default()
            };
            self.write(KWORKER, sector, RequestFlags::default(), &[run], 150);
        }
    }

    /// Time in which nothing happens.
    pub fn pause(&mut self, milliseconds: u64) {
        self.now_ns += milliseconds * 1_000_000;
    }

    /// Attribution, summary, points and transactions of all of it.
    pub fn finish(self, header: &Header) -> Sample {
        let (mut summariser, mut collector) = (Summariser::of(header), PointCollector::default());
        let mut transactions =
            StepsOfTransactions::new(0, 3).of(Wanted::of(header)).of_command_first(header.command_process);
        let mut attributor = Attributor::new(header, FileTypes::default());
        {
            let mut sink = |outcome: joj_analysis::trace::attribution::attribute::Outcome<'_>,
                            texts: &Texts| {
                summariser.outcome(&outcome, texts);
                collector.outcome(&outcome);
                transactions.outcome(&outcome);
            };
            for event in &self.events {
                attributor.event(event, &self.texts, &mut sink);
            }
            attributor.finish(&self.texts, &mut sink);
        }
        self.events.iter().for_each(|event| summariser.event(event));
        let summary = summariser.finish(header, &self.texts);
        Sample { summary, points: collector.finish(), transactions: transactions.finish(), texts: self.texts }
    }
}

/// Three commits, and a disk that counted one write more than was seen.
pub fn small() -> Sample {
    let mut header = header();
    if let Some(ending) = &mut header.ending {
        ending.disks = vec![DiskCounters {
            disk: DISK,
            writes: 22,
            written_bytes: 172_032,
            flushes: 12,
            ..DiskCounters::default()
        }];
    }
    let mut writer = SampleWriter::new("/data/app.db");
    for _ in 0..3 {
        writer.commit_with_rollback_journal();
    }
    writer.finish(&header)
}
