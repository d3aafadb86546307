/* What programs ask for: to make something durable, to lock, to cut a file. */
#pragma once
#include "files.h"
#include "settings.h"

/* Call numbers differ by architecture. Order and codes: crates/joj/src/machine/capture/bpf/calls.rs. */
enum call {
  CALL_NONE,
  CALL_FSYNC,
  CALL_FDATASYNC,
  CALL_SYNC_FILE_RANGE,
  CALL_MSYNC,
  CALL_SYNC,
  CALL_SYNCFS,
  CALL_WRITE,
  CALL_PWRITE64,
  CALL_WRITEV,
  CALL_PWRITEV,
  CALL_PWRITEV2,
  CALL_FTRUNCATE,
  CALL_FILE_SYNC,
  CALL_TRUNCATE,
  CALL_OPEN,
  CALL_OPENAT,
  CALL_OPENAT2,
  CALL_CREAT,
  CALL_IO_SUBMIT,
};
/* Beside a code: a length of 64 bits (ftruncate64, truncate64). */
#define CALL_LONG 0x80
#define O_DSYNC 010000
#define O_TRUNC 01000
/* The file was not there before it was opened. */
#define FMODE_CREATED 0x100000
/* Opened with O_PATH. */
#define FMODE_PATH 0x4000
#define RWF_DSYNC 2
#define RWF_SYNC 4
#define MS_SYNC 4

/* The call that a thread is in; `call` is CALL_NONE when it is in none. The entry stays: making and deleting one for each call would
 * cost as much as all the rest of it. */
struct open_call {
  struct file_key key;
  u64 length;
  /* The file's, while the call is under way. */
  u64 inode;
  u64 begun_ns;
  /* The transaction that it was last told to wait for, below its filesystem's device. */
  u64 awaited;
  u8 call;
};
MAP(MAP_LRU_HASH, u32, struct open_call, 16384) open_calls SECTION(".maps");

INLINE struct open_call *call_under_way(void) {
  u32 thread = (u32)current_process_thread();
  struct open_call *open = map_lookup(&open_calls, &thread);
  return open && open->call ? open : NULL;
}

INLINE struct file *file_of(u64 descriptor) {
  struct task_struct *task = current_task();
  struct fdtable *table = task->files->fdt;
  if ((u32)descriptor >= table->max_fds) return NULL;
  struct file **files = table->fd;
  struct file *file = NULL;
  read_kernel(&file, sizeof(file), &files[(u32)descriptor]);
  return file;
}

struct mapped {
  struct file *file;
};
static long on_mapping(struct task_struct *task, struct vm_area_struct *area, struct mapped *mapped) {
  mapped->file = READ_NUMBER(area, vm_file);
  return 0;
}

INLINE void open_call(u8 call, u8 kind, struct file *file, u64 offset, u64 bytes, u64 length) {
  u32 thread = (u32)current_process_thread();
  struct open_call news = {};
  struct place place = {};
  if (file) place = place_of_file(file);
  if (place.inode) {
    news.key = key_of(place.inode);
    news.inode = (u64)place.inode;
    say_name((u64)place.inode, place.dentry);
  }
  news.call = call;
  news.length = length;
  news.begun_ns = now_ns();
  struct open_call *before = map_lookup(&open_calls, &thread);
  if (before)
    *before = news;
  else
    map_update(&open_calls, &thread, &news, 0);
  if (!kind) return;
  struct record *record = begin(kind);
  if (!record) return;
  set_file(record, &news.key);
  record->call = call;
  record->offset = offset;
  record->bytes = bytes;
  end(record);
}

/* A system call's arguments, whichever registers they came in. */
struct call_arguments {
  u64 at[6];
  /* A call of 32 bits: it has 64 bits in two arguments, the lower ones first. */
  bool is_compat;
};

INLINE u64 joined(const struct call_arguments *of, u32 first) {
  return of->is_compat ? of->at[first] | of->at[first + 1] << 32 : of->at[first];
}

/* What a call writes from: struct iovec, two words each, the second of which is a length. */
struct pieces {
  u64 at;
  u64 count;
  u64 word_bytes;
  bool has_bytes;
};
enum { PIECES_OF_CALL_MAX = 1024 };
static long on_piece_of_call(u32 index, struct pieces *pieces) {
  u64 length = 0, word_bytes = pieces->word_bytes;
  if (index >= pieces->count) return 1;
  const void *at = (void *)(pieces->at + (2 * index + 1) * word_bytes);
  // Memory that is not there yet may hold anything.
  pieces->has_bytes = read_user(&length, word_bytes == 4 ? 4 : 8, at) || length;
  return pieces->has_bytes;
}

INLINE bool has_bytes(u8 call, const struct call_arguments *of) {
  if (call == CALL_WRITE || call == CALL_PWRITE64) return of->at[2];
  struct pieces pieces = {of->at[1], of->at[2], of->is_compat ? 4 : 8, false};
  loop(PIECES_OF_CALL_MAX, on_piece_of_call, &pieces, 0);
  return pieces.has_bytes;
}

INLINE void on_write(u8 call, const struct call_arguments *of) {
  struct file *file = file_of(of->at[0]);
  if (!file) return;
  u64 now = call == CALL_PWRITEV2 ? of->at[5] & (RWF_DSYNC | RWF_SYNC) : 0;
  if (!now && !(READ(file, f_flags) & O_DSYNC)) return;
  bool placed = call == CALL_PWRITE64 || call == CALL_PWRITEV || call == CALL_PWRITEV2;
  u64 offset = placed ? joined(of, 3) : READ(file, f_pos);
  // Without them the kernel makes nothing durable.
  if (!has_bytes(call, of)) return;
  u64 bytes = call == CALL_WRITE || call == CALL_PWRITE64 ? of->at[2] : 0;
  open_call(call, DURABLE_WRITE, file, offset, bytes, 0);
}

/* A descriptor of nothing, or for paths alone, is about no file: the call fails (EBADF). */
INLINE void on_sync(u8 call, const struct call_arguments *of) {
  struct file *file = file_of(of->at[0]);
  if (file && !(READ_NUMBER(file, f_mode) & FMODE_PATH)) open_call(call, SYNC_BEGIN, file, 0, 0, 0);
}

/* Which file is cut is known when the call returns: it is the one that it opened. */
INLINE void on_open(u8 call, const struct call_arguments *of) {
  u64 flags = call == CALL_OPEN ? of->at[1] : of->at[2];
  // struct open_how begins with them.
  if (call == CALL_OPENAT2 && read_user(&flags, sizeof(flags), (void *)of->at[2])) return;
  if (call == CALL_CREAT || flags & O_TRUNC) open_call(call, 0, NULL, 0, 0, 0);
}

/* Who asked last that a file be durable, by a direct write or by AIO: a kernel's thread syncs it. */
struct asker {
  u32 process;
  char command[16];
};
MAP(MAP_LRU_HASH, struct file_key, struct asker, 4096) askers SECTION(".maps");
#define PF_KTHREAD 0x00200000

INLINE bool in_kernel_thread(void) {
  struct task_struct *task = current_task();
  return task->flags & PF_KTHREAD;
}

INLINE void note_asker(const struct file_key *key) {
  if (in_kernel_thread()) return;
  u32 process = current_process_thread() >> 32;
  struct asker *known = map_lookup(&askers, key);
  if (known && known->process == process) return;
  struct asker asker = {process};
  name_thread(asker.command);
  map_update(&askers, key, &asker, 0);
}

/* The part of AIO's struct iocb (linux/aio_abi.h) that says what is asked, and of which file. */
struct aio_block {
  u64 data;
  u32 key;
  u32 flags;
  u16 operation;
  u16 priority;
  u32 descriptor;
};
enum { AIO_FSYNC = 2, AIO_FDATASYNC = 3, AIO_BLOCKS_MAX = 1024 };

struct submission {
  u64 blocks;
  u64 count;
  /* Of a pointer. */
  u64 pointer_bytes;
};
static long on_aio_block(u32 index, struct submission *submission) {
  u64 at = 0;
  struct aio_block block = {};
  if (index >= submission->count) return 1;
  u64 pointer_bytes = submission->pointer_bytes;
  if (read_user(&at, pointer_bytes == 4 ? 4 : 8, (void *)(submission->blocks + index * pointer_bytes))) return 0;
  if (read_user(&block, sizeof(block), (void *)at)) return 0;
  if (block.operation != AIO_FSYNC && block.operation != AIO_FDATASYNC) return 0;
  struct file *file = file_of(block.descriptor);
  struct place place = {};
  if (file) place = place_of_file(file);
  if (!place.inode) return 0;
  struct file_key key = key_of(place.inode);
  note_asker(&key);
  return 0;
}

/* A kernel's thread does what AIO asks for: the call itself is not the sync. */
INLINE void on_submit(const struct call_arguments *of) {
  struct submission submission = {of->at[2], of->at[1], of->is_compat ? 4 : 8};
  loop(AIO_BLOCKS_MAX, on_aio_block, &submission, 0);
}

/* The code of a call, with CALL_LONG, or 0 where it is none that is looked at. */
INLINE u8 call_of(u64 number, struct pt_regs *registers, bool *is_compat) {
  if (number >= CALL_NUMBERS) return 0;
  u8 own = settings.calls[number], compat = settings.compat_calls[number];
  if (!own && !compat) return 0;
  *is_compat = IS_COMPAT_CALL(registers);
  return *is_compat ? compat : own;
}

INLINE void take_arguments(struct call_arguments *to, struct pt_regs *registers, bool is_compat) {
  to->is_compat = is_compat;
  if (is_compat) {
    to->at[0] = (u32)COMPAT_ARGUMENT_0(registers);
    to->at[1] = (u32)COMPAT_ARGUMENT_1(registers);
    to->at[2] = (u32)COMPAT_ARGUMENT_2(registers);
    to->at[3] = (u32)COMPAT_ARGUMENT_3(registers);
    to->at[4] = (u32)COMPAT_ARGUMENT_4(registers);
    to->at[5] = (u32)COMPAT_ARGUMENT_5(registers);
  } else {
    to->at[0] = ARGUMENT_0(registers);
    to->at[1] = ARGUMENT_1(registers);
    to->at[2] = ARGUMENT_2(registers);
    to->at[3] = ARGUMENT_3(registers);
    to->at[4] = ARGUMENT_4(registers);
    to->at[5] = ARGUMENT_5(registers);
  }
}

PROGRAM(sys_enter) {
  struct pt_regs *registers = (void *)arguments[0];
  bool is_compat = false;
  u8 call = call_of(arguments[1], registers, &is_compat);
  if (!call) return 0;
  bool is_long = call & CALL_LONG;
  call &= ~CALL_LONG;
  struct call_arguments of;
  take_arguments(&of, registers, is_compat);
  switch (call) {
    case CALL_WRITE:
    case CALL_PWRITE64:
    case CALL_WRITEV:
    case CALL_PWRITEV:
    case CALL_PWRITEV2: on_write(call, &of); break;
    case CALL_IO_SUBMIT: on_submit(&of); break;
    case CALL_SYNC: open_call(call, SYNC_BEGIN, NULL, 0, 0, 0); break;
    case CALL_MSYNC: {
      struct mapped mapped = {};
      if (!(of.at[2] & MS_SYNC)) break;
      // Memory of no file is not written anywhere; where the area could not be looked up, the call may be about any file.
      if (!find_vma(current_task(), of.at[0], on_mapping, &mapped, 0) && !mapped.file) break;
      open_call(call, SYNC_BEGIN, mapped.file, 0, 0, 0);
      break;
    }
    case CALL_OPEN:
    case CALL_OPENAT:
    case CALL_OPENAT2:
    case CALL_CREAT: on_open(call, &of); break;
    // By a path: the filesystem says which file it is.
    case CALL_TRUNCATE: open_call(call, 0, NULL, 0, 0, is_long ? joined(&of, 1) : of.at[1]); break;
    case CALL_FTRUNCATE: open_call(call, 0, file_of(of.at[0]), 0, 0, is_long ? joined(&of, 1) : of.at[1]); break;
    default: on_sync(call, &of);
  }
  return 0;
}

INLINE bool is_open(u8 call) {
  return call >= CALL_OPEN && call <= CALL_CREAT;
}

/* True where the call cut a file, or made it longer; its key is known then. */
INLINE bool has_cut(struct open_call *open, s64 result) {
  if (!is_open(open->call)) return result == 0 && open->key.inode;
  struct file *file = result < 0 ? NULL : file_of(result);
  if (!file || READ_NUMBER(file, f_mode) & FMODE_CREATED) return false;
  struct place place = place_of_file(file);
  if (!place.inode) return false;
  open->key = key_of(place.inode);
  say_name((u64)place.inode, place.dentry);
  return true;
}

INLINE void close_call(s64 result) {
  struct open_call *open = call_under_way();
  if (!open) return;
  bool is_truncate = open->call == CALL_FTRUNCATE || open->call == CALL_TRUNCATE || is_open(open->call);
  if (!is_truncate || has_cut(open, result)) {
    struct record *record = begin(is_truncate ? TRUNCATED : SYNC_END);
    if (record) {
      set_file(record, &open->key);
      record->call = open->call;
      record->bytes = open->length;
      record->detail = is_truncate ? 0 : result;
      end(record);
    }
  }
  open->call = CALL_NONE;
}

PROGRAM(sys_exit) {
  struct pt_regs *registers = (void *)arguments[0];
  bool is_compat = false;
  if (!call_of((u32)CALL_NUMBER(registers), registers, &is_compat)) return 0;
  // A call of 32 bits has a result of as many.
  close_call(is_compat ? (s32)arguments[1] : (s64)arguments[1]);
  return 0;
}

/* `detail` of a begin that no end will follow. */
#define NO_END (-1)

/* A sync that comes by no call of its own: io_uring, AIO, a kernel thread (loop devices). */
INLINE void send_file_sync(u8 kind, struct inode *inode, s64 detail) {
  struct file_key key = key_of(inode);
  struct asker *asker = in_kernel_thread() ? map_lookup(&askers, &key) : NULL;
  struct record *record = begin(kind);
  if (!record) return;
  set_file(record, &key);
  record->call = CALL_FILE_SYNC;
  record->detail = detail;
  // The thread stays: begin and end are found together by it.
  if (asker) {
    record->process = asker->process;
    __builtin_memcpy(record->command, asker->command, sizeof(record->command));
  }
  end(record);
}

INLINE void on_file_sync(struct inode *inode, bool has_end) {
  if (!inode || call_under_way()) return;
  say_name((u64)inode, alias_of(inode));
  send_file_sync(SYNC_BEGIN, inode, has_end ? 0 : NO_END);
}

INLINE void on_file_synced(struct inode *inode, int result) {
  if (!call_under_way()) send_file_sync(SYNC_END, inode, result);
}

INLINE struct inode *inode_of_file(u64 *arguments) {
  return READ_NUMBER((struct file *)number_of(arguments), f_inode);
}

PROGRAM(ext4_sync_file_enter) {
  on_file_sync(inode_of_file(arguments), true);
  return 0;
}
PROGRAM(ext4_sync_file_exit) {
  on_file_synced((void *)number_of(arguments), (int)arguments[1]);
  return 0;
}
PROGRAM(f2fs_sync_file_enter) {
  on_file_sync((void *)number_of(arguments), true);
  return 0;
}
PROGRAM(f2fs_sync_file_exit) {
  on_file_synced((void *)number_of(arguments), (int)arguments[3]);
  return 0;
}
PROGRAM(xfs_file_fsync) {
  on_file_sync(xfs_inode_of(arguments), settings.ends_of_xfs);
  return 0;
}
PROGRAM(xfs_dir_fsync) {
  on_file_sync(xfs_inode_of(arguments), settings.ends_of_xfs_directories);
  return 0;
}
PROGRAM(btrfs_sync_file) {
  on_file_sync(inode_of_file(arguments), settings.ends_of_btrfs);
  return 0;
}
PROGRAM_AT_END(xfs_file_fsync) {
  on_file_synced(inode_of_file(arguments), (int)arguments[4]);
  return 0;
}
PROGRAM_AT_END(xfs_dir_fsync) {
  on_file_synced(inode_of_file(arguments), (int)arguments[4]);
  return 0;
}
PROGRAM_AT_END(btrfs_sync_file) {
  on_file_synced(inode_of_file(arguments), (int)arguments[4]);
  return 0;
}

/* The file that truncate(2) names by a path. Filesystems cut files for other reasons, too: those are no calls. */
INLINE void on_cut(struct inode *inode) {
  struct open_call *open = call_under_way();
  if (!inode || !open || open->call != CALL_TRUNCATE || open->key.inode) return;
  open->key = key_of(inode);
  say_name((u64)inode, alias_of(inode));
}

PROGRAM(ext4_truncate_enter) {
  on_cut((void *)number_of(arguments));
  return 0;
}
PROGRAM(f2fs_truncate) {
  on_cut((void *)number_of(arguments));
  return 0;
}
PROGRAM(xfs_itruncate_extents_start) {
  on_cut(xfs_inode_of(arguments));
  return 0;
}
PROGRAM(btrfs_truncate_show_fi_regular) {
  on_cut(btrfs_inode_of(arguments));
  return 0;
}
PROGRAM(btrfs_truncate_show_fi_inline) {
  on_cut(btrfs_inode_of(arguments));
  return 0;
}
