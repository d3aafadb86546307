/* What user space decides before the programs are loaded: the verifier drops what a setting makes unreachable.
 * crates/joj/src/machine/bpf_settings.rs writes the same bytes. */
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
  /* The only process whose calls and locks are wanted; 0 for all. */
  u32 only_process;
  /* 1: only disks in the map `devices`. */
  u8 only_some_devices;
  /* 1: copies of what a jbd2 log is given go up, too. */
  u8 log_contents;
  u8 unused[2];
  /* By system call number: 0, or one of `enum call`. */
  u8 calls[CALL_NUMBERS];
};
_Static_assert(sizeof(struct settings) == 568, "bpf_settings.rs writes 568 bytes");

SECTION(".rodata.settings") const volatile struct settings settings = {};
