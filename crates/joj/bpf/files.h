/* Which file an inode is, and what it is called. */
#pragma once
#include "kernel.h"
#include "record.h"

/* Numbers of the filesystems that keep some inodes for themselves (linux/magic.h; bdev is no public one). */
#define MAGIC_BLOCK_DEVICE 0x62646576
#define MAGIC_BTRFS 0x9123683e
#define MAGIC_F2FS 0xf2f52010
#define MAGIC_NILFS2 0x3434
#define MAGIC_OVERLAY 0x794c7630

struct file_key {
  u64 inode;
  u32 device;
  u32 generation;
};

/* What was last said of a file: said again only when it changed. */
struct said {
  u64 path_hash;
  u64 links;
};
MAP(MAP_LRU_HASH, struct file_key, struct said, 32768) names_said SECTION(".maps");

/* S_IFMT and S_IFDIR of sys/stat.h. */
#define FILE_TYPE 0170000
#define FILE_IS_DIRECTORY 0040000

#define NAME_BYTES 256
/* A path is told up to so many names and bytes; both are more than a program can name at once (PATH_MAX). */
#define PATH_NAMES 128
#define PATH_BYTES 4096
struct path_room {
  struct record record;
  char text[PATH_BYTES + NAME_BYTES];
  u32 in_use;
};
MAP(MAP_PER_CPU_ARRAY, u32, struct path_room, 1) path_rooms SECTION(".maps");

/* The number of the first subvolume that somebody made (BTRFS_FIRST_FREE_OBJECTID). */
#define FIRST_SUBVOLUME 256

/* Each subvolume of Btrfs counts its inodes for itself, and a generation is a transaction of the whole filesystem: what is made in one of them
 * may be alike in two. So the subvolume's number is mixed into that. */
INLINE u32 mark_of_subvolume(struct inode *inode) {
  if (!TYPE_EXISTS(struct btrfs_root)) return 0;
  struct btrfs_inode *outer = (void *)((u64)inode - FIELD_OFFSET(struct btrfs_inode, vfs_inode));
  struct btrfs_root *root = READ_NUMBER(outer, root);
  u64 number = root ? READ_NUMBER(root, root_key.objectid) : 0;
  // Trees of the filesystem's own have numbers below, and from -1 downwards.
  return number < FIRST_SUBVOLUME || number >> 63 ? 0 : (u32)number * 0x9e3779b1U;
}

INLINE struct file_key key_of(struct inode *inode) {
  struct super_block *super = READ(inode, i_sb);
  struct file_key key = {READ(inode, i_ino), READ(super, s_dev), READ(inode, i_generation)};
  if (READ(super, s_magic) == MAGIC_BTRFS) key.generation += mark_of_subvolume(inode);
  return key;
}

INLINE void set_file(struct record *record, const struct file_key *key) {
  record->inode = key->inode;
  record->file_device = key->device;
  record->generation = key->generation;
}

/* A name that the inode has or, deleted but open, had last. */
INLINE u64 alias_of(struct inode *inode) {
  struct hlist_node *first = READ_NUMBER(inode, i_dentry.first);
  return !first ? 0 : ((u64)first - FIELD_OFFSET(struct dentry, d_u.d_alias));
}

/* A file where its bytes are: its inode, and the name by which a program has it. */
struct place {
  struct inode *inode;
  u64 dentry;
};

/* From overlayfs to the filesystem below: only that one writes, and knows the file by its own inode. An overlay may lie on another. */
INLINE void descend(struct place *place) {
  if (!TYPE_EXISTS(struct ovl_inode)) return;
  for (int depth = 0; depth < 2; depth++) {
    struct inode *inode = place->inode;
    struct super_block *super = READ(inode, i_sb);
    if (READ(super, s_magic) != MAGIC_OVERLAY) return;
    struct ovl_inode *outer = (void *)((u64)inode - FIELD_OFFSET(struct ovl_inode, vfs_inode));
    struct dentry *upper = READ_NUMBER(outer, __upperdentry);
    struct inode *below = upper ? READ_NUMBER(upper, d_inode) : NULL;
    if (!below) return;
    place->inode = below;
    place->dentry = (u64)upper;
  }
}

INLINE struct place place_of_file(struct file *file) {
  struct place place = {READ_NUMBER(file, f_inode), (u64)READ_NUMBER(file, f_path.dentry)};
  if (place.inode) descend(&place);
  return place;
}

struct climb {
  struct path_room *room;
  u64 dentry;
  u32 at;
  bool whole;
};

/* One name of a path, then its parent. */
static long on_name(u32 index, struct climb *climb) {
  struct dentry *dentry = (void *)climb->dentry;
  struct dentry *parent = READ_NUMBER(dentry, d_parent);
  u32 at = climb->at;
  // The root is its own parent.
  if (!parent || parent == dentry) {
    climb->whole = parent != NULL;
    return 1;
  }
  if (at > PATH_BYTES - 1) return 1;
  long bytes = read_kernel_text(&climb->room->text[at & (PATH_BYTES - 1)], NAME_BYTES, READ(dentry, d_name.name));
  if (bytes <= 0) return 1;
  climb->at = at + bytes;
  climb->dentry = (u64)parent;
  return 0;
}

/* The inode number of a directory; what is above a path that is cut is told apart by it. */
INLINE u64 inode_number(struct dentry *dentry) {
  struct inode *inode = READ_NUMBER(dentry, d_inode);
  return inode ? READ_NUMBER(inode, i_ino) : 0;
}

INLINE void send_path(struct path_room *room, const struct file_key *key, u64 dentry, u8 kind, u8 marks) {
  struct record *record = &room->record;
  struct climb climb = {room, dentry, 0, false};
  __builtin_memset(record, 0, sizeof(*record));
  stamp(record, kind);
  set_file(record, key);
  loop(PATH_NAMES + 1, on_name, &climb, 0);
  record->path_marks = marks | (climb.whole ? 0 : PATH_CUT);
  if (!climb.whole) record->offset = inode_number((void *)climb.dentry);
  u32 bytes = climb.at;
  record->text_bytes = bytes;
  if (bytes > PATH_BYTES + NAME_BYTES) return;
  if (ring_output(&events, room, sizeof(struct record) + bytes, wake_flags())) count_lost();
}

struct ancestry {
  u64 dentry;
  u64 hash;
};

static long on_ancestor(u32 index, struct ancestry *ancestry) {
  struct dentry *dentry = (void *)ancestry->dentry;
  struct dentry *parent = READ(dentry, d_parent);
  if (!parent || parent == dentry) return 1;
  // A name's own hash begins with its directory. An odd number of 64 bits, so that the order of names counts.
  ancestry->hash = (ancestry->hash ^ READ(dentry, d_name.hash_len)) * 0x9e3779b97f4a7c15ULL;
  ancestry->dentry = (u64)parent;
  return 0;
}

/* Another number for another path: any directory above a file may have been renamed since the file's last event. */
INLINE u64 path_hash(u64 dentry) {
  struct ancestry ancestry = {dentry, 1};
  loop(PATH_NAMES + 1, on_ancestor, &ancestry, 0);
  return ancestry.hash;
}

/* True for a dentry that a handle was opened through, and which no lookup has tied to its directory: it is its own parent, as the root is. */
INLINE bool is_adrift(struct inode *inode, u64 dentry_address) {
  struct dentry *dentry = (void *)dentry_address;
  return READ_NUMBER(dentry, d_parent) == dentry && READ(READ(inode, i_sb), s_root) != dentry;
}

/* Says what a file is called and that it was deleted, where that is new. `dentry_address` may be 0. */
APART int say_name(u64 inode_address, u64 dentry_address) {
  if (!dentry_address) return 0;
  struct inode *inode = (void *)inode_address;
  if (is_adrift(inode, dentry_address)) return 0;
  struct file_key key = key_of(inode);
  struct said news = {path_hash(dentry_address), READ(inode, i_nlink)};
  struct said *old = map_lookup(&names_said, &key);
  bool renamed = !old || old->path_hash != news.path_hash;
  bool deleted = news.links == 0 && (!old || old->links != 0);
  if (!renamed && !deleted) return 0;
  u32 first = 0;
  struct path_room *room = map_lookup(&path_rooms, &first);
  // An interrupt may meet a program at work on this processor: the name is then said with the file's next event.
  if (!room || __sync_lock_test_and_set(&room->in_use, 1)) return 0;
  u8 marks = (READ(inode, i_mode) & FILE_TYPE) == FILE_IS_DIRECTORY ? PATH_OF_DIRECTORY : 0;
  if (renamed) send_path(room, &key, dentry_address, NAMED, marks);
  if (deleted) send_path(room, &key, dentry_address, UNLINKED, marks);
  room->in_use = 0;
  map_update(&names_said, &key, &news, 0);
  return 0;
}
