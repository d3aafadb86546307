/* Commits of jbd2 and checkpoints of XFS's log, and which threads wait for them. */
#pragma once
#include "calls.h"
#include "requests.h"

#define MAGIC_EXT4 0xef53
/* So many threads are looked at for one commit: those that came first. */
#define WAITERS_MAX 64

INLINE bool is_of_interest(struct journal_s *journal) {
  return is_wanted(journal->j_fs_dev->bd_disk) || is_wanted(journal->j_dev->bd_disk);
}

INLINE void send_commit(u8 kind, struct journal_s *journal, u32 transaction) {
  struct record *record = begin(kind);
  if (!record) return;
  record->device = journal->j_fs_dev->bd_dev;
  record->detail = transaction;
  end(record);
}

/* The transaction that a call on ext4 needs when another one, `over`, has just ended; 0 where that cannot be seen. For a file the inode
 * says it (ext4_fsync_journal); for a directory the call needs all that there was when it began. */
INLINE u32 transaction_of(struct open_call *open, u32 over, u64 next_since_ns) {
  struct inode *inode = (void *)open->inode;
  if (!inode || !TYPE_EXISTS(struct ext4_inode_info) || !FIELD_EXISTS(struct ext4_inode_info, i_datasync_tid)) return 0;
  struct super_block *super = READ_NUMBER(inode, i_sb);
  if (READ_NUMBER(super, s_magic) != MAGIC_EXT4) return 0;
  if ((READ_NUMBER(inode, i_mode) & FILE_TYPE) == FILE_IS_DIRECTORY) {
    bool needs_next = next_since_ns && open->begun_ns > next_since_ns;
    return needs_next ? over + 1 : over;
  }
  struct ext4_inode_info *outer = (void *)(open->inode - FIELD_OFFSET(struct ext4_inode_info, vfs_inode));
  return open->call == CALL_FSYNC ? READ_NUMBER(outer, i_sync_tid) : READ_NUMBER(outer, i_datasync_tid);
}

struct waiters {
  u64 head;
  u64 at;
  u32 device;
  u32 transaction;
  /* The transaction is over: some of the list wait for the next. */
  bool is_over;
  /* Since when there is a next one; 0 where there is none. */
  u64 next_since_ns;
};

static long on_waiter(u32 index, struct waiters *waiters) {
  if (!waiters->at || waiters->at == waiters->head) return 1;
  struct list_head *link = (void *)waiters->at;
  struct wait_queue_entry *entry = (void *)(waiters->at - FIELD_OFFSET(struct wait_queue_entry, entry));
  struct task_struct *task = READ_NUMBER(entry, private);
  // The latest is the first of the list.
  waiters->at = (u64)READ_NUMBER(link, prev);
  u32 thread = task ? READ_NUMBER(task, pid) : 0;
  u32 transaction = waiters->transaction;
  struct open_call *open = map_lookup(&open_calls, &thread);
  if (open && open->call) {
    if (waiters->is_over) transaction = transaction_of(open, transaction, waiters->next_since_ns);
    u64 awaited = (u64)waiters->device << 32 | transaction;
    if (!transaction || open->awaited == awaited) return 0;
    open->awaited = awaited;
  } else if (waiters->is_over || !thread) {
    return 0;
  }
  struct record *record = begin(JOURNAL_WAIT);
  if (!record) return 1;
  record->device = waiters->device;
  record->detail = transaction;
  record->thread = thread;
  record->process = READ_NUMBER(task, tgid);
  read_kernel_text(record->command, sizeof(record->command), task->comm);
  end(record);
  return 0;
}

/* Who waits for a transaction, by the list of those that sleep until a commit is over. Commits are over one by one, and the end of each
 * wakes all of the list. Who needs the next one comes back to the list when it runs, mostly after that one's writes: so the list is looked
 * at when a commit is over, before it wakes anybody, and twice before the next one's writes. */
INLINE void send_waiters(struct journal_s *journal, u64 address, u32 transaction, bool is_over) {
  if (!FIELD_EXISTS(struct journal_s, j_wait_done_commit)) return;
  u64 head = address + FIELD_OFFSET(struct journal_s, j_wait_done_commit.head);
  u64 last = (u64)READ_NUMBER((struct list_head *)head, prev);
  struct waiters waiters = {head, last, journal->j_fs_dev->bd_dev, transaction, is_over, 0};
  struct transaction_s *next = is_over ? READ_NUMBER((struct journal_s *)address, j_running_transaction) : NULL;
  if (next) waiters.next_since_ns = READ_NUMBER(next, t_start_time);
  loop(WAITERS_MAX, on_waiter, &waiters, 0);
}

/* Nothing joins the transaction from here on, and nothing of it is written yet. */
PROGRAM(jbd2_commit_flushing) {
  struct journal_s *journal = (void *)arguments[0];
  struct transaction_s *transaction = (void *)arguments[1];
  if (!is_of_interest(journal)) return 0;
  send_commit(JOURNAL_BEGIN, journal, transaction->t_tid);
  send_waiters(journal, number_of(arguments), transaction->t_tid, false);
  return 0;
}

/* Data of the transaction is written, its log is not. */
PROGRAM(jbd2_commit_logging) {
  struct journal_s *journal = (void *)arguments[0];
  struct transaction_s *transaction = (void *)arguments[1];
  if (is_of_interest(journal)) send_waiters(journal, number_of(arguments), transaction->t_tid, false);
  return 0;
}

PROGRAM(jbd2_end_commit) {
  struct journal_s *journal = (void *)arguments[0];
  struct transaction_s *transaction = (void *)arguments[1];
  if (!is_of_interest(journal)) return 0;
  send_waiters(journal, number_of(arguments), transaction->t_tid, true);
  send_commit(JOURNAL_END, journal, transaction->t_tid);
  return 0;
}

/* A thread waits for a checkpoint of XFS's log; 0: for all that it holds. The kernel says the same twice, and its own threads ask, too.
 * A sync without a call of its own is of interest where its end is seen. */
PROGRAM(xfs_log_force) {
  struct xfs_mount *mount = (void *)number_of(arguments);
  u64 checkpoint = arguments[1];
  struct open_call *open = call_under_way();
  if (!TYPE_EXISTS(struct xfs_mount) || (!open && !(checkpoint && settings.ends_of_xfs))) return 0;
  struct super_block *super = READ_NUMBER(mount, m_super);
  u32 device = READ_NUMBER(super, s_dev);
  if (open) {
    u64 awaited = (u64)device << 32 | (u32)checkpoint;
    if (open->awaited == awaited) return 0;
    open->awaited = awaited;
  }
  struct record *record = begin(JOURNAL_WAIT);
  if (!record) return 0;
  record->device = device;
  record->detail = checkpoint;
  end(record);
  return 0;
}
