//! Goal: a recording of eBPF tells for what a thread waited in vain before it was woken, so that a forecast can have it woken earlier.
//! Method: programs that tick until they are told to end, and that look whether a child is over.

mod record;
mod replay;

use std::path::Path;

use record::{ENDED, FORK, Row, WOKEN, methods, program, recorded};
use replay::Scratch;

/// Another thread or process makes a file each 20 ms, until it is told to end after 0.11 s: by a condition, `pthread_cancel`, or a signal whose
/// handler says it. Or it has no limit for its last wait, writes to a pipe before its last tick, or the first thread runs another program. Or it ticks without any
/// call on files: by `poll`, with a write to a pipe between, or by `sigtimedwait`.
const TICKS: &str = r#"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int is_over;
static volatile int signals;
static void on_signal(int number) { (void)number; signals++; }
static void make(const char *name) { int file = open(name, O_CREAT | O_WRONLY, 0644); if (file < 0) abort(); close(file); }
static void *timed(void *arg) {
  pthread_mutex_lock(&mutex);
  while (!is_over) {
    struct timespec until; clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 20000000; if (until.tv_nsec >= 1000000000) { until.tv_nsec -= 1000000000; until.tv_sec++; }
    if (pthread_cond_timedwait(&condition, &mutex, &until) == ETIMEDOUT) make("tick");
  }
  pthread_mutex_unlock(&mutex);
  return arg;
}
static void *sleeping(void *arg) { for (;;) { make("tick"); usleep(20000); } return arg; }
static int ends[2], others[2];
static void *limits(void *arg) {
  struct pollfd look = {.fd = ends[0], .events = POLLIN};
  for (int round = 0; round < 3; round++) { poll(&look, 1, 20); make("tick"); }
  poll(&look, 1, -1);
  return arg;
}
static void *gives(void *arg) {
  for (int round = 0; round < 4; round++) {
    usleep(20000);
    if (round == 2 && write(ends[1], "x", 1) != 1) abort();
    make("tick");
  }
  return arg;
}
static void *polls(void *arg) {
  struct pollfd look = {.fd = ends[0], .events = POLLIN};
  make("tick");
  while (!poll(&look, 1, 20)) if (arg && write(others[1], "x", 1) != 1) abort();
  return arg;
}
static void *idle(void *arg) { make("tick"); for (;;) usleep(20000); return arg; }
int main(int count, char **words) {
  pthread_t thread; pid_t child;
  if (count != 3 || chdir(words[2])) return 1;
  make("first");
  switch (words[1][0]) {
    case 't':
      pthread_create(&thread, 0, timed, 0); usleep(110000);
      pthread_mutex_lock(&mutex); is_over = 1; pthread_cond_signal(&condition); pthread_mutex_unlock(&mutex);
      pthread_join(thread, 0); break;
    case 'c': pthread_create(&thread, 0, idle, 0); usleep(110000); pthread_cancel(thread); pthread_join(thread, 0); break;
    case 's':
      signal(SIGTERM, on_signal);
      if (!(child = fork())) { while (!signals) { usleep(20000); make("tick"); } _exit(0); }
      usleep(110000); kill(child, SIGTERM); waitpid(child, 0, 0); break;
    case 'l':
      if (pipe(ends)) return 1;
      pthread_create(&thread, 0, limits, 0); usleep(110000); if (write(ends[1], "x", 1) != 1) return 1;
      pthread_join(thread, 0); break;
    case 'p': case 'b':
      if (pipe(ends) || pipe(others)) return 1;
      pthread_create(&thread, 0, polls, words[1][0] == 'b' ? &ends : 0); usleep(110000); if (write(ends[1], "x", 1) != 1) return 1;
      pthread_join(thread, 0); break;
    case 'w': {
      sigset_t set; sigemptyset(&set); sigaddset(&set, SIGCHLD); sigprocmask(SIG_BLOCK, &set, 0);
      if (!(child = fork())) { usleep(110000); _exit(0); }
      make("tick");
      struct timespec time = {0, 20000000};
      while (sigtimedwait(&set, 0, &time) < 0);
      waitpid(child, 0, 0); break;
    }
    case 'g':
      if (pipe(ends)) return 1;
      pthread_create(&thread, 0, gives, 0); pthread_join(thread, 0); break;
    case 'e': pthread_create(&thread, 0, sleeping, 0); usleep(110000); execl("/bin/touch", "touch", "last", (char *)0);
  }
  make("last");
  return 0;
}
"#;

#[test]
fn waits_in_vain_between_calls_are_told_and_what_ended_them() {
    let scratch = Scratch::new("live-ticks");
    let Some(binary) = program(&scratch, "ticks", TICKS) else { return };
    if !methods().contains(&"bpf") {
        return;
    }
    let place: &Path = scratch.as_ref();
    for (how, is_sleep) in [("timed", false), ("cancel", true), ("signal", true)] {
        // Where it is told just as it is awake, nobody wakes it.
        let (rows, ticking, woken) = (0..5)
            .find_map(|_| {
                let rows = recorded(&scratch, "bpf", &[&binary, &how, &place], 0);
                let opened = |name: &str| rows.iter().find(|row| row.opens(&place.join(name))).expect(name);
                let (main, ticking) = (opened("last").thread, opened("tick").thread);
                let is_it = |row: &&Row| row.code == WOKEN && row.thread == ticking && row.result == main;
                let woken = rows.iter().rfind(is_it).cloned();
                woken.map(|woken| (rows, ticking, woken))
            })
            .unwrap_or_else(|| panic!("{how}: nobody woke it"));
        assert_eq!(woken.offset % 2 == 1, is_sleep, "{how}: {woken:?}");
        let own = || rows.iter().filter(|row| row.thread == ticking && row.begin_ns <= woken.begin_ns);
        let in_vain = own().filter(|row| row.code == WOKEN && row.result == 0 && row.offset == woken.offset);
        let waited_ns: i64 = in_vain.map(|row| row.bytes).sum();
        let first = rows.iter().find(|row| row.opens(&place.join("first"))).expect("a file");
        let all_ns = woken.begin_ns - first.begin_ns;
        assert!((all_ns / 3..all_ns).contains(&waited_ns), "{how}, {waited_ns} of {all_ns}: {rows:#?}");
        assert!(rows.iter().any(|row| row.code == ENDED && row.thread == ticking), "{how}: {rows:#?}");
    }
    let rows = recorded(&scratch, "bpf", &[&binary, &"limits", &place], 0);
    let ticking = rows.iter().find(|row| row.opens(&place.join("tick"))).expect("a tick").thread;
    let awaited = |is_woken: bool| {
        let waits = |row: &&Row| row.code == WOKEN && row.thread == ticking && (row.result != 0) == is_woken;
        rows.iter().rfind(waits).map(|row| row.offset)
    };
    assert!(
        awaited(true) != awaited(false) && awaited(false).is_some(),
        "a wait without a limit is another one"
    );
    let rows = recorded(&scratch, "bpf", &[&binary, &"gives", &place], 0);
    let ticking = rows.iter().find(|row| row.opens(&place.join("tick"))).expect("a tick").thread;
    let slept = rows.iter().filter(|row| row.code == WOKEN && row.thread == ticking && row.result == 0);
    let slept: Vec<i64> = slept.map(|row| row.offset).collect();
    assert!(
        matches!(slept[..], [one, two, three, four] if one == two && two == three && three != four),
        "{slept:?}"
    );
    let rows = recorded(&scratch, "bpf", &[&binary, &"exec", &place], 0);
    let main = rows.iter().find(|row| row.opens(&place.join("first"))).expect("a file").thread;
    assert!(rows.iter().any(|row| row.opens(&place.join("tick")) && row.thread != main), "{rows:#?}");
    let wakes = |row: &&Row| row.code == WOKEN && row.thread == main && row.result != 0;
    assert_eq!(
        rows.iter().find(wakes),
        None,
        "exec ends the other thread, and waits for nothing that it does"
    );
}

/// A program begins a child, which makes a file after 0.1 s. `looks`: it sleeps and looks whether that is over. `token`: its wait for a pipe is
/// broken by the child's end, whereupon it writes to the pipe and waits for it again, as `make -j` does. `again`: it waits for it again until its
/// time is over.
const REAPS: &str = r#"
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <unistd.h>
static void on_signal(int number) { (void)number; }
static void make(const char *name) { int file = open(name, O_CREAT | O_WRONLY, 0644); if (file < 0) abort(); close(file); }
int main(int count, char **words) {
  int ends[2]; char byte; sigset_t blocked, none;
  if (count != 3 || chdir(words[2]) || pipe(ends)) return 1;
  signal(SIGCHLD, on_signal);
  sigemptyset(&none); sigemptyset(&blocked); sigaddset(&blocked, SIGCHLD);
  sigprocmask(SIG_BLOCK, &blocked, 0);
  if (!fork()) { usleep(100000); make("child"); _exit(0); }
  if (words[1][0] == 'l')
    while (!waitpid(-1, 0, WNOHANG)) usleep(10000);
  else if (words[1][0] == 'a')
    for (;;) {
      fd_set set; FD_ZERO(&set); FD_SET(ends[0], &set);
      struct timespec limit = {0, 200000000};
      if (!pselect(ends[0] + 1, &set, 0, 0, &limit, &none)) break;
      waitpid(-1, 0, WNOHANG);
    }
  else
    for (;;) {
      fd_set set; FD_ZERO(&set); FD_SET(ends[0], &set);
      if (pselect(ends[0] + 1, &set, 0, 0, 0, &none) > 0) break;
      if (waitpid(-1, 0, WNOHANG) > 0 && write(ends[1], "+", 1) != 1) return 1;
    }
  if (words[1][0] == 't' && read(ends[0], &byte, 1) != 1) return 1;
  make("last");
  return 0;
}
"#;

#[test]
fn who_reaps_a_child_waited_for_it() {
    let scratch = Scratch::new("live-reaps");
    let Some(binary) = program(&scratch, "reaps", REAPS) else { return };
    if !methods().contains(&"bpf") {
        return;
    }
    let place: &Path = scratch.as_ref();
    for how in ["looks", "token", "again"] {
        let rows = recorded(&scratch, "bpf", &[&binary, &how, &place], 0);
        let child = rows.iter().find(|row| row.code == FORK).expect("a child").result;
        let last = rows.iter().find(|row| row.opens(&place.join("last"))).expect("the last file");
        let is_it = |row: &&Row| row.code == WOKEN && row.thread == last.thread && row.result == child;
        let woken = rows.iter().find(is_it).unwrap_or_else(|| panic!("{how}: {rows:#?}"));
        assert!((50_000_000..last.begin_ns).contains(&woken.bytes), "{how}: {woken:?}");
    }
}

#[test]
fn waits_in_vain_without_calls_between_are_told_before_what_ended_them() {
    let scratch = Scratch::new("live-ticks-alone");
    let Some(binary) = program(&scratch, "ticks", TICKS) else { return };
    if !methods().contains(&"bpf") {
        return;
    }
    let place: &Path = scratch.as_ref();
    for how in ["polls", "beats", "waits"] {
        let rows = recorded(&scratch, "bpf", &[&binary, &how, &place], 0);
        let ticking = rows.iter().find(|row| row.opens(&place.join("tick"))).expect("a tick").thread;
        let own = || rows.iter().filter(|row| row.code == WOKEN && row.thread == ticking);
        let is_in_vain = |row: &&Row| row.result == 0 && row.offset % 2 == 0;
        let waited_ns: i64 = own().filter(is_in_vain).map(|row| row.bytes).sum();
        assert!(waited_ns > 60_000_000, "{how}, {waited_ns}: {rows:#?}");
        let last = own().rfind(is_in_vain).expect("one");
        assert!(own().any(|row| row.result != 0 && row.begin_ns >= last.begin_ns), "{how}: {rows:#?}");
    }
}
