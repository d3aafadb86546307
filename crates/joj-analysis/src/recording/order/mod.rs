//! Which calls each call waits for: those before it on its thread, its open file description, its file and its path.
//!
//! ```text
//! A  open(x) -- write(x) -- rename(x, y) --------- unlink(y)
//! B                                     `- open(y) -' (also for a path's directories)
//! ```
//!
//! Waiting takes nothing from a thread's own time: what it does from its last call to the next one it does in a replay, too.
//!
//! Two calls that only look at a file or a path do not wait for each other, nor do two that were under way at the same time in the
//! recording. A name that is used again is the next in its path's order. The first call of a thread waits for those before the fork that
//! began it. A thread that another one woke goes on after the last call of that one, and who waits for a lock, after it is given back. After
//! ROOT (Weiss and others, SOSP 2013).

mod lock_waits;

use std::collections::HashMap;

use crate::recording::call::{CallKind, RecordedCall};
use crate::recording::file_tree::FileIndex;
use crate::recording::flags::{O_CREAT, O_TRUNC};
use crate::trace::texts::{Text, Texts};
use lock_waits::{LockWait, LockWaits};

/// So many calls of another thread have to be over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// The thread, by its place in [`CallOrder::threads`].
    pub thread: u32,
    /// How many of its calls.
    pub calls: u32,
}

/// What a thread did before another one woke it, or gave back the lock that it asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wakeup {
    /// What its waker did last before.
    pub waker: Wait,
    /// So long after that it went on.
    pub after_ns: u64,
    /// By which row it asked for a lock first; of a [`CallKind::Woken`] itself.
    pub asked: Wait,
    /// How long it had waited for a lock before it was given back. It asks the less often the longer it waits, so what comes after that is
    /// shorter where it waits for less than half of that. 0 for a [`CallKind::Woken`].
    pub asked_ns: u64,
    /// How long it went on by itself before it began to wait: it is woken no earlier, whatever its waker does. 0 where the recording does
    /// not tell.
    pub own_ns: u64,
}

impl Wakeup {
    /// When it goes on, where its waker's last call is over at `waker_ns`, it asked for the lock at `asked_ns`, and was free at `free_ns`: where
    /// it comes later, it does not wait at all.
    pub fn goes_on_ns(&self, waker_ns: u64, asked_ns: u64, free_ns: u64) -> u64 {
        let after_ns = match self.asked_ns {
            0 => self.after_ns,
            all_ns => part_of(self.after_ns, waker_ns.saturating_sub(asked_ns).saturating_mul(2), all_ns),
        };
        (waker_ns + after_ns).max(free_ns + self.own_ns)
    }
}

/// The order of a recording's calls.
#[derive(Debug, Default)]
pub struct CallOrder {
    /// Each thread's calls, by their places in the recording.
    pub threads: Vec<Vec<u32>>,
    /// The thread numbers of the recording, in the same order.
    pub thread_ids: Vec<u32>,
    /// For each thread the fork that began it, where the recording tells it.
    pub begins: Vec<Option<Wait>>,
    /// For each call since when its thread did by itself what comes before: the end of the thread's last call, or of the fork that began
    /// it. 0 where there is none, and `u64::MAX` where it did nothing by itself, but waited for a lock.
    pub ready_ns: Vec<u64>,
    /// For each [`CallKind::Woken`] whose waker is known, and each lock that others gave back.
    pub wakeups: HashMap<u32, Wakeup>,
    waits: Vec<Wait>,
    /// For each call the end of its waits; they begin where those of the call before end.
    ends: Vec<usize>,
}

impl CallOrder {
    /// What a call waits for, besides those before it on its thread.
    pub fn waits(&self, call: usize) -> &[Wait] {
        let begin = call.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.waits[begin..self.ends[call]]
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Resource {
    Description(u32),
    File(FileIndex),
    Path(Text),
}

/// A call that others may wait for.
#[derive(Debug, Clone, Copy)]
struct CallPlace {
    thread: u32,
    calls: u32,
    begin_ns: u64,
    end_ns: u64,
}

impl CallPlace {
    fn waited_for(&self) -> Wait {
        Wait { thread: self.thread, calls: self.calls }
    }
}

/// Calls of one resource.
#[derive(Debug, Default)]
struct Uses {
    changes: Vec<CallPlace>,
    /// Of each thread the last two that only look.
    looks: HashMap<u32, [Option<CallPlace>; 2]>,
}

impl Uses {
    /// Those that were over when a call began that has to wait for them.
    fn over(&self, place: CallPlace, is_look: bool) -> impl Iterator<Item = CallPlace> {
        let looks = self.looks.values().filter(move |_| !is_look);
        let looks = looks.filter_map(move |two| two.iter().flatten().find(|other| is_over(other, &place)));
        self.changes.iter().filter(move |other| is_over(other, &place)).chain(looks).copied()
    }

    fn add(&mut self, place: CallPlace, is_look: bool) {
        if is_look {
            let two = self.looks.entry(place.thread).or_default();
            *two = [Some(place), two[0]];
            return;
        }
        // What was over before a change began that is over itself: that one waited for it.
        let over = self.changes.iter().filter(|other| is_over(other, &place));
        if let Some(latest_ns) = over.map(|other| other.begin_ns).max() {
            self.changes.retain(|other| other.end_ns > latest_ns || other.begin_ns == latest_ns);
            self.looks.retain(|_, two| two[0].is_some_and(|other| other.end_ns > latest_ns));
        }
        self.changes.push(place);
    }
}

/// Finds the order, call by call.
#[derive(Debug, Default)]
pub struct OrderFinder {
    order: CallOrder,
    threads: HashMap<u32, u32>,
    /// By the number of a thread that a fork began: the fork.
    forks: HashMap<u32, CallPlace>,
    /// Calls of each resource that a later one may have to wait for.
    used: HashMap<Resource, Uses>,
    /// Where a description was opened. Every call on it waits for that, even if the times say otherwise.
    opens: HashMap<u32, CallPlace>,
    /// By directory and thread: the last call on a name below it. Who makes, renames or removes the directory waits for those.
    inside: HashMap<Text, HashMap<u32, CallPlace>>,
    locks: LockWaits,
    /// By path: its directories, as far as calls name them.
    parents: HashMap<Text, Vec<Text>>,
    /// For each thread what it has waited for: by other thread how many calls.
    waited: Vec<HashMap<u32, u32>>,
    /// When each thread's last call ended.
    last_ns: Vec<u64>,
    /// What each thread did last and next to last: calls, and that it was woken.
    last_calls: Vec<[Option<CallPlace>; 2]>,
}

impl OrderFinder {
    /// Takes the next call; `files` are those that it is about, `texts` its names.
    pub fn push(&mut self, call: &RecordedCall, files: [Option<FileIndex>; 2], texts: &mut Texts) {
        let known = self.threads.get(&call.thread).copied();
        let thread = known.unwrap_or_else(|| self.new_thread(call.thread));
        let index = u32::try_from(self.order.ends.len()).unwrap_or(u32::MAX);
        let own = &mut self.order.threads[thread as usize];
        own.push(index);
        let calls = u32::try_from(own.len()).unwrap_or(u32::MAX);
        let place = CallPlace { thread, calls, begin_ns: call.begin_ns, end_ns: call.end_ns() };
        let mut before: Vec<CallPlace> = Vec::new();
        // What was there before the program began is told in front of the fork of the thread that uses it first.
        let is_done = !call.kind.is_no_call() || call.kind == CallKind::Woken;
        let is_event = is_done || call.kind == CallKind::Ended;
        let is_first = is_event && self.last_calls[thread as usize][0].is_none();
        if let Some(fork) = self.forks.get(&call.thread).copied().filter(|_| is_first) {
            self.order.begins[thread as usize] = Some(fork.waited_for());
            let last_ns = &mut self.last_ns[thread as usize];
            *last_ns = fork.end_ns.max(*last_ns);
            before.push(fork);
        }
        self.descriptions(call, place, &mut before);
        for file in files.into_iter().flatten() {
            self.use_one(Resource::File(file), place, is_look(call), &mut before);
        }
        for path in [call.path, call.second_path] {
            if path != Text::NONE && !(path == call.second_path && call.kind == CallKind::Symlink) {
                self.path(call, path, place, texts, &mut before);
            }
        }
        if call.kind == CallKind::Woken {
            if self.woken(index, call, place, before) {
                self.did(place);
            }
            return;
        }
        if call.kind == CallKind::Fork {
            self.forks.insert(u32::try_from(call.result).unwrap_or(0), place);
        }
        let lock = self.locks.pass(call, files[0], place);
        before.extend(lock.as_ref().map(|lock| lock.unlock));
        self.take(thread, place, before);
        if let Some(LockWait { unlock, since_ns, asked }) = lock {
            let own = &self.order.threads[thread as usize];
            own[asked.calls as usize..].iter().for_each(|row| self.order.ready_ns[*row as usize] = u64::MAX);
            let wakeup = Wakeup {
                waker: unlock.waited_for(),
                after_ns: call.end_ns().saturating_sub(unlock.end_ns),
                asked,
                asked_ns: unlock.end_ns.saturating_sub(since_ns),
                own_ns: 0,
            };
            self.order.wakeups.insert(index, wakeup);
        }
        if is_done {
            self.did(place);
        }
    }

    /// The whole order.
    pub fn finish(self) -> CallOrder {
        self.order
    }

    fn new_thread(&mut self, id: u32) -> u32 {
        let thread = u32::try_from(self.order.threads.len()).unwrap_or(u32::MAX);
        self.threads.insert(id, thread);
        self.order.threads.push(Vec::new());
        self.order.thread_ids.push(id);
        self.order.begins.push(None);
        self.last_ns.push(0);
        self.last_calls.push([None; 2]);
        self.waited.push(HashMap::new());
        thread
    }

    /// It waits for what its waker did last. Who waits for it waits for that, too. False where nobody knows what that was.
    fn woken(
        &mut self,
        index: u32,
        call: &RecordedCall,
        place: CallPlace,
        mut before: Vec<CallPlace>,
    ) -> bool {
        let free_ns = self.last_ns[place.thread as usize];
        let waker = u32::try_from(call.result).unwrap_or(0);
        let of_waker = self.threads.get(&waker).map_or([None; 2], |waker| self.last_calls[*waker as usize]);
        let last = of_waker.into_iter().flatten().find(|last| is_over(last, &place));
        let Some(last) = last.or_else(|| self.forks.get(&waker).copied()) else {
            // Nobody knows what it did: the time until then is think time of the thread.
            self.take(place.thread, place, before);
            self.last_ns[place.thread as usize] = free_ns;
            return false;
        };
        let own_ns = match call.bytes {
            0 => 0,
            waited_ns => call.begin_ns.saturating_sub(waited_ns).saturating_sub(free_ns),
        };
        before.push(last);
        self.take(place.thread, place, before);
        let after_ns = call.begin_ns.saturating_sub(last.end_ns);
        let (waker, asked) = (last.waited_for(), place.waited_for());
        self.order.wakeups.insert(index, Wakeup { waker, after_ns, asked, asked_ns: 0, own_ns });
        true
    }

    fn did(&mut self, place: CallPlace) {
        let last_calls = &mut self.last_calls[place.thread as usize];
        *last_calls = [Some(place), last_calls[0]];
    }

    fn take(&mut self, thread: u32, place: CallPlace, mut before: Vec<CallPlace>) {
        before.retain(|other| other.thread != thread);
        before.sort_unstable_by_key(|other| (other.thread, std::cmp::Reverse(other.calls)));
        before.dedup_by_key(|other| other.thread);
        let last_ns = &mut self.last_ns[thread as usize];
        self.order.ready_ns.push(*last_ns);
        *last_ns = place.end_ns.max(*last_ns);
        let waited = &mut self.waited[thread as usize];
        for other in before {
            let known = waited.entry(other.thread).or_default();
            if *known < other.calls {
                *known = other.calls;
                self.order.waits.push(other.waited_for());
            }
        }
        self.order.ends.push(self.order.waits.len());
    }

    fn descriptions(&mut self, call: &RecordedCall, place: CallPlace, before: &mut Vec<CallPlace>) {
        if call.description == 0 {
            return;
        }
        before.extend(self.opens.get(&call.description));
        if matches!(call.kind, CallKind::Open | CallKind::Held) {
            self.opens.insert(call.description, place);
        }
        self.use_one(Resource::Description(call.description), place, false, before);
    }

    fn path(
        &mut self,
        call: &RecordedCall,
        path: Text,
        place: CallPlace,
        texts: &mut Texts,
        before: &mut Vec<CallPlace>,
    ) {
        let is_look = is_look(call);
        self.use_one(Resource::Path(path), place, is_look, before);
        let parents = self.parents.entry(path).or_insert_with(|| parents(path, texts)).clone();
        for parent in &parents {
            let used = self.used.get(&Resource::Path(*parent));
            before.extend(used.into_iter().flat_map(|used| used.over(place, is_look)));
        }
        for parent in &parents {
            self.inside.entry(*parent).or_default().insert(place.thread, place);
        }
        if gives_or_takes_a_name(call) {
            let inside = self.inside.get(&path).into_iter().flat_map(HashMap::values);
            before.extend(inside.filter(|other| is_over(other, &place)));
        }
    }

    /// Waits for the calls on a resource that were over when this one began, and is the next of them.
    fn use_one(&mut self, resource: Resource, place: CallPlace, is_look: bool, before: &mut Vec<CallPlace>) {
        let used = self.used.entry(resource).or_default();
        before.extend(used.over(place, is_look));
        used.add(place, is_look);
    }
}

/// It leaves files and names as they are, and makes nothing durable.
fn is_look(call: &RecordedCall) -> bool {
    use CallKind::{Access, Close, Dup, Fadvise, Fstat, Lseek, Lstat, Open, Present, Released, Stat};
    call.kind.is_read()
        || matches!(
            call.kind,
            Stat | Lstat | Fstat | Access | Close | Dup | Lseek | Fadvise | Present | Released
        )
        || (call.kind == Open && call.flags & (O_CREAT | O_TRUNC) == 0)
}

/// A name comes or goes. What earlier calls below it found, or did not find, they would not find afterwards.
fn gives_or_takes_a_name(call: &RecordedCall) -> bool {
    use CallKind::{Link, Mkdir, Open, Rename, Rmdir, Symlink, Unlink};
    matches!(call.kind, Link | Mkdir | Rename | Rmdir | Symlink | Unlink)
        || (call.kind == Open && call.flags & O_CREAT != 0)
}

fn is_over(other: &CallPlace, place: &CallPlace) -> bool {
    other.end_ns <= place.begin_ns
}

/// Of a time as large a part as the one is of the other, all of it at most.
fn part_of(time_ns: u64, one_ns: u64, other_ns: u64) -> u64 {
    let part = u128::from(time_ns) * u128::from(one_ns.min(other_ns)) / u128::from(other_ns.max(1));
    u64::try_from(part).unwrap_or(time_ns)
}

/// The directories above a path, the next one first, without the root.
fn parents(path: Text, texts: &mut Texts) -> Vec<Text> {
    let path = texts.get(path).to_owned();
    let mut above = path.as_str();
    let mut found = Vec::new();
    while let Some((parent, _)) = above.rsplit_once('/').filter(|(parent, _)| !parent.is_empty()) {
        found.push(texts.keep(parent));
        above = parent;
    }
    found
}
