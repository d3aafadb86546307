/* The kernel's structs, as far as we look into them, with field names of Linux 6.1 to 6.18. A name after three underscores is
 * the same struct as it was, or became, in other versions. */
#pragma once
#include "settings.h"

struct list_head {
  struct list_head *next;
  struct list_head *prev;
} RELOCATED;
struct hlist_node;
struct hlist_head {
  struct hlist_node *first;
} RELOCATED;
struct hlist_node {
  struct hlist_node *next;
} RELOCATED;

struct file_system_type;
struct dentry;
struct super_block {
  struct dentry *s_root;
  u32 s_dev;
  unsigned long s_magic;
} RELOCATED;

struct inode;
struct address_space {
  struct inode *host;
} RELOCATED;

struct inode {
  u16 i_mode;
  struct super_block *i_sb;
  unsigned long i_ino;
  unsigned int i_nlink;
  u32 i_rdev;
  s64 i_size;
  u32 i_generation;
  u8 i_blkbits;
  struct hlist_head i_dentry;
  struct address_space i_data;
} RELOCATED;

struct qstr {
  u64 hash_len;
  const unsigned char *name;
} RELOCATED;

struct dentry {
  struct dentry *d_parent;
  struct qstr d_name;
  struct inode *d_inode;
  union {
    struct hlist_node d_alias;
  } d_u;
} RELOCATED;

/* A file of overlayfs: what is written to it goes to the upper file, if it has one. */
struct ovl_inode {
  struct inode vfs_inode;
  struct dentry *__upperdentry;
} RELOCATED;

struct path {
  struct dentry *dentry;
} RELOCATED;

struct file {
  struct path f_path;
  struct inode *f_inode;
  unsigned int f_flags;
  unsigned int f_mode;
  s64 f_pos;
} RELOCATED;

struct fdtable {
  unsigned int max_fds;
  struct file **fd;
} RELOCATED;
struct files_struct {
  struct fdtable *fdt;
} RELOCATED;
struct counter {
  int counter;
};
struct signal_struct {
  struct counter live;
} RELOCATED;
struct thread_info {
  u32 status;
} RELOCATED;
struct fs_struct;
struct task_struct {
  struct thread_info thread_info;
  unsigned int flags;
  s32 pid;
  s32 tgid;
  s32 exit_code;
  char comm[16];
  struct task_struct *group_leader;
  struct task_struct *real_parent;
  struct files_struct *files;
  struct fs_struct *fs;
  struct signal_struct *signal;
} RELOCATED;
struct vm_area_struct {
  struct file *vm_file;
} RELOCATED;

enum pageflags { PG_head, PG_writeback, PG_uptodate = 6, PG_private = 12 };
struct page {
  unsigned long compound_head;
} RELOCATED;
struct folio {
  struct address_space *mapping;
  unsigned long index;
  void *private;
  unsigned int _nr_pages;
} RELOCATED;
/* Before 6.15. */
struct folio___old {
  unsigned int _folio_nr_pages;
} RELOCATED;

struct bio_vec {
  struct page *bv_page;
  unsigned int bv_len;
  unsigned int bv_offset;
};
struct bvec_iter {
  u64 bi_sector;
  unsigned int bi_size;
  unsigned int bi_idx;
  unsigned int bi_bvec_done;
} RELOCATED;

struct gendisk;
struct block_device {
  u64 bd_start_sect;
  struct gendisk *bd_disk;
  u32 bd_dev;
} RELOCATED;
struct gendisk {
  struct block_device *part0;
} RELOCATED;
struct bio {
  struct block_device *bi_bdev;
  u32 bi_opf;
  struct bvec_iter bi_iter;
  void *bi_end_io;
  void *bi_private;
  struct bio_vec *bi_io_vec;
} RELOCATED;
struct request_queue {
  struct gendisk *disk;
} RELOCATED;
/* One of the driver's queues. */
struct blk_mq_hw_ctx {
  u32 queue_num;
} RELOCATED;
struct request {
  struct request_queue *q;
  struct blk_mq_hw_ctx *mq_hctx;
  int tag;
  u32 cmd_flags;
  u32 __data_len;
  u64 __sector;
} RELOCATED;
enum req_flag_bits { __REQ_SYNC = 11, __REQ_META = 12, __REQ_FUA = 17, __REQ_PREFLUSH = 18, __REQ_RAHEAD = 19 };

struct buffer_head {
  struct buffer_head *b_this_page;
  struct page *b_page;
  char *b_data;
} RELOCATED;

struct kiocb {
  struct file *ki_filp;
  s64 ki_pos;
  int ki_flags;
} RELOCATED;
struct iomap_dio {
  struct kiocb *iocb;
  s64 size;
} RELOCATED;

struct xfs_buf {
  void *b_addr;
} RELOCATED;
struct xfs_inode {
  struct inode i_vnode;
} RELOCATED;
struct xfs_mount {
  struct super_block *m_super;
} RELOCATED;
/* A part of the log on its way to the disk, and the checkpoints that end in it. */
struct xlog_in_core {
  struct list_head ic_callbacks;
  struct bio ic_bio;
} RELOCATED;
struct xfs_cil_ctx {
  s64 sequence;
  struct list_head iclog_entry;
} RELOCATED;
/* The VFS's inode within an argument that is a struct xfs_inode; NULL where this kernel has no XFS. */
INLINE struct inode *xfs_inode_of(u64 *arguments) {
  if (!TYPE_EXISTS(struct xfs_inode)) return NULL;
  return (void *)(number_of(arguments) + FIELD_OFFSET(struct xfs_inode, i_vnode));
}
struct extent_buffer {
  u64 start;
  void *fs_info;
  void *addr;
  /* 0 or 1 in a log tree, -1 in others. */
  signed char log_index;
} RELOCATED;
struct btrfs_delayed_ref_node {
  u64 bytenr;
  u64 ref_root;
} RELOCATED;
/* Before 6.9. */
struct btrfs_delayed_tree_ref {
  u64 root;
} RELOCATED;
struct btrfs_key {
  u64 objectid;
} RELOCATED;
struct btrfs_root {
  struct btrfs_key root_key;
} RELOCATED;
struct btrfs_inode {
  struct btrfs_root *root;
  struct inode vfs_inode;
} RELOCATED;
/* As xfs_inode_of. */
INLINE struct inode *btrfs_inode_of(u64 *arguments) {
  if (!TYPE_EXISTS(struct btrfs_inode)) return NULL;
  return (void *)(number_of(arguments) + FIELD_OFFSET(struct btrfs_inode, vfs_inode));
}
struct btrfs_bio {
  struct btrfs_inode *inode;
  u64 file_offset;
  struct bio bio;
} RELOCATED;
struct btrfs_io_context {
  struct bio *orig_bio;
} RELOCATED;
struct btrfs_io_stripe {
  struct btrfs_io_context *bioc;
} RELOCATED;

struct file_lock {
  s64 fl_start;
  s64 fl_end;
  u8 fl_type;
} RELOCATED;
struct file_lock_core {
  u8 flc_type;
} RELOCATED;
/* Since 6.9. */
struct file_lock___new {
  struct file_lock_core c;
} RELOCATED;

/* Threads that sleep until something happens. */
struct wait_queue_head {
  struct list_head head;
} RELOCATED;
struct wait_queue_entry {
  /* The thread, where it waits by wait_event. */
  void *private;
  struct list_head entry;
} RELOCATED;

struct transaction_s {
  u32 t_tid;
  /* When it began, on the clock of now_ns. */
  s64 t_start_time;
} RELOCATED;
struct journal_s {
  struct block_device *j_dev;
  struct block_device *j_fs_dev;
  struct transaction_s *j_running_transaction;
  struct wait_queue_head j_wait_done_commit;
} RELOCATED;
struct ext4_inode_info {
  struct inode vfs_inode;
  /* The transactions that an fsync, and an fdatasync, of the file need. */
  u32 i_sync_tid;
  u32 i_datasync_tid;
} RELOCATED;

#define CALL_EPOLL_PWAIT2 441
#define CALL_PIDFD_SEND_SIGNAL 424
#define EAGAIN 11
#define ETIMEDOUT 110

#if defined(__TARGET_x86_64)
struct pt_regs {
  unsigned long di, si, bp, bx, cx, dx, r10, r8, r9, orig_ax;
} RELOCATED;
#define ARGUMENT_0(registers) ((registers)->di)
#define ARGUMENT_1(registers) ((registers)->si)
#define ARGUMENT_2(registers) ((registers)->dx)
#define ARGUMENT_3(registers) ((registers)->r10)
#define ARGUMENT_4(registers) ((registers)->r8)
#define ARGUMENT_5(registers) ((registers)->r9)
/* The result does not stand in its place. */
#define ARGUMENT_0_AT_END(registers) ARGUMENT_0(registers)
#define CALL_NUMBER(registers) ((registers)->orig_ax)
#define NUMBER_OF_READ 0
#define NUMBER_OF_WRITE 1
#define CALL_SENDTO 44
#define CALL_RECVFROM 45
#define CALL_SENDMSG 46
#define CALL_RECVMSG 47
#define CALL_WAIT4 61
#define CALL_EXEC 59
#define CALL_EXECAT 322
#define CALL_EXIT 60
#define CALL_EXIT_GROUP 231
#define CALL_RESTART 219
#define CALL_NANOSLEEP 35
#define CALL_FUTEX 202
#define CALL_SIGTIMEDWAIT 128
#define CALL_MQ_TIMEDSEND 242
#define CALL_MQ_TIMEDRECEIVE 243
#define CALL_SEMTIMEDOP 220
#define CALL_KILL 62
#define CALL_TKILL 200
#define CALL_TGKILL 234
#define CALL_QUEUE_SIGNAL 129
#define CALL_PAUSE 34
#define CALL_EPOLL_PWAIT 281
#define CALL_CLOCK_NANOSLEEP 230
#define CALL_PSELECT 270
#define CALL_PPOLL 271
/* As those, with times of their own; there is one architecture that has them. */
#define CALL_SELECT 23
#define CALL_POLL 7
#define CALL_EPOLL_WAIT 232
/* A call of 32 bits, which has other numbers and registers. 64-bit code can make one, too: the kernel notes it for as long as the call
 * lasts (TS_COMPAT). */
#define IS_COMPAT_CALL(registers) ((((struct task_struct *)current_task())->thread_info.status & 2) != 0)
#define COMPAT_ARGUMENT_0(registers) ((registers)->bx)
#define COMPAT_ARGUMENT_1(registers) ((registers)->cx)
#define COMPAT_ARGUMENT_2(registers) ((registers)->dx)
#define COMPAT_ARGUMENT_3(registers) ((registers)->si)
#define COMPAT_ARGUMENT_4(registers) ((registers)->di)
#define COMPAT_ARGUMENT_5(registers) ((registers)->bp)
#elif defined(__TARGET_aarch64)
struct pt_regs {
  u64 regs[31];
  u64 pstate;
  u64 orig_x0;
  s32 syscallno;
} RELOCATED;
#define ARGUMENT_0(registers) ((registers)->regs[0])
#define ARGUMENT_1(registers) ((registers)->regs[1])
#define ARGUMENT_2(registers) ((registers)->regs[2])
#define ARGUMENT_3(registers) ((registers)->regs[3])
#define ARGUMENT_4(registers) ((registers)->regs[4])
#define ARGUMENT_5(registers) ((registers)->regs[5])
#define ARGUMENT_0_AT_END(registers) ((registers)->orig_x0)
#define CALL_NUMBER(registers) ((registers)->syscallno)
#define NUMBER_OF_READ 63
#define NUMBER_OF_WRITE 64
#define CALL_SENDTO 206
#define CALL_RECVFROM 207
#define CALL_SENDMSG 211
#define CALL_RECVMSG 212
#define CALL_WAIT4 260
#define CALL_EXEC 221
#define CALL_EXECAT 281
#define CALL_EXIT 93
#define CALL_EXIT_GROUP 94
#define CALL_RESTART 128
#define CALL_NANOSLEEP 101
#define CALL_FUTEX 98
#define CALL_SIGTIMEDWAIT 137
#define CALL_MQ_TIMEDSEND 182
#define CALL_MQ_TIMEDRECEIVE 183
#define CALL_SEMTIMEDOP 192
#define CALL_KILL 129
#define CALL_TKILL 130
#define CALL_TGKILL 131
#define CALL_QUEUE_SIGNAL 138
/* There is none: the C library asks `ppoll`. */
#define CALL_PAUSE CALL_NUMBERS
#define CALL_EPOLL_PWAIT 22
#define CALL_CLOCK_NANOSLEEP 115
#define CALL_PSELECT 72
#define CALL_PPOLL 73
/* PSR_MODE32_BIT: a program of 32 bits has other call numbers. */
#define IS_COMPAT_CALL(registers) (((registers)->pstate & 0x10) != 0)
#define COMPAT_ARGUMENT_0(registers) ARGUMENT_0(registers)
#define COMPAT_ARGUMENT_1(registers) ARGUMENT_1(registers)
#define COMPAT_ARGUMENT_2(registers) ARGUMENT_2(registers)
#define COMPAT_ARGUMENT_3(registers) ARGUMENT_3(registers)
#define COMPAT_ARGUMENT_4(registers) ARGUMENT_4(registers)
#define COMPAT_ARGUMENT_5(registers) ARGUMENT_5(registers)
#else
#error "build.rs names the architectures whose system calls are known"
#endif
