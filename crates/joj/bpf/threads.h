/* Threads of the recorded processes begin, run other programs, end, and wake each other. Part of recording.bpf.c. */
#pragma once
INLINE void send_event(u8 event, u32 thread, u32 other, u32 marks) {
  struct event_head head = {};
  head.event = event;
  head.begin_ns = now_ns();
  head.thread = thread;
  head.process = other;
  head.mode = marks;
  send(&head, sizeof(head));
}

PROGRAM(sched_process_fork) {
  struct task_struct *parent = (void *)arguments[0];
  struct task_struct *child = (void *)arguments[1];
  if (!is_followed(parent->tgid)) return 0;
  u32 process = child->tgid;
  u8 one = 1;
  if (child->tgid != parent->tgid && map_update(&processes, &process, &one, 0)) count(&lost, 0);
  struct begun *news = begun_of(child->pid);
  if (news) news->known_ns = now_ns();
  u32 marks = (child->files == parent->files) | (child->fs == parent->fs) << 1 | (child->tgid == parent->tgid) << 2;
  u32 thread = parent->pid;
  struct begun *forks = map_lookup(&begun, &thread);
  if (forks) {
    shows(forks, thread);
    gets_row(forks, thread);
  }
  send_event(FORKED, thread, child->pid, marks);
  return 0;
}

PROGRAM(sched_process_exec) {
  struct task_struct *task = (void *)arguments[0];
  u32 process = task->tgid;
  if (is_followed(process)) {
    send_event(EXECUTED, task->pid, (u32)arguments[1], 0);
  } else if (table.parent && task->real_parent->tgid == table.parent) {
    u8 one = 1;
    if (map_update(&processes, &process, &one, 0)) count(&lost, 0);
  }
  return 0;
}

/* Who sends a signal may end a process by it. */
PROGRAM(signal_generate) {
  u64 both = current_process_thread();
  struct task_struct *task = (void *)arguments[2];
  if (!is_followed(both >> 32) || !is_followed(task->tgid)) return 0;
  struct pt_regs *registers = registers_of(current_task());
  switch ((s32)CALL_NUMBER(registers)) {
    case CALL_KILL:
    case CALL_TKILL:
    case CALL_TGKILL:
    case CALL_QUEUE_SIGNAL:
    case CALL_PIDFD_SEND_SIGNAL: ends_process(task->tgid, (u32)both);
  }
  return 0;
}

/* How a thread ends. */
#define BY_ITSELF 1
#define WITH_PROCESS 2

/* Not by itself where another one ends their process, or a signal: it may have waited until then. But where a signal ends the program, its
 * first thread lasts until then, whatever it does. */
INLINE u32 end_of(struct task_struct *task) {
  struct pt_regs *registers = registers_of(task);
  s32 number = CALL_NUMBER(registers);
  if (number == CALL_EXIT_GROUP || (number == CALL_EXIT && !task->signal->live.counter)) return BY_ITSELF | WITH_PROCESS;
  if (number == CALL_EXIT) return BY_ITSELF;
  bool is_first = task->pid == task->tgid && table.parent && task->real_parent->tgid == table.parent;
  return is_first && (task->exit_code & 127) ? BY_ITSELF | WITH_PROCESS : 0;
}

PROGRAM(sched_process_exit) {
  struct task_struct *task = (void *)arguments[0];
  u32 process = task->tgid;
  if (!is_followed(process)) return 0;
  u32 thread = task->pid;
  u32 end = end_of(task);
  struct begun *call = map_lookup(&begun, &thread);
  if (call) {
    // Its end is not seen.
    if (call->what) count(&counts, (CODE(call->what) & 127) * 8 + 1);
    call->what = 0;
    u32 *ender = end ? NULL : map_lookup(&enders, &process);
    call->ended_by = ender ? *ender : 0;
    if (end) shows(call, thread);
    call->wake_up.waker = 0;
  }
  send_event(ENDED, thread, process, end);
  if (!task->signal->live.counter) map_delete(&processes, &process);
  return 0;
}

PROGRAM(sched_process_free) {
  struct task_struct *task = (void *)arguments[0];
  u32 thread = task->pid;
  map_delete(&begun, &thread);
  return 0;
}

/* True where it is the thread itself that wakes somebody: it is in a system call, or it ends. An interrupt that meets it in a call on
 * files, or in none, wakes for reasons of its own. */
#define PF_EXITING 4
INLINE bool wakes_itself(struct task_struct *current, struct begun *call) {
  if (current->flags & PF_EXITING) return true;
  struct pt_regs *registers = registers_of(current);
  return !call->what && (s32)CALL_NUMBER(registers) >= 0;
}

/* A thread wakes another one: through a pipe, a futex, a socket, by its end. Told where the woken one is in no call of the recording,
 * and learns of a call that it did not know of, or made a call since it was woken last. */
PROGRAM(sched_waking) {
  u64 both = current_process_thread();
  u32 waker = (u32)both;
  struct task_struct *current = current_task();
  struct begun *from = NULL;
  if (is_followed(both >> 32))
    from = begun_of(waker);
  else if (current->flags & PF_EXITING)  // Behind `sched_process_exit`.
    from = map_lookup(&begun, &waker);
  if (!from) return 0;
  struct task_struct *task = (void *)arguments[0];
  if (task->pid == waker || !is_followed(task->tgid) || !wakes_itself(current, from)) return 0;
  shows(from, waker);
  u32 ender = current->flags & PF_EXITING ? from->ended_by : 0;
  struct begun *ends = ender ? map_lookup(&begun, &ender) : NULL;
  if (ends) {
    // Its end does not wait for what it did last.
    waker = ender;
    from = ends;
    if (task->pid == waker) return 0;
  }
  struct begun *woken = begun_of(task->pid);
  if (!woken || woken->what) return 0;
  struct pt_regs *registers = registers_of(task);
  // Who runs another program ends the other threads of its process, and waits for that alone.
  s32 number = CALL_NUMBER(registers);
  bool is_exec = number == CALL_EXEC || number == CALL_EXECAT;
  if (is_exec && current->flags & PF_EXITING && task->tgid == (u32)(both >> 32)) return 0;
  bool is_in_call = number >= 0 && woken->wait.since_ns;
  // One that a signal broke before, and it waits for something else now.
  if (woken->wake_up.wait.since_ns != woken->wait.since_ns) shows(woken, task->pid);
  bool is_news = from->known_ns > woken->known_ns || !woken->is_woken;
  if (woken->wake_up.waker && !is_news) return 0;
  woken->wake_up.waker = waker;
  woken->wake_up.time_ns = now_ns();
  woken->wake_up.known_ns = from->known_ns;
  woken->wake_up.wait = woken->wait;
  if (is_in_call) return 0;
  woken->wake_up.wait.since_ns = 0;
  if (is_news)
    tell_wake_up(woken, task->pid);
  else
    woken->wake_up.waker = 0;
  return 0;
}
