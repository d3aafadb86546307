/* What user space decides before the programs are loaded: the verifier drops what a setting makes unreachable.
 * crates/joj/src/machine/capture/bpf/settings.rs writes the same bytes. */
#pragma once
#include "helpers.h"

#define CALL_NUMBERS 512
struct settings {
  u64 page_bytes;
  /* Addresses of completion routines, which tell what a bio is; 0 where the kernel has none. */
  u64 end_of_direct;
  u64 end_of_buffer_head;
  u64 end_of_xfs_log;
  u64 end_of_xfs_buffer;
  u64 end_of_btrfs;
  /* Of each copy of a write that has several, and of the last one. */
  u64 end_of_btrfs_copy;
  u64 end_of_btrfs_last_copy;
  /* 1: only disks in the map `devices`. */
  u8 only_some_devices;
  /* 1: copies of what a jbd2 log is given go up, too. */
  u8 log_contents;
  /* 1: the kernel has bpf_rdonly_cast (Linux 6.2). */
  u8 can_cast;
  /* 1: the end of a sync of an XFS file, of an XFS directory, and on Btrfs is seen (ENDS in object.rs has the same order). */
  u8 ends_of_xfs;
  u8 ends_of_xfs_directories;
  u8 ends_of_btrfs;
  u8 unused[2];
  /* By system call number: 0, or one of `enum call`. */
  u8 calls[CALL_NUMBERS];
  /* The same of calls of 32 bits, perhaps with CALL_LONG. */
  u8 compat_calls[CALL_NUMBERS];
};
_Static_assert(sizeof(struct settings) == 1096, "bpf_settings.rs writes 1096 bytes");

SECTION(".rodata.settings") const volatile struct settings settings = {};

/* Makes the verifier believe that a number is a pointer to a kernel's struct, to be read with one instruction. */
extern void *bpf_rdonly_cast(const void *address, u32 type) __attribute__((weak, section(".ksyms")));
#define TYPED(pointer) ((__typeof__(pointer))bpf_rdonly_cast(pointer, __builtin_btf_type_id(*(pointer), 1)))

/* A field behind a pointer that may lead anywhere, as a number; 0 where the memory cannot be read. */
#define READ_NUMBER(pointer, field)                                                                                              \
  ({                                                                                                                             \
    __typeof__((pointer)->field) value_ = 0;                                                                                     \
    read_kernel(&value_, sizeof(value_), &(pointer)->field);                                                                     \
    value_;                                                                                                                      \
  })
/* The same without a call where the kernel can: some 25 fields are read for each run. The verifier then knows pointers for what
 * they are, and allows no arithmetic with them. */
#define READ(pointer, field)                                                                                                     \
  ({                                                                                                                             \
    __typeof__((pointer)->field) field_ = 0;                                                                                     \
    if (settings.can_cast)                                                                                                       \
      field_ = TYPED(pointer)->field;                                                                                            \
    else                                                                                                                         \
      field_ = READ_NUMBER(pointer, field);                                                                                      \
    field_;                                                                                                                      \
  })
