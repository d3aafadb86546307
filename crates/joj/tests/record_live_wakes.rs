//! Goal: a recording of eBPF tells for whom each thread waited, how long, and how it ended.
//! Method: programs of a few threads or processes that wait in each of the ways in which a program can.

mod record;
mod replay;

use std::path::Path;

use record::{ENDED, FORK, Row, WOKEN, methods, program, recorded};
use replay::Scratch;

/// The reader sleeps until the writer, which waits for a child meanwhile, hands it a word.
#[test]
fn who_woke_a_thread_is_in_a_recording_of_ebpf() {
    let scratch = Scratch::new("live-woken");
    let script = "{ sleep 0.3; echo one > $0/first; echo word; } | { read word; echo $word > $0/second; }";
    for method in methods() {
        let place = scratch.as_ref();
        let rows = recorded(&scratch, method, &[&"sh", &"-c", &script, &place], 0);
        if method == "ptrace" {
            assert!(rows.iter().all(|row| row.code != WOKEN), "a tracer does not see it");
            continue;
        }
        let opens = |name: &str| -> &Row {
            let is_it = |row: &&Row| row.opens(&place.join(name));
            rows.iter().find(is_it).unwrap_or_else(|| panic!("{name}: {rows:#?}"))
        };
        let (first, second) = (opens("first"), opens("second"));
        let woken: Vec<(i64, i64)> = rows
            .iter()
            .filter(|row| row.code == WOKEN && row.thread == second.thread)
            .map(|row| (row.begin_ns, row.result))
            .filter(|(begin_ns, _)| (first.begin_ns..second.begin_ns).contains(begin_ns))
            .collect();
        assert!(matches!(woken[..], [(_, waker)] if waker == first.thread), "{rows:#?}");
        let by_child = rows.iter().rfind(|row| row.code == WOKEN && row.begin_ns < first.begin_ns);
        let by_child = by_child.expect("the end of sleep");
        assert_eq!(by_child.thread, first.thread);
        assert!(![first.thread, second.thread].contains(&by_child.result), "{by_child:?}");
    }
}

/// A thread works for 0.1 s, and waits for its child, which needs longer. Another one waits for nobody when the program ends, which is 0.2 s
/// after its last call on a file.
const WAITS: &str = r#"
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
static void make(const char *name) { int file = open(name, O_CREAT | O_WRONLY, 0644); if (file < 0) abort(); close(file); }
static void *idle(void *arg) { make("idle"); pause(); return arg; }
int main(int count, char **words) {
  pthread_t thread; char word; int ends[2];
  if (count != 2 || chdir(words[1])) return 1;
  if (pipe(ends) || pthread_create(&thread, 0, idle, 0)) return 1;
  if (!fork()) { make("child"); usleep(300000); if (write(ends[1], "x", 1) != 1) abort(); _exit(0); }
  usleep(100000);
  if (read(ends[0], &word, 1) != 1) return 1;
  make("last"); usleep(200000);
  return 0;
}
"#;

#[test]
fn how_long_a_thread_waited_and_which_ended_by_themselves_is_told() {
    let scratch = Scratch::new("live-waits");
    let Some(binary) = program(&scratch, "waits", WAITS) else { return };
    let place: &Path = scratch.as_ref();
    for method in methods() {
        let rows = recorded(&scratch, method, &[&binary, &place], 0);
        let thread_of = |name: &str| rows.iter().find(|row| row.path.ends_with(name)).expect(name).thread;
        let (main, child) = (thread_of("/last"), thread_of("/child"));
        let mut ended: Vec<i64> = rows.iter().filter(|row| row.code == ENDED).map(|row| row.thread).collect();
        ended.sort_unstable();
        let last_ns = rows.iter().rfind(|row| row.path.ends_with("/last")).map_or(0, |row| row.begin_ns);
        let end = rows.iter().find(|row| row.code == ENDED && row.thread == main).expect("the program's end");
        assert!(end.begin_ns - last_ns >= 200_000_000, "{method}: {rows:#?}");
        if method == "ptrace" {
            assert_eq!(ended, [main], "a tracer does not see what the others waited for");
            continue;
        }
        assert_eq!(ended, [main, child], "{rows:#?}");
        let process_ends = |row: &&Row| row.code == ENDED && row.result == 1;
        assert_eq!(rows.iter().filter(process_ends).count(), 2, "{rows:#?}");
        let forked = rows.iter().find(|row| row.code == FORK && row.result == child).expect("a fork");
        let is_it = |row: &&Row| row.code == WOKEN && row.thread == main && row.result == child;
        let woken = rows.iter().find(is_it).expect("a wake-up");
        let since_fork_ns = woken.begin_ns - forked.begin_ns;
        assert!((1..=since_fork_ns - 100_000_000).contains(&woken.bytes), "{since_fork_ns}: {woken:?}");
    }
}

/// A thread looks each 20 ms whether its child, which makes a file after 0.21 s, is done: by poll, epoll, select, or a semaphore.
const LOOKS: &str = r#"
#include <fcntl.h>
#include <poll.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>
static void make(const char *name) { int file = open(name, O_CREAT | O_WRONLY, 0644); if (file < 0) abort(); close(file); }
int main(int count, char **words) {
  int ends[2], events = epoll_create1(0);
  sem_t *done = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (count != 3 || chdir(words[2]) || pipe(ends) || sem_init(done, 1, 0)) return 1;
  struct epoll_event event = {.events = EPOLLIN};
  epoll_ctl(events, EPOLL_CTL_ADD, ends[0], &event);
  if (!fork()) { usleep(210000); make("child"); sem_post(done); if (write(ends[1], "x", 1) != 1) abort(); _exit(0); }
  struct pollfd look = {.fd = ends[0], .events = POLLIN};
  for (;;) {
    if (!strcmp(words[1], "poll") && poll(&look, 1, 20)) break;
    if (!strcmp(words[1], "epoll") && epoll_wait(events, &event, 1, 20)) break;
    fd_set set; FD_ZERO(&set); FD_SET(ends[0], &set); struct timeval time = {0, 20000};
    if (!strcmp(words[1], "select") && select(ends[0] + 1, &set, 0, 0, &time)) break;
    struct timespec until; clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 20000000; if (until.tv_nsec >= 1000000000) { until.tv_nsec -= 1000000000; until.tv_sec++; }
    if (!strcmp(words[1], "semaphore") && !sem_timedwait(done, &until)) break;
  }
  make("last");
  return 0;
}
"#;

#[test]
fn waits_with_a_timeout_that_end_in_vain_are_one_wait() {
    let scratch = Scratch::new("live-looks");
    let Some(binary) = program(&scratch, "looks", LOOKS) else { return };
    if !methods().contains(&"bpf") {
        return;
    }
    for how in ["poll", "epoll", "select", "semaphore"] {
        // Where the child is done just as a look's time is over, it wakes nobody.
        let waited = (0..5).find_map(|_| {
            let rows = recorded(&scratch, "bpf", &[&binary, &how, &scratch.as_ref()], 0);
            let forked = rows.iter().find(|row| row.code == FORK).expect("a child");
            let is_it = |row: &&Row| row.code == WOKEN && row.result == forked.result;
            rows.iter().find(is_it).map(|woken| (woken.begin_ns - forked.begin_ns, woken.bytes))
        });
        let (since_ns, waited_ns) = waited.unwrap_or_else(|| panic!("{how}: no wake-up by the child"));
        // All but the first look, and the time between two.
        assert!((since_ns / 2..=since_ns).contains(&waited_ns), "{how}: {waited_ns} of {since_ns} ns");
    }
}

/// A program sleeps, and its child makes a file and sends it a signal twice. `on`: it sleeps on, and makes a file when its time is over.
/// `work`: it makes the file as soon as the second signal comes. The others are as `on`, by other calls: `until` for an absolute time, `poll` with
/// a descriptor, `pause` until a timer's signal.
const SLEEPS: &str = r#"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/select.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static volatile int signals;
static volatile int is_over;
static void on_signal(int number) { (void)number; signals++; }
static void on_timer(int number) { (void)number; is_over = 1; }
static long now(void) { struct timespec time; clock_gettime(CLOCK_MONOTONIC, &time); return time.tv_sec * 1000 + time.tv_nsec / 1000000; }
static void make(const char *name) { int file = open(name, O_CREAT | O_WRONLY, 0644); if (file < 0) abort(); close(file); }
int main(int count, char **words) {
  if (count != 3 || chdir(words[2])) return 1;
  struct sigaction action = {.sa_handler = on_signal};
  sigaction(SIGUSR1, &action, 0);
  make("first");
  pid_t parent = getpid();
  if (!fork()) {
    for (int round = 0; round < 2; round++) { usleep(100000); make("child"); kill(parent, SIGUSR1); }
    _exit(0);
  }
  struct timespec left = {words[1][0] == 'w' ? 20 : 0, 400000000};
  struct timeval time = {0, 150000};
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_sec++;
  if (words[1][0] == 'u')
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, 0) == EINTR) {}
  else if (words[1][1] == 'o' && words[1][0] == 'p') {
    int ends[2];
    if (pipe(ends)) return 1;
    struct pollfd look = {.fd = ends[0], .events = POLLIN};
    for (long end = now() + 400; now() < end; poll(&look, 1, end - now())) {}
  } else if (words[1][0] == 'p') {
    struct itimerval timer = {.it_value = {0, 400000}};
    signal(SIGALRM, on_timer);
    setitimer(ITIMER_REAL, &timer, 0);
    while (!is_over) pause();
  } else if (words[1][0] == 's')
    while (signals < 2 && select(0, 0, 0, 0, &time) < 0 && errno == EINTR) {}
  else
    while (nanosleep(&left, words[1][0] == 'o' ? &left : 0) && (words[1][0] == 'o' || signals < 2)) {}
  make("last");
  wait(0);
  return 0;
}
"#;

#[test]
fn a_sleep_that_a_signal_breaks_and_that_goes_on_is_no_wait() {
    let scratch = Scratch::new("live-sleeps");
    let Some(binary) = program(&scratch, "sleeps", SLEEPS) else { return };
    if !methods().contains(&"bpf") {
        return;
    }
    let place: &Path = scratch.as_ref();
    for (how, wakers) in [("on", 0), ("select", 0), ("until", 0), ("poll", 0), ("pause", 0), ("work", 2)] {
        let rows = recorded(&scratch, "bpf", &[&binary, &how, &place], 0);
        let last = rows.iter().find(|row| row.opens(&place.join("last"))).expect("the last file");
        let woken: Vec<_> = rows
            .iter()
            .filter(|row| row.code == WOKEN && row.result != 0 && row.thread == last.thread)
            .filter(|row| row.begin_ns < last.begin_ns)
            .collect();
        assert_eq!(woken.len(), wakers, "{how}: {rows:#?}");
        // As long as its own sleep, without the one before.
        let times = woken.windows(2).map(|two| (two[1].begin_ns - two[0].begin_ns, two[1].bytes));
        let mut times = times.chain(woken.first().map(|one| (one.begin_ns, one.bytes)));
        assert!(times.all(|(since_ns, slept_ns)| (1..=since_ns).contains(&slept_ns)), "{how}: {rows:#?}");
    }
}

/// A child writes until its parent ends it, or until another child of its parent does.
const KILLS: &str = r#"
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static void make(const char *name) { int file = open(name, O_CREAT | O_WRONLY, 0644); if (file < 0) abort(); close(file); }
int main(int count, char **words) {
  if (count != 3 || chdir(words[2])) return 1;
  make("first");
  pid_t child = fork();
  if (!child) for (;;) { make("child"); usleep(2000); }
  if (words[1][0] == 'o') {
    if (!fork()) { usleep(50000); make("other"); kill(child, SIGKILL); pause(); }
  } else {
    usleep(50000);
    kill(child, SIGTERM);
  }
  waitpid(child, 0, 0);
  make("last");
  kill(0, SIGKILL);
}
"#;

#[test]
fn who_ended_a_process_stands_for_it() {
    let scratch = Scratch::new("live-kills");
    let Some(binary) = program(&scratch, "kills", KILLS) else { return };
    if !methods().contains(&"bpf") {
        return;
    }
    for how in ["parent", "other"] {
        let words: [&dyn AsRef<std::ffi::OsStr>; 4] = [&"setsid", &binary, &how, &scratch.as_ref()];
        let rows = recorded(&scratch, "bpf", &words, 137);
        let place: &Path = scratch.as_ref();
        let thread_of =
            |name: &str| rows.iter().find(|row| row.opens(&place.join(name))).map(|row| row.thread);
        let wakers: Vec<i64> = rows
            .iter()
            .filter(|row| row.code == WOKEN && row.result != 0 && Some(row.thread) == thread_of("last"))
            .map(|row| row.result)
            .collect();
        let expected: Vec<i64> = thread_of("other").into_iter().collect();
        assert_eq!(wakers, expected, "{how}: {rows:#?}");
    }
}

/// Its first thread uses a file all the time, and another one, which uses none, runs the next program.
const RUNS: &str = r#"
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>
static void *runs(void *arg) { usleep(200000); execl("/bin/true", "true", (char *)0); return arg; }
int main(int count, char **words) {
  pthread_t thread; int file = open(words[count - 1], O_CREAT | O_RDWR, 0644);
  if (file < 0 || pthread_create(&thread, 0, runs, 0)) return 1;
  for (;;) { if (pwrite(file, "x", 1, 0) != 1) return 1; usleep(10000); }
}
"#;

#[test]
fn a_new_program_begins_when_the_thread_that_runs_it_has_done_its_work() {
    let scratch = Scratch::new("live-runs");
    let Some(binary) = program(&scratch, "runs", RUNS) else { return };
    for method in methods() {
        let file = scratch.file(method);
        let rows = recorded(&scratch, method, &[&binary, &file], 0);
        let opened = rows.iter().find(|row| row.opens(&file)).expect("a file");
        let forked = rows.iter().find(|row| row.code == FORK).expect("a thread");
        let runs =
            |row: &&Row| row.code == WOKEN && row.thread == opened.thread && row.result == forked.result;
        let woken = rows.iter().find(runs).unwrap_or_else(|| panic!("{method}: {rows:#?}"));
        assert!(woken.begin_ns - forked.begin_ns >= 200_000_000, "{method}: {woken:?}");
    }
}
