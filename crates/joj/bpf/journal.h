/* What filesystems do beside commits: place blocks, forget files. And the locks by which SQLite's transactions are seen. */
#pragma once
#include "commits.h"

/* Btrfs has a new block for a tree, or an old one less: log trees do without this. */
PROGRAM(add_delayed_tree_ref) {
  if (!TYPE_EXISTS(struct btrfs_delayed_ref_node)) return 0;
  struct btrfs_delayed_ref_node *node = (void *)number_of(&arguments[1]);
  struct tree_block key = {number_of(arguments), READ_NUMBER(node, bytenr)};
  u64 tree = 0;
  if (FIELD_EXISTS(struct btrfs_delayed_ref_node, ref_root)) {
    tree = READ_NUMBER(node, ref_root);
  } else if (TYPE_EXISTS(struct btrfs_delayed_tree_ref)) {
    tree = READ_NUMBER((struct btrfs_delayed_tree_ref *)number_of(&arguments[2]), root);
  }
  if (tree) map_update(&tree_of_block, &key, &tree, 0);
  return 0;
}

/* Deleting matters for files that were written, synced or locked under our eyes. */
INLINE bool is_known(struct inode *inode) {
  struct file_key key = key_of(inode);
  return map_lookup(&names_said, &key) != NULL;
}

/* The last name is gone, or one of them: the dentry still leads to the inode here, and no longer when the call returns. */
PROGRAM(ext4_unlink_exit) {
  struct dentry *dentry = (void *)number_of(arguments);
  struct inode *inode = READ_NUMBER(dentry, d_inode);
  if ((int)arguments[1] != 0 || !inode || !is_known(inode)) return 0;
  say_name((u64)inode, (u64)dentry);
  return 0;
}
PROGRAM(f2fs_unlink_exit) {
  struct inode *inode = (void *)number_of(arguments);
  if ((int)arguments[1] == 0 && inode && is_known(inode)) say_name((u64)inode, alias_of(inode));
  return 0;
}
PROGRAM(xfs_iunlink) {
  struct inode *inode = xfs_inode_of(arguments);
  if (inode && is_known(inode)) say_name((u64)inode, alias_of(inode));
  return 0;
}

INLINE void on_evict(struct inode *inode) {
  if (READ(inode, i_nlink) || !is_known(inode)) return;
  struct file_key key = key_of(inode);
  struct record *record = begin(FREED);
  map_delete(&names_said, &key);
  if (!record) return;
  set_file(record, &key);
  end(record);
}
PROGRAM(ext4_evict_inode) {
  on_evict((void *)number_of(arguments));
  return 0;
}
PROGRAM(f2fs_evict_inode) {
  on_evict((void *)number_of(arguments));
  return 0;
}
PROGRAM(btrfs_inode_evict) {
  on_evict((void *)number_of(arguments));
  return 0;
}

/* Bytes by which SQLite's transactions are seen: 120 and 121 of a -shm file, RESERVED (1 GiB + 1) of a database and what lies beside
 * it (SQLite's file format and wal.c; joj-analysis/src/trace/works.rs). Most of its locks, those of readers, tell nothing. */
#define WAL_WRITE 120
#define WAL_CHECKPOINT 121
#define PENDING 0x40000000
#define RESERVED 0x40000001
#define SHARED_LAST 0x400001ff

INLINE bool tells_transaction(u8 type, u64 first, u64 last) {
  if (type == 1) return (first >= WAL_WRITE && last <= WAL_CHECKPOINT) || (first >= PENDING && last <= SHARED_LAST);
  // Unlocked is often all of the file at once.
  return type == 2 && ((first <= WAL_CHECKPOINT && last >= WAL_WRITE) || (first <= RESERVED && last >= RESERVED));
}

/* A process makes another, no thread of its own: so it is known which processes are a command's. */
PROGRAM(sched_process_fork) {
  struct task_struct *parent = (void *)arguments[0];
  struct task_struct *child = (void *)arguments[1];
  if (child->tgid == parent->tgid) return 0;
  struct record *record = begin(FORKED);
  if (!record) return 0;
  record->detail = child->tgid;
  end(record);
  return 0;
}

PROGRAM(posix_lock_inode) {
  struct file_lock *lock = (void *)arguments[1];
  u8 type = FIELD_EXISTS(struct file_lock___new, c) ? READ((struct file_lock___new *)lock, c.flc_type) : READ(lock, fl_type);
  if (type != 1 && type != 2) return 0;
  u64 first = READ(lock, fl_start);
  u64 last = READ(lock, fl_end);
  if ((int)arguments[2] != 0 || !tells_transaction(type, first, last)) return 0;
  struct place place = {(void *)number_of(arguments), 0};
  descend(&place);
  struct file_key key = key_of(place.inode);
  if (type == 1) say_name((u64)place.inode, alias_of(place.inode));
  struct record *record = begin(LOCK);
  if (!record) return 0;
  set_file(record, &key);
  record->offset = first;
  record->bytes = last >= 0x7fffffffffffffffULL ? 0 : last - first + 1;
  record->detail = type;
  end(record);
  return 0;
}
