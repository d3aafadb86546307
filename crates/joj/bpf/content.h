/* What bytes say of themselves, where their address is at hand. Pages have none in eBPF: it comes from what points at them. */
#pragma once
#include "kernel.h"
#include "record.h"

INLINE u32 big_endian(u32 value) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  return __builtin_bswap32(value);
#else
  return value;
#endif
}

INLINE u8 content_of(const u32 *words) {
  if (big_endian(words[0]) == 0xc03b3998) {
    switch (big_endian(words[1])) {
      case 1: return JOURNAL_DESCRIPTOR;
      case 2: return JOURNAL_COMMIT;
      case 3:
      case 4: return JOURNAL_SUPERBLOCK;
      case 5: return JOURNAL_REVOKE;
      default: return CONTENT_OTHER;
    }
  }
  // "SQLite format 3", d9d505f920a163d7, 377f0682 or 377f0683.
  if (big_endian(words[0]) == 0x53514c69 && big_endian(words[1]) == 0x74652066) return SQLITE_DATABASE;
  if (big_endian(words[0]) == 0xd9d505f9 && big_endian(words[1]) == 0x20a163d7) return SQLITE_JOURNAL;
  if ((big_endian(words[0]) & ~1U) == 0x377f0682) return SQLITE_LOG;
  return CONTENT_OTHER;
}

/* The block of a bio that was submitted for one buffer_head. */
INLINE u8 look_at_block(struct bio *bio) {
  struct buffer_head *head = READ(bio, bi_private);
  u32 words[2] = {};
  if (!head || read_kernel(words, sizeof(words), READ(head, b_data))) return CONTENT_UNKNOWN;
  return content_of(words);
}

/* The first bytes of a file, where its first folio has buffer_heads (ext4): one that points back knows the address. */
INLINE u8 look_at_file_start(struct folio *folio) {
  struct buffer_head *head = READ(folio, private);
  u32 words[2] = {};
  if (!head || READ(head, b_page) != (struct page *)folio) return CONTENT_UNKNOWN;
  if (read_kernel(words, sizeof(words), READ(head, b_data))) return CONTENT_UNKNOWN;
  return content_of(words);
}

/* BTRFS_TREE_LOG_OBJECTID. */
#define BTRFS_LOG_TREE (-6)
#define BTRFS_BLOCK_MAX 65536

/* A block of Btrfs by its filesystem and its address there. */
struct tree_block {
  u64 filesystem;
  u64 start;
};
/* Which tree a new block is for, as long as it may still be written. */
MAP(MAP_LRU_HASH, struct tree_block, u64, 65536) tree_of_block SECTION(".maps");

/* The tree that a block of Btrfs belongs to: `owner`, byte 88 of its header (on disk, so the same everywhere). A block whose
 * pages are scattered has no address. Then only the kernel's own notes tell: every block that is written is new since the last
 * commit, so that it knows whether a log tree has it, and was told for which other tree it is. */
INLINE void look_into_tree(struct folio *folio, u64 offset, u8 *content, s64 *detail) {
  if (!TYPE_EXISTS(struct extent_buffer)) return;
  struct extent_buffer *buffer = READ(folio, private);
  // With blocks smaller than pages, something else is there.
  if (!buffer || offset - READ(buffer, start) >= BTRFS_BLOCK_MAX) return;
  s64 owner = 0;
  if (FIELD_EXISTS(struct extent_buffer, addr)) {
    char *block = READ(buffer, addr);
    if (block && !read_kernel(&owner, sizeof(owner), block + 88)) {
      *content = BTRFS_TREE;
      *detail = owner;
      return;
    }
  }
  if (!FIELD_EXISTS(struct extent_buffer, log_index)) return;
  if (READ(buffer, log_index) >= 0) {
    owner = BTRFS_LOG_TREE;
  } else {
    struct tree_block key = {(u64)READ_NUMBER(buffer, fs_info), READ_NUMBER(buffer, start)};
    u64 *tree = map_lookup(&tree_of_block, &key);
    if (!tree) return;
    owner = *tree;
  }
  *content = BTRFS_TREE;
  *detail = owner;
}
