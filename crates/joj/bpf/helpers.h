/* What every eBPF program needs: helpers by number, maps, relocation. Own declarations, so that nothing but clang is needed to
 * build: no libbpf headers, no bpftool, no vmlinux.h.
 * Sources: the numbers are the kernel's API (bpf-helpers(7)); the relocations are clang's builtins. */
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed int s32;
typedef signed long long s64;
typedef _Bool bool;
#define true 1
#define false 0
#define NULL ((void *)0)

#define SECTION(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
/* A function that the verifier checks once, apart from its callers: what is inlined it follows on every path that leads there.
 * Arguments are numbers, or pointers to structs that might be NULL. */
#define APART __attribute__((noinline))
/* A program on a tracepoint. Its arguments are pointers of the kernel's own types, in the order of the tracepoint. */
#define PROGRAM(tracepoint) SECTION("tp_btf/" #tracepoint) int on_##tracepoint(u64 *arguments)
/* A program on the return of a kernel's function, where no tracepoint tells it: the function's arguments, then what it returns. */
#define PROGRAM_AT_END(function) SECTION("fexit/" #function) int on_end_of_##function(u64 *arguments)

/* Structs declared with RELOCATED are not laid out as the kernel's: fields are found by name when the program is loaded. */
#define RELOCATED __attribute__((preserve_access_index))
#define TYPE_EXISTS(type) __builtin_preserve_type_info(*(type *)0, 0)
#define TYPE_SIZE(type) __builtin_preserve_type_info(*(type *)0, 1)
#define FIELD_EXISTS(type, field) __builtin_preserve_field_info(((type *)0)->field, 2)
#define FIELD_OFFSET(type, field) __builtin_preserve_field_info(((type *)0)->field, 0)
#define ENUM_VALUE(type, value) __builtin_preserve_enum_value(*(enum type *)value, 1)

#define MAP_HASH 1
#define MAP_ARRAY 2
#define MAP_PER_CPU_ARRAY 6
#define MAP_LRU_HASH 9
#define MAP_RING_BUFFER 27
/* How libbpf reads a map's description: integers are lengths of arrays, types are pointers. */
#define MAP(map_type, key_type, value_type, entries)                                                                             \
  struct {                                                                                                                       \
    int (*type)[map_type];                                                                                                       \
    int (*max_entries)[entries];                                                                                                 \
    key_type *key;                                                                                                               \
    value_type *value;                                                                                                           \
  }

static void *(*map_lookup)(void *map, const void *key) = (void *)1;
static long (*map_update)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*map_delete)(void *map, const void *key) = (void *)3;
static u64 (*now_ns)(void) = (void *)5;
static u64 (*current_process_thread)(void) = (void *)14;
static long (*current_command)(void *buffer, u32 bytes) = (void *)16;
static long (*read_user)(void *to, u32 bytes, const void *from) = (void *)112;
static long (*read_kernel)(void *to, u32 bytes, const void *from) = (void *)113;
static long (*read_user_text)(void *to, u32 bytes, const void *from) = (void *)114;
static long (*read_kernel_text)(void *to, u32 bytes, const void *from) = (void *)115;
static long (*ring_output)(void *ring, void *data, u64 bytes, u64 flags) = (void *)130;
static void *(*ring_reserve)(void *ring, u64 bytes, u64 flags) = (void *)131;
static void (*ring_submit)(void *data, u64 flags) = (void *)132;
static u64 (*ring_query)(void *ring, u64 what) = (void *)134;
static void *(*current_task)(void) = (void *)158;
static void *(*registers_of)(void *task) = (void *)175;
static long (*find_vma)(void *task, u64 address, void *callback, void *context, u64 flags) = (void *)180;
static long (*loop)(u32 iterations, void *callback, void *context, u64 flags) = (void *)181;

/* An argument of a program as a plain number: a typed pointer may not be given to a function that is checked apart. */
INLINE u64 number_of(const u64 *argument) {
  u64 number = 0;
  read_kernel(&number, sizeof(number), argument);
  return number;
}
