/* Sync calls by the door for programs of 32 bits (int 0x80), which 64-bit code can use, too: no 32-bit compiler is needed. The first
 * argument is a file that is made. Exits with 77 where the kernel has no such door. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int call(int number, long a, long b, long c, long d, long e, long f) {
  long result = number;
  __asm__ volatile("push %%rbp\n mov %6, %%rbp\n int $0x80\n pop %%rbp"
                   : "+a"(result)
                   : "b"(a), "c"(b), "d"(c), "S"(d), "D"(e), "r"(f)
                   : "memory", "r8", "r9", "r10", "r11");
  return (int)result;
}

static void no_door(int signal) {
  (void)signal;
  _exit(77);
}

static void need(long result) {
  if (result < 0) abort();
}

int main(int count, char **arguments) {
  if (count != 2) return 1;
  signal(SIGSEGV, no_door);
  if (call(20, 0, 0, 0, 0, 0, 0) != getpid()) return 77;
  // Pointers have 32 bits.
  char *low = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
  if (low == MAP_FAILED) return 77;
  strcpy(low, arguments[1]);
  char *bytes = low + 8192;
  memset(bytes, 'a', 8192);
  long file = call(5, (long)low, 0102, 0644, 0, 0, 0);
  need(file);
  need(call(181, file, (long)bytes, 8192, 0, 0, 0));
  for (int turn = 0; turn < 9; turn++) {
    need(call(181, file, (long)bytes, 4096, 0, 0, 0));
    need(call(118, file, 0, 0, 0, 0, 0));
  }
  for (int turn = 0; turn < 7; turn++) {
    need(call(181, file, (long)bytes, 4096, 0, 0, 0));
    need(call(148, file, 0, 0, 0, 0, 0));
  }
  for (int turn = 0; turn < 5; turn++) need(call(314, file, 0, 0, 0, 0, 7));
  for (int turn = 0; turn < 3; turn++) need(call(344, file, 0, 0, 0, 0, 0));
  long mapped = call(192, 0, 8192, 3, 1, file, 0);
  for (int turn = 0; turn < 2; turn++) need(call(144, mapped & 0xffffffff, 8192, 4, 0, 0, 0));
  // With O_LARGEFILE.
  long durable = call(5, (long)low, 0110002, 0, 0, 0, 0);
  need(durable);
  // The offset's upper half comes in a register of its own.
  for (int turn = 0; turn < 4; turn++) need(call(181, durable, (long)bytes, 4096, 4096 * turn, 1, 0));
  int *piece = (int *)(low + 4096);
  piece[0] = (int)(long)bytes;
  piece[1] = 4096;
  for (int turn = 0; turn < 6; turn++) need(call(379, file, (long)piece, 1, 4096 * turn, 0, 2));
  // getresuid has fsync's number, and a getitimer sync's: neither syncs anything.
  need(getuid());
  for (int turn = 0; turn < 50; turn++) {
    uid_t own[3];
    need(getresuid(own, own + 1, own + 2));
  }
  need(call(194, durable, 8192, 1, 0, 0, 0));
  return 0;
}
