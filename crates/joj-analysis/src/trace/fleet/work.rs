//! A commit, checkpoint or recovery that is being made: its requests, its sync calls, its end.

use super::plan::{FILES, Program};
use crate::filesystem::class::Class;
use crate::trace::attribution::request::{
    BlockRun, Request, Sync, SyncId, Transaction, TransactionId, TransactionKind,
};
use crate::trace::event::{DeviceNumber, Event, EventKind, FileKey, Operation};
use crate::trace::file_type::FileType;
use crate::trace::texts::{Text, Texts};

const DISK: DeviceNumber = DeviceNumber(254 << 20);
/// The process and the thread of all of them.
const PROCESS: u32 = 1_000;

/// The names of a program's files.
pub struct ProgramNames {
    command: Text,
    call: Text,
    /// What SQLite locks.
    locked: Text,
    journal: Text,
    database: Text,
    /// Paths of the journal and of the database.
    pub journal_path: String,
    pub database_path: String,
}

impl ProgramNames {
    /// Those of this program.
    pub fn keep(program: &Program, texts: &mut Texts) -> Self {
        let path = |ending| format!("/data/{0}/{0}.db{ending}", program.name);
        let (locked, journal) = if program.is_log { ("-shm", "-wal") } else { ("", "-journal") };
        Self {
            command: texts.keep(program.name),
            call: texts.keep(program.call),
            locked: texts.keep(&path(locked)),
            journal: texts.keep(&path(journal)),
            database: texts.keep(&path("")),
            journal_path: path(journal),
            database_path: path(""),
        }
    }
}

/// Which of a program's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramFile {
    Journal,
    Database,
}

/// What SQLite is doing.
pub struct SqliteWork<'a> {
    pub id: TransactionId,
    pub kind: TransactionKind,
    pub program: &'static Program,
    pub names: &'a ProgramNames,
    /// The program's number, which its inodes come from.
    pub which: u64,
    pub begun_ns: u64,
}

impl SqliteWork<'_> {
    fn key(&self, number: u64) -> FileKey {
        FileKey { device: FILES, inode: 100 + self.which * 4 + number, generation: 1 }
    }

    fn file(&self, file: ProgramFile) -> (FileKey, Text, FileType) {
        match file {
            ProgramFile::Database => (self.key(2), self.names.database, FileType::SqliteDatabase),
            ProgramFile::Journal if self.program.is_log => {
                (self.key(1), self.names.journal, FileType::WriteAheadLog)
            }
            ProgramFile::Journal => (self.key(1), self.names.journal, FileType::RollbackJournal),
        }
    }

    fn run(&self, class: Class, bytes: u64, queued_ns: u64) -> BlockRun {
        BlockRun {
            queued_ns,
            sector: queued_ns / 1_000 % (1 << 24) / 8 * 8,
            bytes,
            class,
            journal_of_journal: class == Class::Journal,
            transaction: Some(self.id),
            process: PROCESS,
            for_process: PROCESS,
            command: self.names.command,
            ..BlockRun::default()
        }
    }

    /// A write into a file.
    pub fn write(&self, file: ProgramFile, bytes: u64, begun_ns: u64, ended_ns: u64) -> Request {
        let (file, name, file_type) = self.file(file);
        let run = BlockRun { file, name, file_type, ..self.run(Class::Data, bytes, begun_ns) };
        request(Operation::Write, run, ended_ns)
    }

    /// What the filesystem's journal writes for SQLite's.
    pub fn write_journal(&self, bytes: u64, begun_ns: u64, ended_ns: u64) -> Request {
        request(Operation::Write, self.run(Class::Journal, bytes, begun_ns), ended_ns)
    }

    /// A flush.
    pub fn flush(&self, begun_ns: u64, flush_ns: u64) -> Request {
        request(Operation::Flush, self.run(Class::Unattributed, 0, begun_ns), begun_ns + flush_ns)
    }

    /// The sync call that waited for a flush.
    pub fn sync(&self, id: SyncId, file: ProgramFile, begun_ns: u64, flush_ns: u64) -> Sync {
        let (file, name, file_type) = self.file(file);
        Sync {
            id,
            call: self.names.call,
            file,
            name,
            file_type,
            thread: PROCESS,
            process: PROCESS,
            command: self.names.command,
            begun_ns,
            ended_ns: Some(begun_ns + flush_ns),
            result: 0,
            bytes: [0; Class::ALL.len()],
            control_bytes: 0,
            flush_ns,
            requests: 1,
            writes: 0,
            flushes: 1,
            last_completed_ns: begun_ns + flush_ns,
            transaction: Some(self.id),
        }
    }

    /// The end of a rollback journal.
    pub fn journal_ends(&self, time_ns: u64) -> Event {
        let kind = if self.program.deletes { EventKind::Unlinked } else { EventKind::Truncated };
        Event { kind, file: self.key(1), name: self.names.journal, time_ns, ..Event::default() }
    }

    /// It is over, and so much was written and synced.
    pub fn transaction(&self, [data, journal]: [u64; 2], syncs: u64, ended_ns: u64) -> Transaction {
        let mut bytes = [0; Class::ALL.len()];
        bytes[usize::from(Class::Data.code())] = data;
        bytes[usize::from(Class::Journal.code())] = journal;
        Transaction {
            id: self.id,
            kind: self.kind,
            file: self.key(0),
            name: self.names.locked,
            thread: PROCESS,
            process: PROCESS,
            command: self.names.command,
            begun_ns: self.begun_ns,
            ended_ns: Some(ended_ns),
            until_close: false,
            syncs,
            bytes,
            journal_of_journal_bytes: journal,
            writes: u64::from(data > 0) + u64::from(journal > 0),
            flushes: syncs,
        }
    }
}

fn request(operation: Operation, run: BlockRun, completed_ns: u64) -> Request {
    Request {
        issued_ns: run.queued_ns,
        completed_ns: Some(completed_ns),
        disk: DISK,
        sector: run.sector,
        bytes: run.bytes,
        operation,
        command: run.command,
        runs: vec![run],
        ..Request::default()
    }
}
