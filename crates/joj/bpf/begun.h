/* The call that each thread is in, and how long it waits for others. Part of recording.bpf.c.
 *
 * A thread that is woken may have waited for its waker, or not, which its call's result says:
 *
 *   it has what it waited for   the waker is told
 *   its time is over            the wait was in vain; many of them, one after the other and for the same, are one wait
 *   a signal broke it           nobody knows yet. Where the thread goes on with the same wait, or sleeps for the rest of its time, that was
 *                               in vain, too. Where it does something that others see, or sleeps anew, it waited for the signal */
#pragma once
/* What a thread waits for. */
struct wait {
  u64 number;
  u64 argument;
  /* For how long or until when it sleeps, in nanoseconds; 0: it is no sleep. */
  u64 sleep_ns;
  u64 since_ns;
};
/* A thread woke another one. */
struct wake_up {
  /* Its number; 0: nobody. */
  u64 waker;
  u64 time_ns;
  /* The end of the newest call that the waker knew of. */
  u64 known_ns;
  /* What the other one was in. */
  struct wait wait;
};
/* The call that a thread is in. The entry stays between calls, with `what` 0, until the thread is gone. */
struct begun {
  u64 begin_ns;
  /* The end of the newest call that the thread knows of: its own, or one of a thread that woke it. */
  u64 known_ns;
  u32 what;
  u8 descriptor;
  /* A wake-up was told since its last call. */
  bool is_woken;
  /* Who ended it, if it did not end by itself. */
  u32 ended_by;
  /* Its newest call, whatever it is: it may wait there for another thread. */
  struct wait wait;
  /* How long it waited for others since its last row in the recording, */
  u64 waited_ns;
  /* and in vain for one thing, which counts if another thread brings that. */
  struct wait in_vain;
  u64 in_vain_ns;
  /* What woke it in its newest call, or in one that a signal broke. */
  struct wake_up wake_up;
};
MAP(MAP_HASH, u32, struct begun, 65536) begun SECTION(".maps");

INLINE struct begun *begun_of(u32 thread) {
  struct begun *found = map_lookup(&begun, &thread);
  if (found) return found;
  struct begun none = {};
  map_update(&begun, &thread, &none, 0);
  return map_lookup(&begun, &thread);
}

/* What it waited for is told by a row of it. */
INLINE void gets_row(struct begun *thread) {
  thread->waited_ns = 0;
  thread->in_vain_ns = 0;
}

INLINE bool is_same(struct wait *one, struct wait *other) {
  return one->number == other->number && one->argument == other->argument;
}

/* How long it waited in vain for what it waits for now. */
INLINE u64 in_vain_for(struct begun *thread, struct wait *wait) {
  return is_same(&thread->in_vain, wait) ? thread->in_vain_ns : 0;
}

INLINE void tell_wake_up(struct begun *woken, u32 thread) {
  struct wake_up *wake_up = &woken->wake_up;
  struct event_head head = {};
  head.event = WOKEN;
  head.begin_ns = wake_up->time_ns;
  // From a page fault it is woken in no call, and nobody knows since when it waited.
  if (wake_up->wait.since_ns)
    head.values[0] = woken->waited_ns + in_vain_for(woken, &wake_up->wait) + wake_up->time_ns - wake_up->wait.since_ns;
  head.thread = thread;
  head.process = wake_up->waker;
  send(&head, sizeof(head));
  if (wake_up->known_ns > woken->known_ns) woken->known_ns = wake_up->known_ns;
  woken->is_woken = true;
  wake_up->waker = 0;
  gets_row(woken);
}

/* A thread does what others see: what woke it, it waited for. */
INLINE void shows(struct begun *thread, u32 id) {
  if (thread->wake_up.waker) tell_wake_up(thread, id);
}

struct seconds {
  u64 whole;
  u64 parts;
};

/* Of a sleep its nanoseconds, else 0. Without descriptors the last four wait for time alone, if they have one. */
INLINE u64 sleep_of(u64 number, struct pt_regs *registers) {
  u64 address = 0;
  u64 part_ns = 1;
  switch (number) {
    case CALL_NANOSLEEP: address = ARGUMENT_0(registers); break;
    case CALL_CLOCK_NANOSLEEP: address = ARGUMENT_2(registers); break;
    case CALL_PSELECT: address = ARGUMENT_0(registers) ? 0 : ARGUMENT_4(registers); break;
    case CALL_PPOLL: address = ARGUMENT_1(registers) ? 0 : ARGUMENT_2(registers); break;
#ifdef CALL_SELECT
    case CALL_SELECT:
      part_ns = 1000;
      address = ARGUMENT_0(registers) ? 0 : ARGUMENT_4(registers);
      break;
    case CALL_POLL: return ARGUMENT_1(registers) || (s32)ARGUMENT_2(registers) < 0 ? 0 : 1 + 1000000ULL * (u32)ARGUMENT_2(registers);
#endif
  }
  struct seconds time = {};
  if (!address || read_user(&time, sizeof(time), (void *)address)) return 0;
  return 1 + time.whole * 1000000000ULL + time.parts * part_ns;
}

/* True where a call goes on with the wait that a signal broke. */
INLINE bool waits_on(struct wait *broken, struct wait *wait, bool is_absolute) {
  if (!broken->sleep_ns || !wait->sleep_ns) return is_same(broken, wait);
  return is_absolute ? wait->sleep_ns == broken->sleep_ns : wait->sleep_ns < broken->sleep_ns;
}

INLINE void waited_in_vain(struct begun *thread, struct wait *wait, u64 until_ns) {
  if (wait->sleep_ns) return;
  if (!is_same(&thread->in_vain, wait)) thread->in_vain_ns = 0;
  thread->in_vain = *wait;
  thread->in_vain_ns += until_ns - wait->since_ns;
}

/* A signal broke its wait, and it goes on with that. */
INLINE void goes_on(struct begun *thread) {
  struct wake_up *wake_up = &thread->wake_up;
  if (wake_up->waker) waited_in_vain(thread, &wake_up->wait, wake_up->time_ns);
  wake_up->waker = 0;
}

/* The kernel goes on with a call that a signal broke by one of another number. */
INLINE void begins_call(struct begun *thread, u32 id, u64 number, struct pt_regs *registers, u64 time_ns) {
  if (number == CALL_RESTART) {
    goes_on(thread);
  } else {
    thread->wait.number = number;
    thread->wait.argument = number == CALL_PAUSE ? 0 : ARGUMENT_0(registers);
    thread->wait.sleep_ns = sleep_of(number, registers);
    if (thread->wake_up.waker) {
      bool is_absolute = number == CALL_CLOCK_NANOSLEEP && ARGUMENT_1(registers) & 1;
      if (waits_on(&thread->wake_up.wait, &thread->wait, is_absolute))
        goes_on(thread);
      else if (thread->wait.sleep_ns)
        shows(thread, id);
    }
  }
  thread->wait.since_ns = time_ns;
}

INLINE bool times_out(u64 number, s64 result) {
  switch (number) {
    case CALL_FUTEX: return result == -ETIMEDOUT;
#ifdef CALL_SELECT
    case CALL_SELECT:
    case CALL_POLL:
    case CALL_EPOLL_WAIT:
#endif
    case CALL_PSELECT:
    case CALL_PPOLL:
    case CALL_EPOLL_PWAIT:
    case CALL_EPOLL_PWAIT2: return !result;
  }
  return false;
}

/* EINTR, or one of those by which the kernel says to itself how to go on. */
INLINE bool is_broken(s64 result) {
  return result == -4 || (result <= -512 && result >= -516);
}

/* A shorter wait only looks. */
#define WAIT_MIN_NS 50000

/* A call without a row is over. */
INLINE void ends_call(struct begun *thread, u32 id, s64 result) {
  struct wait *wait = &thread->wait;
  if (!wait->since_ns) return;
  bool is_woken = thread->wake_up.waker && thread->wake_up.wait.since_ns == wait->since_ns;
  if (is_broken(result) || times_out(wait->number, result)) {
    if (is_woken && is_broken(result)) return;
    if (is_woken) thread->wake_up.waker = 0;
    u64 time_ns = now_ns();
    if (time_ns - wait->since_ns >= WAIT_MIN_NS) waited_in_vain(thread, wait, time_ns);
  } else if (is_woken && wait->sleep_ns) {
    thread->wake_up.waker = 0;
  } else if (is_woken && (thread->wake_up.known_ns > thread->known_ns || !thread->is_woken)) {
    tell_wake_up(thread, id);
  } else if (is_woken) {
    // There is no row for that: it belongs to the next one.
    thread->waited_ns += in_vain_for(thread, wait) + now_ns() - wait->since_ns;
    thread->in_vain_ns = 0;
    thread->wake_up.waker = 0;
  } else if (is_same(&thread->in_vain, wait)) {
    // Somebody else brought it.
    thread->in_vain_ns = 0;
  }
}
