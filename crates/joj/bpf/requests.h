/* The way of requests: queued by a filesystem or program, issued to the driver, completed. */
#pragma once
#include "calls.h"
#include "memory.h"

/* Whole disks that are wanted. */
MAP(MAP_HASH, u32, u8, 1024) devices SECTION(".maps");

INLINE bool is_wanted(struct gendisk *disk) {
  if (!settings.only_some_devices) return true;
  u32 number = disk->part0->bd_dev;
  return map_lookup(&devices, &number) != NULL;
}

INLINE u8 operation_of(u32 opf) {
  switch (opf & 0xff) {
    case 0: return OP_READ;
    case 1:
    case 7: return OP_WRITE;  // 7: append to a zone
    case 2: return OP_FLUSH;
    case 3:
    case 5: return OP_DISCARD;  // 5: secure erase
    case 9: return OP_WRITE_ZEROES;
    default: return OP_OTHER;
  }
}

INLINE u16 flags_of(u32 opf) {
  u16 flags = 0;
  if (opf & (1U << ENUM_VALUE(req_flag_bits, __REQ_SYNC))) flags |= F_SYNC;
  if (opf & (1U << ENUM_VALUE(req_flag_bits, __REQ_META))) flags |= F_METADATA;
  if (opf & (1U << ENUM_VALUE(req_flag_bits, __REQ_FUA))) flags |= F_FUA;
  if (opf & (1U << ENUM_VALUE(req_flag_bits, __REQ_PREFLUSH))) flags |= F_PREFLUSH;
  if (opf & (1U << ENUM_VALUE(req_flag_bits, __REQ_RAHEAD))) flags |= F_READ_AHEAD;
  return flags;
}

/* The byte of the file at which a direct bio begins. `size` counts what was built so far, this bio included, but for the zeros with
 * which iomap fills a block: those before a write end where it begins, those behind it begin where it ends. Which of the two it is
 * says the disk, as blocks of files lie on blocks of the filesystem's device. */
INLINE u64 direct_offset(struct walk *walk, struct inode *inode, u64 end) {
  u64 begin = end - walk->left;
  u64 on_disk = (walk->sector - walk->start_sector) << 9;
  u64 in_block = (1ULL << READ(inode, i_blkbits)) - 1;
  bool is_behind = ((begin ^ on_disk) & in_block) && !((end ^ on_disk) & in_block);
  return is_behind ? end : begin;
}

/* Direct I/O: the memory is a program's, so the file is known only from the request that awaits the bio. */
#define IOCB_DSYNC 2
INLINE bool own_direct(struct walk *walk, u64 end_io) {
  if (!settings.end_of_direct || end_io != settings.end_of_direct) return false;
  struct run *run = &walk->run;
  run->backing = DIRECT;
  struct iomap_dio *direct = READ((struct bio *)walk->bio, bi_private);
  struct kiocb *call = direct ? READ(direct, iocb) : NULL;
  struct file *file = call ? READ(call, ki_filp) : NULL;
  struct inode *inode = file ? READ_NUMBER(file, f_inode) : NULL;
  if (!inode) return true;
  run->key = key_of(inode);
  run->inode = (u64)inode;
  if (walk->operation == OP_WRITE && READ(call, ki_flags) & IOCB_DSYNC) note_asker(&run->key);
  run->offset = direct_offset(walk, inode, READ(call, ki_pos) + READ(direct, size));
  return true;
}

/* The last checkpoint whose end is in a part of XFS's log that is written; 0 where there is none, or it cannot be seen. */
INLINE s64 checkpoint_in(u64 bio) {
  if (!TYPE_EXISTS(struct xlog_in_core) || !FIELD_EXISTS(struct xlog_in_core, ic_bio) ||
      !FIELD_EXISTS(struct xlog_in_core, ic_callbacks) || !FIELD_EXISTS(struct xfs_cil_ctx, iclog_entry))
    return 0;
  u64 head = bio - FIELD_OFFSET(struct xlog_in_core, ic_bio) + FIELD_OFFSET(struct xlog_in_core, ic_callbacks);
  u64 last = (u64)READ_NUMBER((struct list_head *)head, prev);
  if (!last || last == head) return 0;
  struct xfs_cil_ctx *checkpoint = (void *)(last - FIELD_OFFSET(struct xfs_cil_ctx, iclog_entry));
  return READ_NUMBER(checkpoint, sequence);
}

INLINE bool own_xfs(struct walk *walk, u64 end_io) {
  struct run *run = &walk->run;
  if (settings.end_of_xfs_log && end_io == settings.end_of_xfs_log) {
    run->content = XFS_LOG;
    run->detail = checkpoint_in(walk->bio);
  } else if (settings.end_of_xfs_buffer && end_io == settings.end_of_xfs_buffer) {
    struct xfs_buf *buffer = READ((struct bio *)walk->bio, bi_private);
    u32 magic = 0;
    if (walk->operation == OP_WRITE && TYPE_EXISTS(struct xfs_buf) && !read_kernel(&magic, sizeof(magic), READ(buffer, b_addr))) {
      run->content = XFS_BUFFER;
      run->detail = big_endian(magic);
    }
  } else {
    return false;
  }
  run->backing = PRIVATE;
  return true;
}

/* Btrfs says itself which file a bio is of. Where data has several copies, each copy's bio leads to the one that was asked for. */
INLINE void find_owner(struct walk *walk, u64 end_io) {
  if (!TYPE_EXISTS(struct btrfs_bio) || !FIELD_EXISTS(struct btrfs_bio, file_offset) || !FIELD_EXISTS(struct btrfs_bio, inode))
    return;
  u64 asked = 0;
  if (settings.end_of_btrfs && end_io == settings.end_of_btrfs) {
    asked = walk->bio;
  } else if (end_io && (end_io == settings.end_of_btrfs_copy || end_io == settings.end_of_btrfs_last_copy)) {
    if (!FIELD_EXISTS(struct btrfs_io_stripe, bioc) || !FIELD_EXISTS(struct btrfs_io_context, orig_bio)) return;
    struct btrfs_io_stripe *copy = READ((struct bio *)walk->bio, bi_private);
    struct btrfs_io_context *copies = copy ? READ_NUMBER(copy, bioc) : NULL;
    asked = copies ? (u64)READ_NUMBER(copies, orig_bio) : 0;
  }
  if (!asked) return;
  struct btrfs_bio *outer = (void *)(asked - FIELD_OFFSET(struct btrfs_bio, bio));
  struct btrfs_inode *owner = READ_NUMBER(outer, inode);
  if (!owner) return;
  walk->owner = (u64)owner + FIELD_OFFSET(struct btrfs_inode, vfs_inode);
  walk->owner_offset = READ_NUMBER(outer, file_offset);
}

PROGRAM(block_bio_queue) {
  struct bio *bio = (void *)arguments[0];
  if (!is_wanted(bio->bi_bdev->bd_disk)) return 0;
  u64 end_io = (u64)bio->bi_end_io;
  struct walk walk = {};
  walk.bio = number_of(arguments);
  walk.sector = bio->bi_iter.bi_sector;
  walk.left = bio->bi_iter.bi_size;
  walk.device = bio->bi_bdev->bd_dev;
  walk.start_sector = bio->bi_bdev->bd_start_sect;
  walk.opf = bio->bi_opf;
  walk.flags = flags_of(walk.opf);
  walk.operation = operation_of(walk.opf);
  walk.through_buffer_head = settings.end_of_buffer_head && end_io == settings.end_of_buffer_head;
  if (walk.operation == OP_WRITE && walk.left == 0 && walk.flags & F_PREFLUSH) walk.operation = OP_FLUSH;
  bool has_memory = walk.left && (walk.operation == OP_READ || walk.operation == OP_WRITE);
  if (!has_memory || own_direct(&walk, end_io) || own_xfs(&walk, end_io)) {
    walk.run.bytes = walk.left;
    send_run(&walk, true);
  } else {
    walk.vector = (u64)READ((struct bio *)walk.bio, bi_io_vec) + (u64)bio->bi_iter.bi_idx * sizeof(struct bio_vec);
    walk.done_in_vector = bio->bi_iter.bi_bvec_done;
    find_owner(&walk, end_io);
    loop(PIECES_MAX, on_piece, &walk, 0);
    send_run(&walk, walk.left == 0);
  }
  return 0;
}

INLINE void send_request(struct request *request, u8 kind, u64 bytes, s64 detail) {
  struct gendisk *disk = request->q->disk;
  if (!disk || !is_wanted(disk)) return;
  struct record *record = begin(kind);
  if (!record) return;
  u64 sector = request->__sector;
  record->device = disk->part0->bd_dev;
  // A request without a place, a flush, has sector -1; the kernel's own tracing says 0.
  record->sector = sector == ~0ULL ? 0 : sector;
  record->bytes = bytes;
  // The driver's queue and its tag, each plus 1, which no other request has meanwhile; 0: unknown. The tag of a request that has none
  // is -1.
  if (request->mq_hctx) record->offset = ((u64)request->mq_hctx->queue_num + 1) << 32 | (u32)(request->tag + 1);
  record->operation = operation_of(request->cmd_flags);
  record->flags = flags_of(request->cmd_flags);
  record->detail = detail;
  end(record);
}

PROGRAM(block_rq_issue) {
  struct request *request = (void *)arguments[0];
  send_request(request, ISSUE, request->__data_len, 0);
  return 0;
}

PROGRAM(block_rq_requeue) {
  struct request *request = (void *)arguments[0];
  send_request(request, REQUEUE, request->__data_len, 0);
  return 0;
}

/* detail: the kernel's blk_status_t, which user space makes an errno. */
PROGRAM(block_rq_complete) {
  send_request((void *)arguments[0], COMPLETE, (u32)arguments[2], (u8)arguments[1]);
  return 0;
}
