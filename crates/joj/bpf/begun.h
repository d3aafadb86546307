/* The call that each thread is in, and how long it waits for others. Part of recording.bpf.c.
 *
 * A thread that is woken may have waited for its waker, or not, which its call's result says:
 *
 *   it has what it waited for   the waker is told
 *   its time is over            the wait was in vain; many of them, one after the other and for the same, are told as one. Where it uses files
 *                               between two of them, each is told: it would not have gone on so often had it been woken earlier
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
  /* What the thread had given others by pipes and sockets before. */
  u32 given;
  /* It ends at some time. */
  bool is_timed;
};
/* Waits in vain for one thing: since when, how long, and until when. */
struct in_vain {
  struct wait wait;
  u64 waited_ns;
  u64 until_ns;
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
  /* and in vain for one thing, which counts if another thread brings that, */
  struct in_vain in_vain;
  /* and sleeps of one length. */
  struct in_vain slept;
  /* How often it gave something to others by a pipe or a socket. */
  u32 given;
  /* Since when it looks, in vain, whether a child of it is over. */
  u64 looks_since_ns;
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

/* For the same, and in the same way: who waits without a limit after waits with one has done what it had to do by time. */
INLINE bool is_same(struct wait *one, struct wait *other) {
  if (one->number != other->number || one->sleep_ns != other->sleep_ns) return false;
  if (one->given != other->given || one->is_timed != other->is_timed) return false;
  return one->sleep_ns || one->argument == other->argument;
}

/* How long it waited in vain for what it waits for now, which is told with that. */
INLINE u64 in_vain_for(struct begun *thread, struct wait *wait) {
  return is_same(&thread->in_vain.wait, wait) ? thread->in_vain.waited_ns : 0;
}

/* The same for waits of a thread that are the same, and else another one; never 0, and odd for sleeps. */
INLINE u64 name_of(struct wait *wait) {
  u64 argument = wait->sleep_ns ? wait->sleep_ns : wait->argument;
  u64 name = argument ^ wait->number << 48 ^ (u64)wait->given << 24 ^ (u64)wait->is_timed << 63;
  name = (name * 0x9e3779b97f4a7c15ULL) >> 2;
  return wait->sleep_ns ? name | 1 : (name | 3) ^ 1;
}

/* Shorter waits in vain have no row. */
#define IN_VAIN_MIN_NS 1000000

INLINE void tell_in_vain(struct in_vain *in_vain, u32 id) {
  if (in_vain->waited_ns >= IN_VAIN_MIN_NS) {
    struct event_head head = {};
    head.event = WOKEN;
    head.begin_ns = in_vain->until_ns;
    head.values[0] = in_vain->until_ns - in_vain->wait.since_ns;
    head.values[1] = name_of(&in_vain->wait);
    head.thread = id;
    send(&head, sizeof(head));
  }
  in_vain->waited_ns = 0;
}

/* What it waited for is told by a row of it. Waits in vain have rows of their own before, by which nobody woke it. */
INLINE void gets_row(struct begun *thread, u32 id) {
  thread->waited_ns = 0;
  thread->looks_since_ns = 0;
  tell_in_vain(&thread->in_vain, id);
  tell_in_vain(&thread->slept, id);
}

INLINE void tell_wake_up(struct begun *woken, u32 thread) {
  struct wake_up *wake_up = &woken->wake_up;
  struct event_head head = {};
  head.event = WOKEN;
  head.begin_ns = wake_up->time_ns;
  // From a page fault it is woken in no call, and nobody knows since when it waited.
  if (wake_up->wait.since_ns) {
    head.values[0] = woken->waited_ns + in_vain_for(woken, &wake_up->wait) + wake_up->time_ns - wake_up->wait.since_ns;
    head.values[1] = name_of(&wake_up->wait);
  }
  gets_row(woken, thread);
  head.thread = thread;
  head.process = wake_up->waker;
  send(&head, sizeof(head));
  if (wake_up->known_ns > woken->known_ns) woken->known_ns = wake_up->known_ns;
  woken->is_woken = true;
  wake_up->waker = 0;
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

/* Whether a wait has a limit. */
INLINE bool is_timed(u64 number, struct pt_regs *registers) {
  switch (number) {
#ifdef CALL_SELECT
    case CALL_POLL: return (s32)ARGUMENT_2(registers) >= 0;
    case CALL_EPOLL_WAIT:
#endif
    case CALL_EPOLL_PWAIT: return (s32)ARGUMENT_3(registers) >= 0;
    case CALL_PPOLL: return ARGUMENT_2(registers);
#ifdef CALL_SELECT
    case CALL_SELECT:
#endif
    case CALL_PSELECT: return ARGUMENT_4(registers);
    case CALL_SIGTIMEDWAIT: return ARGUMENT_2(registers);
    case CALL_EPOLL_PWAIT2:
    case CALL_FUTEX: return ARGUMENT_3(registers);
  }
  return true;
}

/* True where a call goes on with the wait that a signal broke. */
INLINE bool waits_on(struct wait *broken, struct wait *wait, bool is_absolute) {
  if (!broken->sleep_ns || !wait->sleep_ns) return is_same(broken, wait);
  return is_absolute ? wait->sleep_ns == broken->sleep_ns : wait->sleep_ns < broken->sleep_ns;
}

INLINE void waited_in_vain(struct begun *thread, u32 id, struct wait *wait, u64 until_ns) {
  struct in_vain *in_vain = wait->sleep_ns ? &thread->slept : &thread->in_vain;
  if (!in_vain->waited_ns || !is_same(&in_vain->wait, wait)) {
    if (!wait->sleep_ns) tell_in_vain(in_vain, id);
    in_vain->wait = *wait;
    in_vain->waited_ns = 0;
  }
  in_vain->waited_ns += until_ns - wait->since_ns;
  in_vain->until_ns = until_ns;
}

/* A signal broke its wait, and it goes on with that. */
INLINE void goes_on(struct begun *thread, u32 id) {
  struct wake_up *wake_up = &thread->wake_up;
  if (wake_up->waker && !wake_up->wait.sleep_ns) waited_in_vain(thread, id, &wake_up->wait, wake_up->time_ns);
  wake_up->waker = 0;
}

/* The kernel goes on with a call that a signal broke by one of another number. */
INLINE void begins_call(struct begun *thread, u32 id, u64 number, struct pt_regs *registers, u64 time_ns) {
  if (number == CALL_RESTART) {
    goes_on(thread, id);
  } else {
    thread->wait.number = number;
    thread->wait.argument = number == CALL_PAUSE ? 0 : ARGUMENT_0(registers);
    thread->wait.sleep_ns = sleep_of(number, registers);
    thread->wait.is_timed = is_timed(number, registers);
    thread->wait.given = thread->given;
    if (thread->wake_up.waker) {
      bool is_absolute = number == CALL_CLOCK_NANOSLEEP && ARGUMENT_1(registers) & 1;
      if (waits_on(&thread->wake_up.wait, &thread->wait, is_absolute))
        goes_on(thread, id);
      else if (thread->wait.sleep_ns)
        shows(thread, id);
    }
  }
  thread->wait.since_ns = time_ns;
}

INLINE bool times_out(u64 number, s64 result) {
  switch (number) {
    case CALL_MQ_TIMEDSEND:
    case CALL_MQ_TIMEDRECEIVE:
    case CALL_FUTEX: return result == -ETIMEDOUT;
    // Of a socket that waits, too (SO_RCVTIMEO).
    case CALL_SEMTIMEDOP:
    case CALL_RECVFROM:
    case CALL_RECVMSG:
    case CALL_SIGTIMEDWAIT: return result == -EAGAIN;
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

/* It takes what others gave, or gives something, through a pipe, a socket, or a process's end. */
INLINE bool takes_or_gives(u64 number, s64 result) {
  if (result <= 0) return false;
  switch (number) {
    case NUMBER_OF_READ:
    case NUMBER_OF_WRITE:
    case CALL_SENDTO:
    case CALL_RECVFROM:
    case CALL_SENDMSG:
    case CALL_RECVMSG:
    case CALL_WAIT4: return true;
  }
  return false;
}

/* It gives others something that they may wait for. Its own output and errors are told to nobody who is recorded, as a rule. */
INLINE bool gives(struct wait *wait, s64 result) {
  if (result <= 0) return false;
  return wait->number == CALL_SENDTO || wait->number == CALL_SENDMSG || (wait->number == NUMBER_OF_WRITE && wait->argument > 2);
}

/* A shorter wait only looks. */
#define WAIT_MIN_NS 50000

/* It looked whether a child of it is over, and slept, until this one was. */
INLINE void looks(struct begun *thread, u32 id, s64 child) {
  struct wait *wait = &thread->wait;
  if (!child && !thread->looks_since_ns) thread->looks_since_ns = wait->since_ns;
  if (child <= 0 || !thread->looks_since_ns || thread->wake_up.waker) return;
  struct wake_up *wake_up = &thread->wake_up;
  wake_up->waker = child;
  wake_up->time_ns = now_ns();
  wake_up->known_ns = 0;
  wake_up->wait = *wait;
  wake_up->wait.since_ns = thread->looks_since_ns;
  tell_wake_up(thread, id);
}

/* A call without a row is over. */
INLINE void ends_call(struct begun *thread, u32 id, s64 result) {
  struct wait *wait = &thread->wait;
  if (!wait->since_ns) return;
  bool is_woken = thread->wake_up.waker && thread->wake_up.wait.since_ns == wait->since_ns;
  // What broke its wait before was what it waited for, though it may wait for more of it.
  if (!is_woken && takes_or_gives(wait->number, result)) shows(thread, id);
  if (gives(wait, result)) thread->given++;
  if (wait->number == CALL_WAIT4) looks(thread, id, result);
  bool is_slept = wait->sleep_ns && !result;
  if (is_slept || is_broken(result) || times_out(wait->number, result)) {
    if (is_woken && is_broken(result)) return;
    if (is_woken) thread->wake_up.waker = 0;
    u64 time_ns = now_ns();
    bool counts = is_slept || !wait->sleep_ns;
    if (counts && time_ns - wait->since_ns >= WAIT_MIN_NS) waited_in_vain(thread, id, wait, time_ns);
  } else if (is_woken && wait->sleep_ns) {
    thread->wake_up.waker = 0;
  } else if (is_woken && (thread->wake_up.known_ns > thread->known_ns || !thread->is_woken)) {
    tell_wake_up(thread, id);
  } else if (is_woken) {
    // There is no row for that: it belongs to the next one.
    thread->waited_ns += in_vain_for(thread, wait) + now_ns() - wait->since_ns;
    thread->in_vain.waited_ns = 0;
    thread->wake_up.waker = 0;
  } else {
    // Somebody else brought it.
    if (in_vain_for(thread, wait)) thread->in_vain.waited_ns = 0;
  }
}
