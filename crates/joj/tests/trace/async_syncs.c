/* Syncs without a system call of their own, by io_uring and AIO, without their libraries.
 *
 *   PROGRAM uring FILE   6 fsync, 5 fdatasync, 4 writes with RWF_DSYNC, 3 direct writes with O_DSYNC: 18
 *   PROGRAM aio FILE     64 direct writes with O_DSYNC, 8 at a time, into blocks that are there: 64
 *   PROGRAM fsync FILE   7 fsync by AIO */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BLOCK 4096
static void must(int good, const char *what) {
  if (!good) {
    perror(what);
    exit(1);
  }
}

static char *block(void) {
  void *memory = NULL;
  must(posix_memalign(&memory, BLOCK, BLOCK) == 0, "memory");
  memset(memory, 7, BLOCK);
  return memory;
}

static struct io_uring_params parameters;
static int ring;
static char *submissions, *completions;
static struct io_uring_sqe *entries;

static void make_ring(void) {
  ring = syscall(SYS_io_uring_setup, 4, &parameters);
  must(ring >= 0, "io_uring_setup");
  size_t bytes = parameters.sq_off.array + parameters.sq_entries * sizeof(unsigned);
  submissions = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
  bytes = parameters.cq_off.cqes + parameters.cq_entries * sizeof(struct io_uring_cqe);
  completions = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_CQ_RING);
  bytes = parameters.sq_entries * sizeof(struct io_uring_sqe);
  entries = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);
  must(submissions != MAP_FAILED && completions != MAP_FAILED && (void *)entries != MAP_FAILED, "mmap");
}

/* One operation, awaited. */
static void one(struct io_uring_sqe entry) {
  unsigned *tail = (unsigned *)(submissions + parameters.sq_off.tail);
  unsigned *array = (unsigned *)(submissions + parameters.sq_off.array);
  unsigned *head = (unsigned *)(completions + parameters.cq_off.head);
  unsigned at = *tail & (parameters.sq_entries - 1);
  entries[at] = entry;
  array[at] = at;
  __atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
  must(syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) == 1, "io_uring_enter");
  struct io_uring_cqe *done = (struct io_uring_cqe *)(completions + parameters.cq_off.cqes);
  int result = done[*head & (parameters.cq_entries - 1)].res;
  __atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
  errno = -result;
  must(result >= 0, "an operation");
}

static void by_uring(const char *path) {
  int file = open(path, O_RDWR | O_CREAT, 0600);
  int direct = open(path, O_WRONLY | O_DIRECT | O_DSYNC);
  must(file >= 0 && direct >= 0, path);
  char *memory = block();
  make_ring();
  for (int turn = 0; turn < 11; turn++) {
    must(pwrite(file, memory, BLOCK, turn * BLOCK) == BLOCK, "pwrite");
    one((struct io_uring_sqe){.opcode = IORING_OP_FSYNC, .fd = file, .fsync_flags = turn < 6 ? 0 : IORING_FSYNC_DATASYNC});
  }
  for (int turn = 0; turn < 4; turn++)
    one((struct io_uring_sqe){.opcode = IORING_OP_WRITE, .fd = file, .addr = (unsigned long)memory, .len = BLOCK,
                              .off = turn * BLOCK, .rw_flags = RWF_DSYNC});
  for (int turn = 0; turn < 3; turn++)
    one((struct io_uring_sqe){.opcode = IORING_OP_WRITE, .fd = direct, .addr = (unsigned long)memory, .len = BLOCK,
                              .off = turn * BLOCK});
}

static void by_aio(const char *path) {
  int file = open(path, O_RDWR | O_CREAT, 0600);
  char *memory = block();
  must(file >= 0, path);
  for (int turn = 0; turn < 64; turn++) must(pwrite(file, memory, BLOCK, turn * BLOCK) == BLOCK, "pwrite");
  must(fsync(file) == 0, "fsync");
  int direct = open(path, O_WRONLY | O_DIRECT | O_DSYNC);
  aio_context_t context = 0;
  must(direct >= 0 && syscall(SYS_io_setup, 8, &context) == 0, "io_setup");
  for (int turn = 0; turn < 64; turn += 8) {
    struct iocb writes[8], *all[8];
    for (int at = 0; at < 8; at++) {
      writes[at] = (struct iocb){.aio_lio_opcode = IOCB_CMD_PWRITE, .aio_fildes = direct, .aio_buf = (unsigned long)memory,
                                 .aio_nbytes = BLOCK, .aio_offset = (turn + at) * BLOCK};
      all[at] = &writes[at];
    }
    struct io_event done[8];
    must(syscall(SYS_io_submit, context, 8, all) == 8, "io_submit");
    must(syscall(SYS_io_getevents, context, 8, 8, done, NULL) == 8, "io_getevents");
    for (int at = 0; at < 8; at++) must(done[at].res == BLOCK, "a write");
  }
}

static void by_aio_fsync(const char *path) {
  int file = open(path, O_RDWR | O_CREAT, 0600);
  char *memory = block();
  aio_context_t context = 0;
  must(file >= 0 && syscall(SYS_io_setup, 8, &context) == 0, "io_setup");
  for (int turn = 0; turn < 7; turn++) {
    must(pwrite(file, memory, BLOCK, turn * BLOCK) == BLOCK, "pwrite");
    struct iocb sync = {.aio_lio_opcode = IOCB_CMD_FSYNC, .aio_fildes = file}, *all = &sync;
    struct io_event done;
    must(syscall(SYS_io_submit, context, 1, &all) == 1, "io_submit");
    must(syscall(SYS_io_getevents, context, 1, 1, &done, NULL) == 1 && done.res == 0, "io_getevents");
  }
}

int main(int count, char **words) {
  must(count == 3, "words");
  if (!strcmp(words[1], "uring")) by_uring(words[2]);
  else if (!strcmp(words[1], "aio")) by_aio(words[2]);
  else by_aio_fsync(words[2]);
  return 0;
}
