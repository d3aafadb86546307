/* The kernel's half of `joj record`: calls of some processes on files, with their arguments, results and paths. Never contents: of
 * buffers only the integers of SQLite's headers that docs/trace_format.md names.
 *
 * What is done with each call says a table of user space (crates/joj/src/machine/capture/calls/bpf/table.rs). Everything behind pointers is read when
 * the call returns: the kernel has touched those pages then, so they are there.
 *
 *   helpers.h  eBPF itself      kernel.h  the kernel's structs
 *   begun.h    the call that each thread is in, and how long it waits for others
 *   threads.h  threads begin, end and wake each other */
#include "kernel.h"

SECTION("license") char licence[] = "Dual MIT/GPL";

/* Bits of the table, below them the call's code. */
#define CODE(what) ((u8)(what))
#define NEEDS_FILE (1 << 8)
#define HAS_DESCRIPTOR (1 << 9)
#define ONLY_COUNTED (1 << 10)
#define OPENS (1 << 11)
#define READS (1 << 12)
#define WRITES (1 << 13)
#define PLACED (1 << 14)
#define FIRST_PATH(what) ((what) >> 16 & 7)
#define SECOND_PATH(what) ((what) >> 19 & 7)
#define MEMORY(what) ((what) >> 22 & 7)
#define MEMORY_ARGUMENT(what) ((what) >> 25 & 7)
enum memory { NO_MEMORY, VECTOR, OPEN_HOW, STATUS, STATUS_X, LOCK_PLACE, ADDRESS };
enum special { IOCTL = 38, MMAP = 53, FOREIGN = 67, FRAMES_UNSEEN = 126 };

struct recording_settings {
  /* Whose child is recorded from the program on that it runs; 0: nobody's. */
  u32 parent;
  /* Where st_mode, st_size, stx_mode and stx_size are. */
  u32 status_places[4];
  /* joj is woken when so much waits. */
  u32 wake_bytes;
  u32 calls[CALL_NUMBERS];
};
_Static_assert(sizeof(struct recording_settings) == 2072, "calls/bpf/table.rs writes 2072 bytes");
SECTION(".rodata.recording") const volatile struct recording_settings table = {};

enum event { CALL = 1, FORKED = 2, EXECUTED = 3, ENDED = 4, FRAME = 5, WOKEN = 6 };
enum descriptor { UNKNOWN, IS_FILE, IS_DEVICE, IS_OTHER };
#define PATH_BYTES 4096
struct event_head {
  u64 begin_ns;
  u64 end_ns;
  u64 arguments[6];
  s64 result;
  /* Length of buffers; start and length of a lock; size of a file, and of openat2 flags and resolve, 32 bits each. */
  u64 values[2];
  u32 thread;
  u32 process;
  /* st_mode; of a lock type and whence, 16 bits each. */
  u32 mode;
  u16 path_bytes[2];
  u8 event;
  u8 call;
  u8 descriptor;
  /* 1: `values` and `mode` mean something; 2: the file that was opened is new; 4: the last two arguments say which one it is. */
  u8 marks;
  /* 1 and the integers of page 1: bytes 16 to 20, 28 to 31, 36 to 39. */
  u8 first_page[14];
  u8 unused[2];
};
_Static_assert(sizeof(struct event_head) == 128, "calls/bpf/record.rs reads 128 bytes");
/* Paths are as long as they are, and one behind the other. */
struct event_text {
  struct event_head head;
  char text[2 * PATH_BYTES + 8];
};

/* User space says how large. */
struct {
  int (*type)[MAP_RING_BUFFER];
  int (*max_entries)[1 << 20];
} calls SECTION(".maps");
MAP(MAP_PER_CPU_ARRAY, u32, u64, 1) lost SECTION(".maps");
MAP(MAP_PER_CPU_ARRAY, u32, struct event_text, 1) rooms SECTION(".maps");
/* How many calls were only counted: by code, kind of descriptor, and for mmap whether it writes. */
MAP(MAP_PER_CPU_ARRAY, u32, u64, 1024) counts SECTION(".maps");
MAP(MAP_HASH, u32, u8, 65536) processes SECTION(".maps");
/* By process the thread that ends it, or that sent it its newest signal. */
MAP(MAP_LRU_HASH, u32, u32, 65536) enders SECTION(".maps");
/* Bytes of a page, by file, of SQLite's logs; 0: it is none. */
struct log_key {
  u64 inode;
  u64 device;
};
MAP(MAP_LRU_HASH, struct log_key, u32, 4096) logs SECTION(".maps");

INLINE void count(void *map, u32 key) {
  u64 *number = map_lookup(map, &key);
  if (number) *number += 1;
}

INLINE void count_call(u32 code, u32 descriptor, bool writes) {
  count(&counts, (code & 127) * 8 + (descriptor & 3) * 2 + writes);
}

INLINE bool is_followed(u32 process) {
  return map_lookup(&processes, &process) != NULL;
}

INLINE void ends_process(u32 process, u32 thread) {
  map_update(&enders, &process, &thread, 0);
}

#define NO_WAKE_UP 1
#define WAKE_UP 2
INLINE void send(void *event, u64 bytes) {
  u64 wake = ring_query(&calls, 0) >= table.wake_bytes ? WAKE_UP : NO_WAKE_UP;
  if (ring_output(&calls, event, bytes, wake)) count(&lost, 0);
}

#include "begun.h"

INLINE struct file *file_behind(u64 descriptor) {
  struct task_struct *task = current_task();
  struct fdtable *open = task->files->fdt;
  if ((u32)descriptor >= open->max_fds) return NULL;
  struct file **files = open->fd;
  struct file *file = NULL;
  read_kernel(&file, sizeof(file), &files[(u32)descriptor]);
  return file;
}

INLINE struct inode *inode_behind(struct file *file) {
  return file ? READ_NUMBER(file, f_inode) : NULL;
}

INLINE u8 kind_of(struct inode *inode) {
  if (!inode) return UNKNOWN;
  switch (READ_NUMBER(inode, i_mode) & 0170000) {
    case 0100000:
    case 0040000: return IS_FILE;
    case 0020000:
    case 0060000: return IS_DEVICE;
  }
  return IS_OTHER;
}

/* An argument by its number: the verifier knows no array of registers. */
INLINE u64 argument_of(struct pt_regs *registers, u32 index) {
  switch (index) {
    case 0: return ARGUMENT_0_AT_END(registers);
    case 1: return ARGUMENT_1(registers);
    case 2: return ARGUMENT_2(registers);
    case 3: return ARGUMENT_3(registers);
    case 4: return ARGUMENT_4(registers);
  }
  return ARGUMENT_5(registers);
}

INLINE bool is_about_descriptor(u32 request) {
  return request == 0x5450 || request == 0x5451;
}

/* An ioctl by which a filesystem may change a file: the same as `commands::changes_a_file` says. */
INLINE bool changes_a_file(u32 request) {
  switch (request >> 8 & 255) {
    case 0x66:
    case 0x58:
    case 0x94:
    case 0xf5:
    case 0x6e:
    case 0x72: break;
    default: return false;
  }
  switch (request) {
    case 0x80086601:
    case 0x80046601:
    case 0xc020660b:
    case 0x801c581f:
    case 0xc0c0583b:
    case 0x81009431:
    case 0x8004f50c: return false;
  }
  return true;
}

INLINE bool is_looked_at(u32 what, struct pt_regs *registers) {
  u64 command = ARGUMENT_1(registers);
  if (MEMORY(what) == LOCK_PLACE)
    return command == 0 || command == 2 || command == 4 || command == 6 || command == 7 || command == 37 || command == 38 || command == 1030;
  if (CODE(what) == IOCTL) return is_about_descriptor(command) || changes_a_file(command);
  // Memory of no file (MAP_ANONYMOUS).
  if (CODE(what) == MMAP) return !(ARGUMENT_3(registers) & 0x20);
  return true;
}

/* A stat without a path (AT_EMPTY_PATH) is about its descriptor. */
INLINE bool has_descriptor(u32 what, struct pt_regs *registers) {
  if (what & (NEEDS_FILE | HAS_DESCRIPTOR)) return true;
  if (FIRST_PATH(what) != 2 || (MEMORY(what) != STATUS && MEMORY(what) != STATUS_X)) return false;
  return (MEMORY(what) == STATUS ? ARGUMENT_3(registers) : ARGUMENT_2(registers)) & 0x1000;
}

PROGRAM(sys_enter) {
  u64 both = current_process_thread();
  if (!is_followed(both >> 32)) return 0;
  struct pt_regs *registers = (void *)arguments[0];
  if (IS_COMPAT_CALL(registers)) {
    count_call(FOREIGN, 0, false);
    return 0;
  }
  u64 number = arguments[1];
  if (number >= CALL_NUMBERS) {
    // With pointers of 32 bits (x32).
    if (number & 1 << 30) count_call(FOREIGN, 0, false);
    return 0;
  }
  struct begun *call = begun_of((u32)both);
  u64 time_ns = now_ns();
  if (call) begins_call(call, (u32)both, number, registers, time_ns);
  if (number == CALL_EXIT_GROUP) ends_process(both >> 32, (u32)both);
  u32 what = table.calls[number];
  if (!what || !is_looked_at(what, registers)) return 0;
  u8 kind = UNKNOWN;
  if (has_descriptor(what, registers)) kind = kind_of(inode_behind(file_behind(ARGUMENT_0(registers))));
  bool is_no_file = kind == IS_DEVICE || kind == IS_OTHER;
  if (what & ONLY_COUNTED || (what & NEEDS_FILE && is_no_file)) {
    bool writes = CODE(what) == MMAP && ARGUMENT_2(registers) & 2 && (ARGUMENT_3(registers) & 3) != 2;
    count_call(CODE(what), kind, writes);
    return 0;
  }
  u64 command = ARGUMENT_1(registers);
  if (MEMORY(what) == LOCK_PLACE && is_no_file && command != 0 && command != 2 && command != 1030) return 0;
  if (CODE(what) == IOCTL && is_no_file && !is_about_descriptor(command)) return 0;
  if (!call) {
    count(&lost, 0);
    return 0;
  }
  shows(call, (u32)both);
  call->descriptor = kind;
  call->begin_ns = time_ns;
  call->what = what;
  return 0;
}

struct lengths {
  u64 buffers;
  u64 count;
  u64 sum;
};
static long on_buffer(u32 index, struct lengths *lengths) {
  u64 length = 0;
  if (index >= lengths->count) return 1;
  if (read_user(&length, sizeof(length), (void *)(lengths->buffers + index * 16ULL + 8))) return 1;
  lengths->sum += length;
  return 0;
}

INLINE void look_behind(struct event_head *head, u32 what) {
  u64 address = head->arguments[0];
  switch (MEMORY_ARGUMENT(what)) {
    case 1: address = head->arguments[1]; break;
    case 2: address = head->arguments[2]; break;
    case 4: address = head->arguments[4]; break;
  }
  switch (MEMORY(what)) {
    case VECTOR: {
      struct lengths lengths = {address, head->arguments[2], 0};
      loop(1024, on_buffer, &lengths, 0);
      head->values[0] = lengths.sum;
      head->marks |= 1;
      break;
    }
    case OPEN_HOW: {
      u64 how[3] = {};
      if (!read_user(how, sizeof(how), (void *)address)) head->values[1] = (u32)how[0] | how[2] << 32;
      break;
    }
    case STATUS:
      if (head->result) break;
      if (!read_user(&head->mode, 4, (void *)(address + table.status_places[0])) &&
          !read_user(&head->values[0], 8, (void *)(address + table.status_places[1])))
        head->marks |= 1;
      break;
    case STATUS_X:
      if (head->result) break;
      if (!read_user(&head->mode, 2, (void *)(address + table.status_places[2])) &&
          !read_user(&head->values[0], 8, (void *)(address + table.status_places[3])))
        head->marks |= 1;
      break;
    case ADDRESS:
      if (!read_user(&head->mode, 3, (void *)address)) head->marks |= 1;
      break;
    case LOCK_PLACE:
      if (head->arguments[1] <= 4 || head->arguments[1] == 1030) break;
      if (!read_user(&head->mode, 4, (void *)address) && !read_user(&head->values, 16, (void *)(address + 8))) head->marks |= 1;
      break;
  }
}

/* The file was not there before it was opened. */
#define FMODE_CREATED 0x100000

INLINE void look_at_opened(struct event_head *head) {
  struct file *file = file_behind(head->result);
  struct inode *inode = inode_behind(file);
  if (!inode) return;
  head->mode = READ_NUMBER(inode, i_mode);
  head->values[0] = READ_NUMBER(inode, i_size);
  head->marks |= 1;
  if (READ_NUMBER(file, f_mode) & FMODE_CREATED) head->marks |= 2;
  /* Which file it is, where it has several names. No open has more than four arguments. */
  struct super_block *block = READ_NUMBER(inode, i_sb);
  if ((head->mode & 0170000) != 0100000 || READ_NUMBER(inode, i_nlink) < 2 || !block) return;
  head->arguments[4] = READ_NUMBER(inode, i_ino);
  head->arguments[5] = (u64)READ_NUMBER(block, s_dev) << 32 | READ_NUMBER(inode, i_generation);
  head->marks |= 4;
}

/* Where the bytes are that a call moved: in one buffer, or in the first of several. */
struct buffer {
  u64 address;
  u64 length;
};

INLINE struct buffer buffer_of(struct event_head *head, u32 what) {
  struct buffer buffer = {head->arguments[1], head->result};
  if (MEMORY(what) == VECTOR) {
    u64 address = buffer.address;
    if (read_user(&buffer, sizeof(buffer), (void *)address)) buffer.length = 0;
    if (buffer.length > head->result) buffer.length = head->result;
  }
  return buffer;
}

INLINE u32 big_endian(const u8 *bytes) {
  return (u32)bytes[0] << 24 | (u32)bytes[1] << 16 | (u32)bytes[2] << 8 | bytes[3];
}

INLINE void look_at_first_page(struct event_head *head, struct buffer buffer) {
  u8 page[40];
  if (buffer.length < 100 || read_user(page, sizeof(page), (void *)buffer.address)) return;
  // "SQLite format 3" and a zero.
  if (*(u64 *)page != 0x66206574694c5153 || *(u64 *)(page + 8) != 0x00332074616d726f) return;
  head->first_page[0] = 1;
  __builtin_memcpy(head->first_page + 1, page + 16, 5);
  __builtin_memcpy(head->first_page + 6, page + 28, 4);
  __builtin_memcpy(head->first_page + 10, page + 36, 4);
}

/* `NAME-wal`. */
INLINE bool is_log(struct file *file) {
  struct dentry *dentry = NULL;
  read_kernel(&dentry, sizeof(dentry), &file->f_path.dentry);
  if (!dentry) return false;
  struct qstr name = {};
  read_kernel(&name.hash_len, sizeof(name.hash_len), &dentry->d_name.hash_len);
  read_kernel(&name.name, sizeof(name.name), &dentry->d_name.name);
  u32 length = name.hash_len >> 32;
  u32 end = 0;
  if (length < 5 || read_kernel(&end, sizeof(end), name.name + length - 4)) return false;
  return end == 0x6c61772d;
}

struct frames {
  struct buffer buffer;
  u64 offset;
  u64 first;
  u64 step;
  u32 thread;
  bool is_missed;
};
struct frame_event {
  struct event_head head;
};
static long on_frame(u32 index, struct frames *frames) {
  u64 at = frames->first + index * frames->step;
  u8 numbers[8];
  if (at + 8 > frames->offset + frames->buffer.length) return 1;
  if (read_user(numbers, sizeof(numbers), (void *)(frames->buffer.address + (at - frames->offset)))) {
    frames->is_missed = true;
    return 0;
  }
  struct event_head head = {};
  head.event = FRAME;
  head.thread = frames->thread;
  head.values[0] = at;
  head.mode = big_endian(numbers);
  head.result = big_endian(numbers + 4);
  // Zeros are room that is prepared for later frames.
  if (head.mode) send(&head, sizeof(head));
  return 0;
}

INLINE void look_at_log(struct event_head *head, struct inode *inode, struct buffer buffer, u64 offset, bool is_write) {
  struct log_key key = {READ_NUMBER(inode, i_ino), 0};
  struct super_block *block = READ_NUMBER(inode, i_sb);
  key.device = block ? READ_NUMBER(block, s_dev) : 0;
  if (!offset && buffer.length >= 32) {
    u8 log[12];
    u32 page = 0;
    if (!read_user(log, sizeof(log), (void *)buffer.address) && (big_endian(log) & ~1u) == 0x377f0682 && big_endian(log + 4) == 3007000)
      page = big_endian(log + 8);
    map_update(&logs, &key, &page, 0);
  }
  if (!is_write) return;
  u32 *page = map_lookup(&logs, &key);
  // Of a log that nobody looked at yet: SQLite writes a frame's head apart from its page.
  bool is_one = !page && buffer.length == 24 && offset >= 32;
  if (!is_one && (!page || !*page)) {
    // Another layout, or nobody knows; but zeros are room for frames.
    u64 begin = 0;
    if (offset >= 32 && !read_user(&begin, sizeof(begin), (void *)buffer.address) && begin) count_call(FRAMES_UNSEEN, 0, false);
    return;
  }
  struct frames frames = {buffer, offset, offset, page ? 24 + *page : 1 << 20, head->thread, false};
  u64 begin = offset < 32 ? 32 : offset;
  if (page && frames.step > 24) frames.first = 32 + (begin - 32 + frames.step - 1) / frames.step * frames.step;
  loop(1 << 16, on_frame, &frames, 0);
  if (frames.is_missed || buffer.length < head->result) count_call(FRAMES_UNSEEN, 0, false);
}

INLINE void look_at_transfer(struct event_head *head, u32 what) {
  struct file *file = file_behind(head->arguments[0]);
  struct inode *inode = inode_behind(file);
  if (!inode) return;
  u64 offset = head->arguments[3];
  if (!(what & PLACED) || offset == ~0ULL) offset = READ_NUMBER(file, f_pos) - head->result;
  bool is_of_log = is_log(file);
  if (offset && !is_of_log) return;
  struct buffer buffer = buffer_of(head, what);
  if (!offset) look_at_first_page(head, buffer);
  if (is_of_log) look_at_log(head, inode, buffer, offset, what & WRITES);
}

/* Reads a path behind the one before; how many bytes it has, without the zero, and 65535 where it cannot be read. */
INLINE u32 add_path(struct event_text *room, u32 at, u64 address) {
  if (at > PATH_BYTES) return 65535;
  long length = read_user_text(room->text + at, PATH_BYTES, (void *)address);
  return length > 0 ? length - 1 : 65535;
}

PROGRAM(sys_exit) {
  u32 first = 0;
  u32 thread = (u32)current_process_thread();
  struct begun *call = map_lookup(&begun, &thread);
  if (!call) return 0;
  if (!call->what) {
    ends_call(call, thread, arguments[1]);
    return 0;
  }
  u32 what = call->what;
  call->what = 0;
  struct event_text *room = map_lookup(&rooms, &first);
  if (!room) return 0;
  struct pt_regs *registers = (void *)arguments[0];
  struct event_head *head = &room->head;
  __builtin_memset(head, 0, sizeof(*head));
  head->begin_ns = call->begin_ns;
  head->result = (s64)arguments[1];
  head->thread = thread;
  head->process = current_process_thread() >> 32;
  head->event = CALL;
  head->call = CODE(what);
  head->descriptor = call->descriptor;
  head->arguments[0] = ARGUMENT_0_AT_END(registers);
  head->arguments[1] = ARGUMENT_1(registers);
  head->arguments[2] = ARGUMENT_2(registers);
  head->arguments[3] = ARGUMENT_3(registers);
  head->arguments[4] = ARGUMENT_4(registers);
  head->arguments[5] = ARGUMENT_5(registers);
  head->end_ns = now_ns();
  call->known_ns = head->end_ns;
  call->is_woken = false;
  gets_row(call, thread);
  if (MEMORY(what)) look_behind(head, what);
  if (what & OPENS && head->result >= 0) look_at_opened(head);
  if (what & (READS | WRITES) && head->result >= 8 && call->descriptor == IS_FILE) look_at_transfer(head, what);
  u32 length = 0;
  if (FIRST_PATH(what)) {
    u32 path = add_path(room, 0, argument_of(registers, FIRST_PATH(what) - 1));
    head->path_bytes[0] = path;
    if (path < PATH_BYTES) length = path;
    if (SECOND_PATH(what)) {
      path = add_path(room, length, argument_of(registers, SECOND_PATH(what) - 1));
      head->path_bytes[1] = path;
      if (path < PATH_BYTES) length += path;
    }
  }
  if (length > 2 * PATH_BYTES) return 0;
  send(room, sizeof(*head) + length);
  return 0;
}

#include "threads.h"
