//! A trace that nobody captured: what SQLite in DELETE and WAL mode does on ext4, over and over, the same at each call.
//!
//! For tests and benchmarks: a hundred million events take minutes to make and hours to capture. The requests are those of one INSERT as
//! captured on Linux 6.18, times and sectors are made up.

use crate::filesystem::region::{Region, RegionUse};
use crate::trace::event::{
    Backing, Content, DeviceNumber, Event, EventKind, FileKey, Operation, RequestFlags, SECTOR_BYTES,
};
use crate::trace::header::{Disk, Header, MountedFilesystem, Source};
use crate::trace::texts::{Text, Texts};

const DISK: DeviceNumber = DeviceNumber(254 << 20);
const PARTITION: DeviceNumber = DeviceNumber((254 << 20) + 1);
const JOURNAL_SECTOR: u64 = 1_048_576;
const JOURNAL_BYTES: u64 = 64 << 20;
const DATA_SECTOR: u64 = 2_097_152;
/// Sectors that each database has for itself.
const FILE_SECTORS: u64 = 524_288;
const DATABASES: u64 = 8;
/// Transactions between two checkpoints of a log.
const LOG_TRANSACTIONS: u64 = 500;

/// What receives the events; an error ends the generation.
pub type Sink<'a, E> = dyn FnMut(&Event, &Texts) -> Result<(), E> + 'a;

/// The head of such a trace.
pub fn header() -> Header {
    let disk = |number, name: &str, start_sector, sectors| Disk {
        number,
        whole: DISK,
        name: name.to_owned(),
        start_sector,
        sectors,
        write_cache: Some(true),
        fua: Some(false),
        behind: None,
        interrupt: Some("virtio0-req.0".to_owned()),
    };
    let journal = Region {
        disk: DISK,
        sector: JOURNAL_SECTOR,
        sectors: JOURNAL_BYTES / SECTOR_BYTES,
        purpose: RegionUse::Journal,
        journal_offset: 0,
    };
    Header {
        source: Source::Generated,
        writer: "joj trace-generate".to_owned(),
        disks: vec![disk(DISK, "vda", 0, 1 << 24), disk(PARTITION, "vda1", 2048, (1 << 24) - 2048)],
        filesystems: vec![MountedFilesystem {
            device: PARTITION,
            kind: "ext4".to_owned(),
            mount_point: "/".to_owned(),
            options: "rw,noatime".to_owned(),
            block_bytes: 4096,
            disks: vec![PARTITION],
            regions: vec![journal],
            until_ns: None,
        }],
        ..Header::default()
    }
}

/// Makes exactly `events` events.
/// # Errors
/// Those of the sink.
pub fn generate<E>(events: u64, sink: &mut Sink<'_, E>) -> Result<(), E> {
    let mut texts = Texts::default();
    let words = Words::keep(&mut texts);
    let databases = (0..DATABASES).map(|number| Database::new(number, &mut texts)).collect();
    let mut generator = Generator {
        left: events,
        time_ns: 1_000_000_000,
        random: 0x9e37_79b9_7f4a_7c15,
        journal_offset: 0,
        journal_transaction: 1,
        texts,
        words,
        databases,
        sink,
    };
    let mut transaction = 0;
    while generator.left > 0 {
        generator.transaction(transaction)?;
        transaction += 1;
    }
    Ok(())
}

struct Words {
    sqlite: Text,
    journal_thread: Text,
    fdatasync: Text,
}

impl Words {
    fn keep(texts: &mut Texts) -> Self {
        Self {
            sqlite: texts.keep("sqlite3"),
            journal_thread: texts.keep("jbd2/vda1-8"),
            fdatasync: texts.keep("fdatasync"),
        }
    }
}

struct Database {
    sector: u64,
    file: FileKey,
    log: FileKey,
    rollback: FileKey,
    rollback_name: Text,
    log_offset: u64,
}

impl Database {
    fn new(number: u64, texts: &mut Texts) -> Self {
        let file = |inode| FileKey { device: PARTITION, inode, generation: 0x1000 };
        Self {
            sector: DATA_SECTOR + number * FILE_SECTORS,
            file: file(100 + number * 3),
            log: file(101 + number * 3),
            rollback: file(102 + number * 3),
            rollback_name: texts.keep(&format!("data/app{number}.db-journal")),
            log_offset: 0,
        }
    }
}

/// A write request that the generator makes.
#[derive(Clone, Copy)]
struct Write {
    sector: u64,
    bytes: u64,
    file: FileKey,
    offset: u64,
    backing: Backing,
    content: Content,
    flags: RequestFlags,
}

struct Generator<'a, 'b, E> {
    left: u64,
    time_ns: u64,
    random: u64,
    journal_offset: u64,
    journal_transaction: i64,
    texts: Texts,
    words: Words,
    databases: Vec<Database>,
    sink: &'a mut Sink<'b, E>,
}

impl<E> Generator<'_, '_, E> {
    /// Every third in WAL mode, the others in DELETE mode.
    fn transaction(&mut self, number: u64) -> Result<(), E> {
        let index = usize::try_from(self.random() % DATABASES).unwrap_or(0);
        if number.is_multiple_of(3) { self.append_to_log(index) } else { self.delete_mode(index) }
    }

    fn append_to_log(&mut self, index: usize) -> Result<(), E> {
        let database = &mut self.databases[index];
        let (file, offset) = (database.log, database.log_offset);
        let sector = database.sector + FILE_SECTORS / 2 + offset / SECTOR_BYTES;
        database.log_offset = (offset + 8192) % (LOG_TRANSACTIONS * 8192);
        self.lock(file, 1)?;
        self.sync(file, |this| {
            this.write(data(file, sector, offset, 8192))?;
            this.flush()
        })?;
        self.lock(file, 2)
    }

    fn delete_mode(&mut self, index: usize) -> Result<(), E> {
        let database = &mut self.databases[index];
        // The inode comes back with another generation each time, as ext4 gives it.
        database.rollback.generation = database.rollback.generation.wrapping_mul(0x9e37_79b1).wrapping_add(1);
        let (file, rollback, name) = (database.file, database.rollback, database.rollback_name);
        let sector = database.sector;
        let rollback_sector = sector + FILE_SECTORS - 64;
        self.lock(file, 1)?;
        self.emit(Event { kind: EventKind::Named, file: rollback, name, ..Event::default() })?;
        self.sync(rollback, |this| {
            this.write(data(rollback, rollback_sector, 0, 12_288))?;
            this.journal_commit()
        })?;
        self.sync(rollback, |this| {
            let header =
                Write { content: Content::SqliteJournal, ..data(rollback, rollback_sector, 0, 4096) };
            this.write(header)?;
            this.flush()
        })?;
        let page = self.random() % (FILE_SECTORS / 4 / 8) * 4096;
        self.sync(file, |this| {
            this.write(Write { content: Content::SqliteDatabase, ..data(file, sector, 0, 4096) })?;
            this.write(data(file, sector + page / SECTOR_BYTES, page, 4096))?;
            this.flush()
        })?;
        self.emit(Event { kind: EventKind::Unlinked, file: rollback, name, ..Event::default() })?;
        self.lock(file, 2)
    }

    /// Descriptor and five copies in one request, the commit block behind a flush.
    fn journal_commit(&mut self) -> Result<(), E> {
        let transaction = self.journal_transaction;
        self.journal_transaction += 1;
        let mark = |kind| Event { kind, device: PARTITION, detail: transaction, ..Event::default() };
        self.emit(mark(EventKind::JournalBegin))?;
        let start = JOURNAL_SECTOR + self.journal_offset / SECTOR_BYTES;
        self.journal_offset = (self.journal_offset + 7 * 4096) % (JOURNAL_BYTES - 7 * 4096);
        let block = |sector, bytes, content| Write {
            sector,
            bytes,
            file: FileKey::NONE,
            offset: 0,
            backing: Backing::Private,
            content,
            flags: RequestFlags::SYNC.with(RequestFlags::METADATA),
        };
        let queue = |write: Write| Event { kind: EventKind::Queue, ..request(write) };
        self.emit(queue(block(start, 4096, Content::JournalDescriptor)))?;
        for (copy, device_block) in (1..6).zip([1059, 9_249, 1, 1025, 1041]) {
            let backing = Backing::Device;
            let write = Write {
                backing,
                offset: device_block * 4096,
                ..block(start + copy * 8, 4096, Content::Other)
            };
            self.emit(queue(write))?;
        }
        self.serve(request(block(start, 6 * 4096, Content::Unknown)))?;
        let commit = block(start + 48, 4096, Content::JournalCommit);
        let wanted = commit.flags.with(RequestFlags::PREFLUSH).with(RequestFlags::FUA);
        self.emit(queue(Write { flags: wanted, ..commit }))?;
        self.flush()?;
        self.serve(request(commit))?;
        self.flush()?;
        self.emit(mark(EventKind::JournalEnd))
    }

    /// A sync call and what it makes happen.
    fn sync(&mut self, file: FileKey, inside: impl FnOnce(&mut Self) -> Result<(), E>) -> Result<(), E> {
        let call = |kind, name| Event { kind, file, name, ..Event::default() };
        self.emit(call(EventKind::SyncBegin, self.words.fdatasync))?;
        inside(self)?;
        self.emit(call(EventKind::SyncEnd, self.words.fdatasync))
    }

    /// A bio that becomes a request of its own.
    fn write(&mut self, write: Write) -> Result<(), E> {
        self.emit(Event { kind: EventKind::Queue, ..request(write) })?;
        self.serve(request(Write {
            file: FileKey::NONE,
            offset: 0,
            backing: Backing::Unseen,
            content: Content::Unknown,
            ..write
        }))
    }

    fn flush(&mut self) -> Result<(), E> {
        self.serve(Event {
            device: DISK,
            operation: Operation::Flush,
            flags: RequestFlags::PREFLUSH,
            ..Event::default()
        })
    }

    fn serve(&mut self, request: Event) -> Result<(), E> {
        let seen = Event { offset: 0, backing: Backing::Unseen, content: Content::Unknown, ..request };
        self.emit(Event { kind: EventKind::Issue, ..seen })?;
        self.time_ns += 60_000 + self.random() % 40_000;
        self.emit(Event { kind: EventKind::Complete, ..seen })
    }

    fn lock(&mut self, file: FileKey, how: i64) -> Result<(), E> {
        let range = Event { offset: 0x4000_0002, bytes: 510, ..Event::default() };
        self.emit(Event { kind: EventKind::Lock, file, detail: how, ..range })
    }

    fn emit(&mut self, event: Event) -> Result<(), E> {
        if self.left == 0 {
            return Ok(());
        }
        self.left -= 1;
        self.time_ns += 1_000 + self.random() % 20_000;
        let of_journal = event.content == Content::JournalDescriptor || event.device == PARTITION;
        let command = if of_journal { self.words.journal_thread } else { self.words.sqlite };
        let thread = if of_journal { 311 } else { 4_000 };
        (self.sink)(&Event { time_ns: self.time_ns, thread, process: thread, command, ..event }, &self.texts)
    }

    /// Xorshift: the same numbers at each run.
    fn random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }
}

fn data(file: FileKey, sector: u64, offset: u64, bytes: u64) -> Write {
    let flags = RequestFlags::SYNC;
    Write { sector, bytes, file, offset, backing: Backing::File, content: Content::Other, flags }
}

fn request(write: Write) -> Event {
    Event {
        device: DISK,
        sector: write.sector,
        bytes: write.bytes,
        operation: Operation::Write,
        flags: write.flags,
        file: write.file,
        offset: write.offset,
        backing: write.backing,
        content: write.content,
        ..Event::default()
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    #[test]
    fn there_are_as_many_events_as_asked_for_in_order_and_the_same_each_time() {
        let made = |events| {
            let mut made = Vec::new();
            let mut keep = |event: &Event, _: &Texts| {
                made.push(*event);
                Ok(())
            };
            generate(events, &mut keep).unwrap_or_else(|never: Infallible| match never {});
            made
        };
        let events = made(5_000);
        assert_eq!((events.len(), made(0).len()), (5_000, 0));
        assert!(events.is_sorted_by_key(|event| event.time_ns));
        assert_eq!(events[..777], made(777));
        let of = |kind| events.iter().filter(|event| event.kind == kind).count();
        assert!(of(EventKind::JournalBegin) > 50 && of(EventKind::Issue) - of(EventKind::Complete) < 2);
    }

    #[test]
    fn what_the_sink_refuses_ends_it() {
        let mut taken = 0;
        let result = generate(100, &mut |_, _| {
            taken += 1;
            if taken == 3 { Err("full") } else { Ok(()) }
        });
        assert_eq!((result, taken), (Err("full"), 3));
    }
}
