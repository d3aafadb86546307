//! SQLite's commits and checkpoints, seen by the locks that it takes.
//!
//! A rollback-journal transaction holds RESERVED (byte 0x40000001 of the database) from its first change to its end; a
//! transaction in WAL mode holds byte 120 of the wal-index, a checkpoint byte 121 (sqlite.org/lockingv3.html, walformat.html).
//! Who opens a log first makes the wal-index from it (recovery). It holds byte 120, and gives back 121 and 122 together, which nothing
//! else does.
//! After the lock was given back, a sync of the log in the same thread belongs to the commit still: that is how an extension shares
//! flushes. Not if the thread took another lock before: the last close locks the database first, and then syncs the log. In exclusive
//! locking mode there are no such locks, and so no commits.
//!
//! A thread may be in transactions of several databases at once. A sync call of SQLite's files belongs to that of its database; what names
//! no database belongs to the one that began last. SQLite syncs a directory for a file that it has just synced or deleted there: that sync
//! belongs to where this file's belongs. A transaction over two databases is a commit of each, and what ties their journals together
//! belongs to that of the main one.

use std::collections::HashMap;

use crate::filesystem::class::Class;
use crate::trace::attribution::files::{FileInfo, database_of};
use crate::trace::attribution::request::{Request, Transaction, TransactionId, TransactionKind};
use crate::trace::event::{Event, FileKey, Operation, UNLOCK};
use crate::trace::file_type::FileType;
use crate::trace::texts::{Text, Texts};

const RESERVED_BYTE: u64 = 0x4000_0001;
const WAL_WRITE_BYTE: u64 = 120;
const WAL_CHECKPOINT_BYTE: u64 = 121;
const WAL_RECOVERY_BYTE: u64 = 122;
/// The checkpoint's byte and that of recovery: (first byte, count).
const RECOVERY_BYTES: (u64, u64) = (121, 2);
/// `detail` of a lock event (F_WRLCK).
const WRITE_LOCK: i64 = 1;

/// Transactions under way, and those that each thread ended since it last began one.
#[derive(Debug, Default)]
pub struct OpenTransactions {
    of_thread: HashMap<u32, Vec<Transaction>>,
    /// Who has a file's lock byte.
    holders: HashMap<(u32, FileKey, u64), u32>,
    threads: HashMap<TransactionId, u32>,
    /// For whose database each thread last synced or deleted a file of SQLite's.
    last_file_of: HashMap<u32, TransactionId>,
    /// When each thread last took a lock.
    locked_ns: HashMap<u32, u64>,
    begun: u64,
}

impl OpenTransactions {
    /// A lock was set or given back. Returns what the thread ended before and is over for good.
    pub fn lock(&mut self, event: &Event, info: FileInfo, texts: &Texts) -> Vec<Transaction> {
        match event.detail {
            WRITE_LOCK => {
                self.locked_ns.insert(event.thread, event.time_ns);
                return self.begin(event, info, texts);
            }
            UNLOCK => {
                if (event.offset, event.bytes) == RECOVERY_BYTES {
                    self.recovers(event);
                }
                for byte in [RESERVED_BYTE, WAL_WRITE_BYTE, WAL_CHECKPOINT_BYTE] {
                    if is_about(event, byte) {
                        self.end(event, byte);
                    }
                }
            }
            _ => {}
        }
        Vec::new()
    }

    /// The byte of a transaction that a lock was set on. Where a process has the lock of the next byte or of the one before, the kernel makes
    /// one lock of both, and reports that one (fs/locks.c, posix_lock_inode()).
    fn locked_byte(&self, event: &Event) -> Option<u64> {
        if event.bytes == 1 {
            return Some(event.offset);
        }
        let is_new = |byte: &u64| {
            is_about(event, *byte) && !self.holders.contains_key(&(event.process, event.file, *byte))
        };
        let mut new = [WAL_WRITE_BYTE, WAL_CHECKPOINT_BYTE, WAL_RECOVERY_BYTE].into_iter().filter(is_new);
        new.next().filter(|_| new.next().is_none())
    }

    fn begin(&mut self, event: &Event, info: FileInfo, texts: &Texts) -> Vec<Transaction> {
        let (kind, byte) = match self.locked_byte(event) {
            Some(byte @ (RESERVED_BYTE | WAL_WRITE_BYTE)) => (TransactionKind::Commit, byte),
            Some(byte @ WAL_CHECKPOINT_BYTE) => (TransactionKind::Checkpoint, byte),
            _ => return Vec::new(),
        };
        let transactions = self.of_thread.entry(event.thread).or_default();
        // A checkpoint that starts the log anew takes the write lock as well.
        let is_in_it = |transaction: &Transaction| {
            transaction.ended_ns.is_none()
                && (transaction.file == event.file || is_same_database(transaction, info.name, texts))
        };
        if transactions.iter().any(is_in_it) {
            return Vec::new();
        }
        let id = TransactionId(self.begun);
        self.begun += 1;
        self.holders.insert((event.process, event.file, byte), event.thread);
        let (over, mut left): (Vec<Transaction>, Vec<Transaction>) =
            std::mem::take(transactions).into_iter().partition(|transaction| transaction.ended_ns.is_some());
        left.push(Transaction {
            id,
            kind,
            file: event.file,
            name: info.name,
            thread: event.thread,
            process: event.process,
            command: event.command,
            begun_ns: event.time_ns,
            ended_ns: None,
            until_close: false,
            syncs: 0,
            bytes: [0; Class::ALL.len()],
            journal_of_journal_bytes: 0,
            writes: 0,
            flushes: 0,
        });
        *transactions = left;
        self.threads.insert(id, event.thread);
        for transaction in &over {
            self.threads.remove(&transaction.id);
        }
        over
    }

    /// Who has the write lock of this wal-index made it anew.
    fn recovers(&mut self, event: &Event) {
        let Some(thread) = self.holders.get(&(event.process, event.file, WAL_WRITE_BYTE)) else { return };
        let transactions = self.of_thread.get_mut(thread).into_iter().flatten();
        let mut under_way = transactions
            .filter(|transaction| transaction.file == event.file && transaction.ended_ns.is_none());
        if let Some(transaction) = under_way.find(|transaction| transaction.kind == TransactionKind::Commit) {
            transaction.kind = TransactionKind::Recovery;
        }
    }

    fn end(&mut self, event: &Event, byte: u64) {
        let Some(thread) = self.holders.remove(&(event.process, event.file, byte)) else { return };
        let under_way =
            |transaction: &&mut Transaction| transaction.file == event.file && transaction.ended_ns.is_none();
        let transactions = self.of_thread.get_mut(&thread).into_iter().flatten();
        for transaction in transactions.filter(under_way) {
            transaction.ended_ns = Some(event.time_ns);
            transaction.until_close = byte == RESERVED_BYTE && (event.offset, event.bytes) == (0, 0);
        }
    }

    /// The transaction that a sync call of a thread belongs to, which counts it; `info`: the file that is synced.
    pub fn sync(&mut self, thread: u32, info: FileInfo, texts: &Texts) -> Option<TransactionId> {
        let transactions = self.of_thread.get_mut(&thread)?;
        let locked_ns = self.locked_ns.get(&thread).copied().unwrap_or(0);
        let is_late = |transaction: &Transaction| {
            transaction.kind == TransactionKind::Commit
                && transaction.syncs == 0
                && transaction.ended_ns.is_some_and(|ended_ns| ended_ns > locked_ns)
                && info.file_type == FileType::WriteAheadLog
        };
        let may_be = |transaction: &Transaction| transaction.ended_ns.is_none() || is_late(transaction);
        let last = self.last_file_of.get(&thread).filter(|_| info.file_type == FileType::Directory);
        let of_last =
            |transaction: &Transaction| Some(&transaction.id) == last && transaction.ended_ns.is_none();
        let index = transactions.iter().position(of_last);
        let index = index.or_else(|| chosen(transactions, may_be, info, texts))?;
        let transaction = &mut transactions[index];
        transaction.syncs += 1;
        if info.file_type.is_sqlite() {
            self.last_file_of.insert(thread, transaction.id);
        }
        Some(transaction.id)
    }

    /// A thread deletes a file.
    pub fn unlinked(&mut self, thread: u32, info: FileInfo, texts: &Texts) {
        if info.file_type.is_sqlite()
            && let Some(transaction) = self.under_way_with(thread, info, texts)
        {
            self.last_file_of.insert(thread, transaction);
        }
    }

    /// What a thread is in the middle of where something happens to this file.
    pub fn under_way_with(&self, thread: u32, info: FileInfo, texts: &Texts) -> Option<TransactionId> {
        let transactions = self.of_thread.get(&thread)?;
        chosen(transactions, |transaction| transaction.ended_ns.is_none(), info, texts)
            .map(|index| transactions[index].id)
    }

    /// A sync call that was counted turned out to be none.
    pub fn not_a_sync(&mut self, transaction: Option<TransactionId>) {
        if let Some(transaction) = transaction.and_then(|id| self.get_mut(id)) {
            transaction.syncs = transaction.syncs.saturating_sub(1);
        }
    }

    /// What a thread is in the middle of: what it began last.
    pub fn under_way(&self, thread: u32) -> Option<TransactionId> {
        let mut newest_first = self.of_thread.get(&thread)?.iter().rev();
        newest_first.find(|transaction| transaction.ended_ns.is_none()).map(|transaction| transaction.id)
    }

    /// A transaction that may still get requests.
    pub fn get_mut(&mut self, id: TransactionId) -> Option<&mut Transaction> {
        self.of_thread.get_mut(self.threads.get(&id)?)?.iter_mut().find(|transaction| transaction.id == id)
    }

    /// Commit or checkpoint, as long as the transaction may get requests.
    pub fn kind(&self, id: TransactionId) -> Option<TransactionKind> {
        let transactions = self.of_thread.get(self.threads.get(&id)?)?;
        transactions.iter().find(|transaction| transaction.id == id).map(|transaction| transaction.kind)
    }

    /// Adds a request to the transactions for which its runs were written.
    pub fn count(&mut self, request: &Request) {
        let is_flush = request.operation == Operation::Flush;
        let mut counted = None;
        for run in &request.runs {
            let Some(transaction) = run.transaction.and_then(|id| self.get_mut(id)) else { continue };
            let written = request.written_of(run);
            transaction.bytes[usize::from(run.class.code())] += written;
            transaction.journal_of_journal_bytes += if run.journal_of_journal { written } else { 0 };
            if counted != run.transaction {
                counted = run.transaction;
                transaction.flushes += u64::from(is_flush);
                transaction.writes += u64::from(request.operation == Operation::Write);
            }
        }
    }

    /// Everything that is left, in the order in which it began.
    pub fn finish(&mut self) -> Vec<Transaction> {
        let mut left: Vec<Transaction> =
            std::mem::take(&mut self.of_thread).into_values().flatten().collect();
        left.sort_by_key(|transaction| transaction.id);
        left
    }
}

/// True for a byte that a lock event is about; without a length it is about all to the end of the file.
fn is_about(event: &Event, byte: u64) -> bool {
    event.offset <= byte && (event.bytes == 0 || byte - event.offset < event.bytes)
}

/// The newest of those that `may_be` that is of the file's database, where the file is SQLite's; else the newest of them.
fn chosen(
    transactions: &[Transaction],
    may_be: impl Fn(&Transaction) -> bool,
    info: FileInfo,
    texts: &Texts,
) -> Option<usize> {
    let is_of =
        |transaction: &Transaction| may_be(transaction) && is_same_database(transaction, info.name, texts);
    let is_sqlites = info.file_type.is_sqlite() || info.file_type == FileType::SharedMemory;
    let is_others = |transaction: &Transaction| is_sqlites && has_names(transaction, info.name, texts);
    let newest =
        || transactions.iter().rposition(|transaction| may_be(transaction) && !is_others(transaction));
    transactions.iter().rposition(is_of).or_else(newest)
}

/// True where the names are known and of one database.
fn is_same_database(transaction: &Transaction, name: Text, texts: &Texts) -> bool {
    let [one, other] = [transaction.name, name].map(|name| database_of(texts.get(name)));
    has_names(transaction, name, texts) && one == other
}

fn has_names(transaction: &Transaction, name: Text, texts: &Texts) -> bool {
    [transaction.name, name].into_iter().all(|name| !texts.get(name).is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock(time_ns: u64, thread: u32, offset: u64, bytes: u64, detail: i64) -> Event {
        let file = FileKey { inode: 7, ..FileKey::NONE };
        Event { time_ns, thread, process: 1, offset, bytes, detail, file, ..Event::default() }
    }

    fn named(name: Text) -> FileInfo {
        FileInfo { name, file_type: FileType::SqliteDatabase, deleted: false }
    }

    #[test]
    fn a_transaction_lasts_from_reserved_to_its_unlock() {
        let (mut transactions, texts) = (OpenTransactions::default(), Texts::default());
        let database = FileInfo { file_type: FileType::SqliteDatabase, ..FileInfo::default() };
        assert_eq!(transactions.lock(&lock(1, 5, RESERVED_BYTE, 1, 1), database, &texts), []);
        let inside = transactions.sync(5, database, &texts);
        // SQLite gives back PENDING and RESERVED at once.
        transactions.lock(&lock(9, 5, RESERVED_BYTE - 1, 2, 2), database, &texts);
        assert_eq!(
            (inside, transactions.under_way(5), transactions.sync(5, database, &texts)),
            (Some(TransactionId(0)), None, None)
        );
        let before = &transactions.lock(&lock(11, 5, RESERVED_BYTE, 1, 1), database, &texts)[0];
        assert_eq!((before.begun_ns, before.ended_ns, before.syncs), (1, Some(9), 1));
        assert!(!before.until_close);
        transactions.lock(&lock(12, 5, 0, 0, 2), database, &texts);
        assert!(transactions.finish()[0].until_close, "the connection closed");
    }

    #[test]
    fn a_shared_flush_after_the_lock_belongs_to_the_commit() {
        let (mut transactions, texts) = (OpenTransactions::default(), Texts::default());
        let log = FileInfo { file_type: FileType::WriteAheadLog, ..FileInfo::default() };
        transactions.lock(&lock(1, 5, WAL_WRITE_BYTE, 1, 1), FileInfo::default(), &texts);
        transactions.lock(&lock(2, 5, WAL_WRITE_BYTE, 1, 2), FileInfo::default(), &texts);
        assert_eq!(transactions.sync(5, log, &texts), Some(TransactionId(0)));
        assert_eq!(transactions.sync(5, log, &texts), None, "one flush is enough for a commit");
    }

    #[test]
    fn the_sync_of_the_last_close_belongs_to_no_commit() {
        let (mut transactions, texts) = (OpenTransactions::default(), Texts::default());
        let log = FileInfo { file_type: FileType::WriteAheadLog, ..FileInfo::default() };
        transactions.lock(&lock(1, 5, WAL_WRITE_BYTE, 1, 1), FileInfo::default(), &texts);
        transactions.lock(&lock(2, 5, WAL_WRITE_BYTE, 1, 2), FileInfo::default(), &texts);
        // Another thread's lock changes nothing; its own is that of the database, PENDING.
        transactions.lock(&lock(3, 6, RESERVED_BYTE - 1, 1, 1), FileInfo::default(), &texts);
        transactions.lock(&lock(4, 5, RESERVED_BYTE - 1, 1, 1), FileInfo::default(), &texts);
        assert_eq!(transactions.sync(5, log, &texts), None);
        assert_eq!(transactions.finish()[0].syncs, 0);
    }

    #[test]
    fn a_checkpoint_is_no_commit_even_where_it_takes_the_write_lock() {
        let (mut transactions, texts) = (OpenTransactions::default(), Texts::default());
        for (time_ns, byte, detail) in
            [(1, WAL_CHECKPOINT_BYTE, 1), (2, WAL_WRITE_BYTE, 1), (3, WAL_WRITE_BYTE, 2)]
        {
            transactions.lock(&lock(time_ns, 5, byte, 1, detail), FileInfo::default(), &texts);
        }
        assert_eq!(transactions.under_way(5), Some(TransactionId(0)));
        transactions.lock(&lock(4, 6, 0, 0, 2), FileInfo::default(), &texts);
        let left = transactions.finish();
        assert_eq!((left.len(), left[0].kind, left[0].ended_ns), (1, TransactionKind::Checkpoint, Some(4)));
    }

    #[test]
    fn a_thread_commits_beside_anothers_checkpoint_and_the_other_way_round() {
        let (mut transactions, texts) = (OpenTransactions::default(), Texts::default());
        let mut over = Vec::new();
        let mut seen = |time_ns, thread, byte, bytes, detail| {
            let event = lock(time_ns, thread, byte, bytes, detail);
            over.extend(transactions.lock(&event, FileInfo::default(), &texts));
        };
        // The kernel tells of both bytes where the process has one of them.
        seen(1, 5, WAL_CHECKPOINT_BYTE, 1, WRITE_LOCK);
        seen(2, 6, WAL_WRITE_BYTE, 2, WRITE_LOCK);
        seen(3, 6, WAL_WRITE_BYTE, 1, UNLOCK);
        seen(4, 6, WAL_WRITE_BYTE, 2, WRITE_LOCK);
        seen(5, 5, WAL_CHECKPOINT_BYTE, 1, UNLOCK);
        seen(6, 5, WAL_WRITE_BYTE, 2, WRITE_LOCK);
        seen(7, 6, WAL_WRITE_BYTE, 1, UNLOCK);
        // A checkpoint that waits for writers.
        seen(8, 5, WAL_WRITE_BYTE, 2, WRITE_LOCK);
        seen(9, 5, WAL_WRITE_BYTE, 1, UNLOCK);
        seen(10, 5, WAL_CHECKPOINT_BYTE, 1, UNLOCK);
        over.extend(transactions.finish());
        over.sort_by_key(|one| one.id);
        let told: Vec<_> =
            over.iter().map(|one| (one.kind, one.thread, one.begun_ns, one.ended_ns)).collect();
        let (commit, checkpoint) = (TransactionKind::Commit, TransactionKind::Checkpoint);
        let expected = [
            (checkpoint, 5, 1, Some(5)),
            (commit, 6, 2, Some(3)),
            (commit, 6, 4, Some(7)),
            (checkpoint, 5, 6, Some(10)),
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn who_makes_the_wal_index_commits_nothing() {
        let (mut transactions, texts) = (OpenTransactions::default(), Texts::default());
        let mut seen = |time_ns, byte, bytes, detail| {
            transactions.lock(&lock(time_ns, 5, byte, bytes, detail), FileInfo::default(), &texts)
        };
        seen(1, WAL_WRITE_BYTE, 1, WRITE_LOCK);
        seen(2, WAL_WRITE_BYTE, 3, WRITE_LOCK);
        seen(2, 121, 2, UNLOCK);
        seen(3, WAL_WRITE_BYTE, 1, UNLOCK);
        let recovery = seen(4, WAL_WRITE_BYTE, 1, WRITE_LOCK);
        seen(5, WAL_WRITE_BYTE, 1, UNLOCK);
        let kinds = |of: Vec<Transaction>| of.iter().map(|one| (one.kind, one.ended_ns)).collect::<Vec<_>>();
        assert_eq!(kinds(recovery), [(TransactionKind::Recovery, Some(3))]);
        assert_eq!(kinds(transactions.finish()), [(TransactionKind::Commit, Some(5))]);
    }

    #[test]
    fn a_directory_is_synced_for_the_file_that_was_synced_or_deleted_before() {
        let (mut transactions, mut texts) = (OpenTransactions::default(), Texts::default());
        let [one, other] = ["/a.db", "/b.db"].map(|name| named(texts.keep(name)));
        let [its, others] = ["/a.db-journal", "/b.db-journal"].map(|name| named(texts.keep(name)));
        let directory = FileInfo { file_type: FileType::Directory, ..named(texts.keep("/")) };
        for (inode, database) in [(1, one), (2, other)] {
            let file = FileKey { inode, ..FileKey::NONE };
            transactions.lock(&Event { file, ..lock(inode, 5, RESERVED_BYTE, 1, 1) }, database, &texts);
        }
        let [first, second] = [0, 1].map(|number| Some(TransactionId(number)));
        assert_eq!(transactions.sync(5, directory, &texts), second, "the one that began last");
        for (journal, expected) in [(its, first), (others, second)] {
            assert_eq!(transactions.sync(5, journal, &texts), expected);
            assert_eq!(transactions.sync(5, directory, &texts), expected);
        }
        transactions.unlinked(5, its, &texts);
        assert_eq!(transactions.sync(5, directory, &texts), first);
        let both = FileInfo { file_type: FileType::SuperJournal, ..named(texts.keep("/a.db-mj1A2B3C4D5")) };
        assert_eq!(transactions.sync(5, others, &texts), second);
        assert_eq!([both, directory].map(|file| transactions.sync(5, file, &texts)), [first; 2]);
        assert_eq!(transactions.sync(5, others, &texts), second);
        transactions.unlinked(5, both, &texts);
        assert_eq!(transactions.sync(5, directory, &texts), first);
    }

    #[test]
    fn a_thread_commits_to_one_database_while_it_has_the_lock_of_another() {
        let (mut transactions, mut texts) = (OpenTransactions::default(), Texts::default());
        let [one, other, journal, shared] =
            ["/e.db", "/g.db", "/e.db-journal", "/g.db-shm"].map(|name| named(texts.keep(name)));
        let of = |inode: u64, event: Event| Event { file: FileKey { inode, ..FileKey::NONE }, ..event };
        transactions.lock(&of(1, lock(1, 5, RESERVED_BYTE, 1, 1)), one, &texts);
        let mut over = Vec::new();
        for time_ns in [10, 20] {
            over.extend(transactions.lock(&of(2, lock(time_ns, 5, RESERVED_BYTE, 1, 1)), other, &texts));
            // It is the same transaction still.
            assert!(
                transactions.lock(&of(3, lock(time_ns, 5, WAL_WRITE_BYTE, 1, 1)), shared, &texts).is_empty()
            );
            let newest = transactions.under_way(5);
            assert_eq!(transactions.sync(5, other, &texts), newest);
            assert_eq!(transactions.sync(5, FileInfo::default(), &texts), newest, "a directory, say");
            assert_eq!(
                transactions.sync(5, journal, &texts),
                Some(TransactionId(0)),
                "of the other database"
            );
            transactions.lock(&of(2, lock(time_ns + 5, 5, RESERVED_BYTE - 1, 2, 2)), other, &texts);
        }
        over.extend(transactions.finish());
        let told: Vec<_> = over
            .iter()
            .map(|transaction| (transaction.name == one.name, transaction.syncs, transaction.ended_ns))
            .collect();
        assert_eq!(told, [(false, 2, Some(15)), (true, 2, None), (false, 2, Some(25))]);
    }
}
