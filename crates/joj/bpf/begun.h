/* The call that each thread is in, and sleeps that a signal breaks. Part of recording.bpf.c.
 *
 * A thread sleeps for a time that it chose, and a signal of another thread breaks that. If it sleeps for the rest of that time, it waited
 * for nobody. If it goes on with its work, or sleeps anew, it waited for the signal. Nobody knows which until then. */
#pragma once
/* A thread woke another one. */
struct wake_up {
  /* Its number; 0: nobody. */
  u64 waker;
  u64 time_ns;
  /* How long the other one had waited; 0: nobody knows. */
  u64 waited_ns;
  /* The end of the newest call that the waker knew of. */
  u64 known_ns;
  /* What the other one's sleep was, if it was asleep. */
  u64 sleep_ns;
};
/* The call that a thread is in. The entry stays between calls, with `what` 0, until the thread is gone. */
struct begun {
  u64 begin_ns;
  /* The end of the newest call that the thread knows of: its own, or one of a thread that woke it. */
  u64 known_ns;
  /* When it began its newest call, whatever it is: it may wait there for another thread. */
  u64 waits_since_ns;
  u32 what;
  u8 descriptor;
  /* A wake-up was told since its last call. */
  bool is_woken;
  /* For how long or until when its newest call is to sleep, in nanoseconds; 0: it is no sleep. */
  u64 sleep_ns;
  struct wake_up of_sleep;
};
MAP(MAP_HASH, u32, struct begun, 65536) begun SECTION(".maps");

INLINE struct begun *begun_of(u32 thread) {
  struct begun *found = map_lookup(&begun, &thread);
  if (found) return found;
  struct begun none = {};
  map_update(&begun, &thread, &none, 0);
  return map_lookup(&begun, &thread);
}

INLINE void send_wake_up(u32 thread, struct wake_up *wake_up) {
  struct event_head head = {};
  head.event = WOKEN;
  head.begin_ns = wake_up->time_ns;
  head.values[0] = wake_up->waited_ns;
  head.thread = thread;
  head.process = wake_up->waker;
  send(&head, sizeof(head));
}

INLINE void tell_wake_up(struct begun *woken, u32 thread, struct wake_up *wake_up) {
  if (wake_up->known_ns > woken->known_ns) woken->known_ns = wake_up->known_ns;
  woken->is_woken = true;
  send_wake_up(thread, wake_up);
}

/* A thread does what others see: what broke its sleep, it waited for. */
INLINE void tell_broken_sleep(struct begun *thread, u32 number) {
  if (!thread->of_sleep.waker) return;
  tell_wake_up(thread, number, &thread->of_sleep);
  thread->of_sleep.waker = 0;
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

/* True where a sleep is the rest of the one that was broken. */
INLINE bool sleeps_on(struct wake_up *broken, u64 sleep_ns, bool is_absolute) {
  return is_absolute ? sleep_ns == broken->sleep_ns : sleep_ns < broken->sleep_ns;
}

/* What it waits for in a call begins now. The kernel goes on with a call that a signal broke by one of another number. */
INLINE void begins_call(struct begun *thread, u32 id, u64 number, struct pt_regs *registers, u64 time_ns) {
  if (number == CALL_RESTART) {
    if (!thread->sleep_ns) return;
    thread->of_sleep.waker = 0;
  } else {
    u64 sleep_ns = sleep_of(number, registers);
    if (sleep_ns && thread->of_sleep.waker) {
      bool is_absolute = number == CALL_CLOCK_NANOSLEEP && ARGUMENT_1(registers) & 1;
      if (sleeps_on(&thread->of_sleep, sleep_ns, is_absolute)) thread->of_sleep.waker = 0;
      tell_broken_sleep(thread, id);
    }
    thread->sleep_ns = sleep_ns;
  }
  thread->waits_since_ns = time_ns;
}
