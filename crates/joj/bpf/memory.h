/* Whose bytes a bio carries: from its memory to runs of neighbouring bytes of one file. */
#pragma once
#include "calls.h"
#include "content.h"
#include "files.h"
#include "settings.h"

/* Runs that one bio is cut into at most, and pieces (pages, folios) that are looked at for it. */
#define RUNS_MAX 32
#define PIECES_MAX 4096

struct run {
  struct file_key key;
  u64 offset;
  u64 bytes;
  s64 detail;
  u64 inode;
  u8 backing;
  u8 content;
};

struct walk {
  u64 bio;
  u64 vector;
  struct run run;
  u64 sector;
  u64 start_sector;
  /* The inode that the filesystem itself says the bio is of (Btrfs does), and the byte of it that comes next; 0 where it says none. */
  u64 owner;
  u64 owner_offset;
  u32 left;
  u32 done_in_vector;
  u32 device;
  u32 opf;
  u32 runs;
  u16 flags;
  u8 operation;
  bool through_buffer_head;
};

/* The longest block whose bytes are handed up. */
#define BLOCK_BYTES 4096
struct block_record {
  struct record record;
  u8 bytes[BLOCK_BYTES];
};

INLINE void fill_run(struct record *record, struct walk *walk, bool last) {
  struct run *run = &walk->run;
  record->device = walk->device;
  record->sector = walk->sector;
  record->bytes = run->bytes;
  record->operation = walk->operation;
  record->flags = walk->flags | (walk->runs ? F_CONTINUED : 0) | (last ? 0 : F_CUT_SHORT);
  set_file(record, &run->key);
  record->offset = run->offset;
  record->backing = run->backing;
  record->content = run->content;
  record->detail = run->detail;
}

/* A block of jbd2's log that is a copy of metadata: it goes elsewhere than to its own place. With its bytes, where wanted. */
INLINE bool send_copy(struct walk *walk) {
  struct run *run = &walk->run;
  if (!settings.log_contents || !walk->through_buffer_head || walk->operation != OP_WRITE) return false;
  if (run->backing != BY_DEVICE || run->content != CONTENT_OTHER || run->bytes > BLOCK_BYTES) return false;
  if (run->key.device == walk->device && (run->offset >> 9) + walk->start_sector == walk->sector) return false;
  struct buffer_head *head = READ_NUMBER((struct bio *)walk->bio, bi_private);
  char *data = READ_NUMBER(head, b_data);
  struct block_record *block = ring_reserve(&events, sizeof(*block), 0);
  if (!block) return false;
  __builtin_memset(&block->record, 0, sizeof(block->record));
  stamp(&block->record, QUEUE);
  fill_run(&block->record, walk, true);
  u64 bytes = run->bytes;
  block->record.text_bytes = bytes;
  if (bytes <= BLOCK_BYTES && read_kernel(block->bytes, bytes, data)) block->record.text_bytes = 0;
  end(&block->record);
  return true;
}

INLINE bool is_inner(u64 magic, u64 inode) {
  return (magic == MAGIC_BTRFS && inode == 1) || (magic == MAGIC_F2FS && (inode == 1 || inode == 2)) ||
         (magic == MAGIC_NILFS2 && inode >= 3 && inode <= 6);
}

/* What the filesystem says counts where memory does not tell (compressed data, direct I/O). */
INLINE void own_by_filesystem(struct walk *walk) {
  struct run *run = &walk->run;
  if (!walk->owner || (run->backing != PRIVATE && run->backing != DIRECT)) return;
  // On the stack: older kernels take no other memory as a key.
  struct file_key key = key_of((void *)walk->owner);
  // Neither data nor trees have such memory: scrub and replace move both, and say of both that they are the trees'.
  if (run->backing == PRIVATE && is_inner(MAGIC_BTRFS, key.inode)) {
    run->backing = UNSEEN;
    return;
  }
  run->inode = walk->owner;
  run->key = key;
  run->offset = walk->owner_offset - run->bytes;
  if (run->backing == DIRECT && walk->operation == OP_WRITE) note_asker(&key);
  if (run->backing == PRIVATE) run->backing = BY_FILE;
}

APART int send_run(struct walk *walk, bool last) {
  if (!walk) return 0;
  struct run *run = &walk->run;
  own_by_filesystem(walk);
  // Before the request: a file that a kernel's thread writes for the first time has no other event to be named by.
  if (run->inode) say_name(run->inode, alias_of((void *)run->inode));
  if (!send_copy(walk)) {
    struct record *record = begin(QUEUE);
    if (record) {
      fill_run(record, walk, last);
      end(record);
    }
  }
  walk->sector += run->bytes >> 9;
  walk->runs++;
  return 0;
}

INLINE bool is_written_back(struct folio *folio) {
  unsigned long flags = 0;
  read_kernel(&flags, sizeof(flags), folio);
  return flags & (1UL << ENUM_VALUE(pageflags, PG_writeback));
}

/* True for a page that a file's own I/O is about. Any other is a program's memory, a mapping of that file, in direct I/O to or from
 * another place. Where the filesystem does not say whose the bio is, a page of its own is being written back, or is yet to be read.
 * Buffer heads know no direct I/O, and do without that mark. */
INLINE bool is_own_io(struct walk *walk, struct folio *folio, u64 offset) {
  if (walk->owner) return offset == walk->owner_offset;
  if (walk->through_buffer_head) return true;
  if (walk->operation == OP_WRITE) return is_written_back(folio);
  unsigned long flags = 0;
  read_kernel(&flags, sizeof(flags), folio);
  return !(flags & (1UL << ENUM_VALUE(pageflags, PG_uptodate)));
}

/* Which file a folio belongs to. A folio of another use has other things in `mapping`: only an inode that points back counts. */
APART int own(struct walk *walk, struct run *run, u64 folio_address, u64 in_folio) {
  if (!walk || !run) return 0;
  struct folio *folio = (void *)folio_address;
  struct address_space *mapping = READ_NUMBER(folio, mapping);
  run->backing = PRIVATE;
  u8 otherwise = mapping ? DIRECT : PRIVATE;
  if (!mapping && walk->operation == OP_WRITE) {
    // The encrypted copy of a page leads to that page (fscrypt's bounce pages).
    u64 page = (u64)READ_NUMBER(folio, private);
    u64 head = page ? READ_NUMBER((struct page *)page, compound_head) : 0;
    folio = (void *)(head & 1 ? head - 1 : page);
    mapping = page ? READ_NUMBER(folio, mapping) : NULL;
    in_folio += (page - (u64)folio) / TYPE_SIZE(struct page) * settings.page_bytes;
  }
  if (!mapping) return 0;
  if ((u64)mapping & 3) {
    // Of anonymous memory only what goes to swap is being written back. In what file or on what disk that is, it does not tell.
    run->backing = walk->operation == OP_WRITE && is_written_back(folio) ? UNSEEN : otherwise;
    return 0;
  }
  struct inode *host = READ_NUMBER(mapping, host);
  if (!host || (struct address_space *)((u64)host + FIELD_OFFSET(struct inode, i_data)) != mapping) return 0;
  if (walk->owner && (u64)host != walk->owner) {
    run->backing = otherwise;
    return 0;
  }
  struct super_block *super = READ(host, i_sb);
  u64 magic = READ(super, s_magic);
  bool inner = is_inner(magic, READ(host, i_ino));
  run->offset = READ(folio, index) * settings.page_bytes + in_folio;
  if (magic != MAGIC_BLOCK_DEVICE && !inner && !is_own_io(walk, folio, run->offset)) {
    run->backing = otherwise;
    return 0;
  }
  if (magic == MAGIC_BLOCK_DEVICE) {
    run->backing = BY_DEVICE;
    run->key.device = READ(host, i_rdev);
    return 0;
  }
  run->key = key_of(host);
  run->backing = inner ? INNER : BY_FILE;
  run->inode = run->backing == BY_FILE ? (u64)host : 0;
  if (walk->operation != OP_WRITE) return 0;
  if (run->backing == BY_FILE && run->offset == 0) run->content = look_at_file_start(folio);
  if (magic == MAGIC_BTRFS && run->backing == INNER) look_into_tree(folio, run->offset, &run->content, &run->detail);
  return 0;
}

INLINE u64 folio_bytes(struct folio *folio) {
  unsigned long head = 0;
  // `flags` has been called otherwise, and has always been first.
  read_kernel(&head, sizeof(head), folio);
  if (!(head & (1UL << ENUM_VALUE(pageflags, PG_head)))) return settings.page_bytes;
  u64 pages = 1;
  if (FIELD_EXISTS(struct folio, _nr_pages)) {
    pages = READ(folio, _nr_pages);
  } else if (FIELD_EXISTS(struct folio___old, _folio_nr_pages)) {
    pages = READ((struct folio___old *)folio, _folio_nr_pages);
  }
  return pages ? pages * settings.page_bytes : settings.page_bytes;
}

INLINE bool continues(const struct run *run, const struct run *next) {
  return run->backing == next->backing && run->key.inode == next->key.inode && run->key.device == next->key.device &&
         run->key.generation == next->key.generation && run->content == next->content && run->detail == next->detail &&
         (next->backing == PRIVATE || next->backing == DIRECT || run->offset + run->bytes == next->offset);
}

/* One piece of memory: what is left of a bio's vector, or of a folio if that ends first. Returns 1 when the bio is done. */
static long on_piece(u32 index, struct walk *walk) {
  struct bio_vec vector = {};
  read_kernel(&vector, sizeof(vector), (void *)walk->vector);
  if (!vector.bv_page || walk->done_in_vector >= vector.bv_len) return 1;
  u64 page_struct_bytes = TYPE_SIZE(struct page);
  u64 in_vector = (u64)vector.bv_offset + walk->done_in_vector;
  struct page *page = (void *)((u64)vector.bv_page + in_vector / settings.page_bytes * page_struct_bytes);
  u64 head = READ_NUMBER(page, compound_head);
  struct folio *folio = (void *)(head & 1 ? head - 1 : (u64)page);
  u64 in_folio = ((u64)page - (u64)folio) / page_struct_bytes * settings.page_bytes + in_vector % settings.page_bytes;
  u64 folio_size = folio_bytes(folio);
  // A folio that changed meanwhile: its pages one by one.
  u64 length = folio_size > in_folio ? folio_size - in_folio : settings.page_bytes - in_vector % settings.page_bytes;
  if (length > vector.bv_len - walk->done_in_vector) length = vector.bv_len - walk->done_in_vector;
  if (length > walk->left) length = walk->left;

  struct run next = {};
  own(walk, &next, (u64)folio, in_folio);
  if (walk->operation == OP_WRITE && walk->through_buffer_head) next.content = look_at_block((void *)walk->bio);
  if (walk->run.bytes && !continues(&walk->run, &next)) {
    if (walk->runs == RUNS_MAX - 1) return 1;
    send_run(walk, true);
    walk->run.bytes = 0;
  }
  if (!walk->run.bytes) walk->run = next;
  walk->run.bytes += length;
  walk->owner_offset += length;
  walk->left -= length;
  walk->done_in_vector += length;
  if (walk->done_in_vector >= vector.bv_len) {
    walk->vector += sizeof(vector);
    walk->done_in_vector = 0;
  }
  return walk->left == 0;
}
