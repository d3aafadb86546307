/* What goes up to user space, and how it goes. crates/joj/src/machine/capture/bpf/record.rs reads the same bytes; the codes are those of
 * crates/joj-analysis/src/trace/event.rs. */
#pragma once
#include "kernel.h"

enum kind {
  QUEUE = 1,
  ISSUE = 2,
  COMPLETE = 3,
  REQUEUE = 4,
  SYNC_BEGIN = 5,
  SYNC_END = 6,
  LOCK = 7,
  NAMED = 8,
  UNLINKED = 9,
  TRUNCATED = 10,
  JOURNAL_BEGIN = 11,
  JOURNAL_END = 12,
  FREED = 15,
  DURABLE_WRITE = 16,
  JOURNAL_WAIT = 17,
  FORKED = 19,
};
enum operation { OP_READ, OP_WRITE, OP_FLUSH, OP_DISCARD, OP_WRITE_ZEROES, OP_OTHER };
enum backing { UNSEEN, BY_FILE, BY_DEVICE, DIRECT, PRIVATE, INNER };
enum content {
  CONTENT_UNKNOWN = 0,
  JOURNAL_DESCRIPTOR = 1,
  JOURNAL_COMMIT = 2,
  JOURNAL_SUPERBLOCK = 3,
  JOURNAL_REVOKE = 4,
  XFS_LOG = 5,
  BTRFS_TREE = 6,
  XFS_BUFFER = 7,
  SQLITE_DATABASE = 8,
  SQLITE_JOURNAL = 9,
  SQLITE_LOG = 10,
  CONTENT_OTHER = 11,
};
enum flags { F_SYNC = 1, F_METADATA = 2, F_FUA = 4, F_PREFLUSH = 8, F_READ_AHEAD = 16, F_CONTINUED = 32, F_CUT_SHORT = 64 };

struct record {
  u64 time_ns;
  u64 sector;
  u64 bytes;
  u64 inode;
  u64 offset;
  s64 detail;
  u32 device;
  u32 file_device;
  u32 generation;
  u32 thread;
  u32 process;
  u16 flags;
  u8 kind;
  u8 operation;
  u8 backing;
  u8 content;
  u8 call;
  /* Of names of a path, the file's own first, as text: PATH_CUT: it goes on above the directory with inode number `offset`;
   * PATH_OF_DIRECTORY: it is one's. */
  u8 path_marks;
  char command[16];
  u32 text_bytes;
};
_Static_assert(sizeof(struct record) == 96, "bpf_record.rs reads 96 bytes");
#define PATH_CUT 128
#define PATH_OF_DIRECTORY 64

struct {
  int (*type)[MAP_RING_BUFFER];
  int (*max_entries)[16 << 20];
} events SECTION(".maps");
/* Records for which there was no room. */
MAP(MAP_PER_CPU_ARRAY, u32, u64, 1) lost SECTION(".maps");

INLINE void count_lost(void) {
  u32 first = 0;
  u64 *count = map_lookup(&lost, &first);
  if (count) *count += 1;
}

/* The reader looks ten times a second by itself. Waking it for each event would cost a commit more than all the rest here, so that is
 * done when the buffer is half full. */
#define WAKE_BYTES (8 << 20)
#define NO_WAKE_UP 1
#define WAKE_UP 2

INLINE u64 wake_flags(void) {
  return ring_query(&events, 0) >= WAKE_BYTES ? WAKE_UP : NO_WAKE_UP;
}

#define PF_IO_WORKER 0x00000010

/* The thread's name; of a worker of io_uring's, the name of the program that it works for. */
INLINE void name_thread(char *name) {
  struct task_struct *task = current_task();
  if (task->flags & PF_IO_WORKER)
    read_kernel_text(name, 16, task->group_leader->comm);
  else
    current_command(name, 16);
}

INLINE void stamp(struct record *record, u8 kind) {
  u64 both = current_process_thread();
  record->time_ns = now_ns();
  record->kind = kind;
  record->thread = (u32)both;
  record->process = both >> 32;
  name_thread(record->command);
}

/* A record of zeros but for who and when; NULL, and counted, where there is no room. */
INLINE struct record *begin(u8 kind) {
  struct record *record = ring_reserve(&events, sizeof(struct record), 0);
  if (!record) {
    count_lost();
    return NULL;
  }
  __builtin_memset(record, 0, sizeof(*record));
  stamp(record, kind);
  return record;
}

INLINE void end(struct record *record) {
  ring_submit(record, wake_flags());
}
