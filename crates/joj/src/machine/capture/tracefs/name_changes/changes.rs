//! When files got and lost their names.
//!
//! The watch of names knows the file, the name and the thread, but no time. A record of the thread's call has the time, and neither
//! file nor name. One of each belongs together, in the order in which the thread made its calls.
//!
//! The watch merges equal changes that it was not asked about yet, and a call does not say on which filesystem it was. So more calls of a
//! thread may have returned before a look than it saw changes. Which call made which change is not known then, and files with such
//! changes are called nothing for that time.

use std::collections::{BTreeMap, VecDeque};

use joj_analysis::trace::event::{DeviceNumber, FileKey};
use joj_analysis::trace::ftrace::record::NameChange;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::machine::capture::tracefs::name_changes::file_names::{self, Seen};
use crate::machine::capture::tracefs::name_changes::watcher::Look;
use crate::machine::files::file_handle::Handle;

/// A call that returns so soon after a look may have made its change before it.
const RETURNING_NS: u64 = 1_000_000;

/// A thread, and what its calls do.
type Who = (u32, NameChange);

/// A change whose call no record reported yet.
#[derive(Debug)]
struct Waiting {
    look: Look,
    number: u64,
    kind: NameChange,
    seen: Seen,
    /// The second change of a call.
    second: bool,
    /// A name that came and went: the watch has the creation's place for both.
    late: bool,
    /// When the call that made it returned.
    call_ns: Option<u64>,
    /// Which call made it is not known.
    doubtful: bool,
}

/// A name in a directory, and whether a rename gave or took it.
type NameIn<'a> = (&'a Handle, &'a str, bool);

/// What one look saw of a file: names that it lost and got, and who changed them by which calls.
#[derive(Debug, Default)]
struct OfFile<'a> {
    lost: FxHashSet<NameIn<'a>>,
    got: FxHashSet<NameIn<'a>>,
    who: FxHashSet<Who>,
}

impl OfFile<'_> {
    /// True where a rename took or gave a name that it also got or lost. Where only link and unlink did, their number shows it.
    fn has_a_name_again(&self) -> bool {
        let is_got = |(parent, name, renamed): &NameIn<'_>| {
            self.got.contains(&(*parent, *name, true))
                || *renamed && self.got.contains(&(*parent, *name, false))
        };
        self.lost.iter().any(is_got)
    }
}

/// Changes whose call no record reported yet.
#[derive(Debug, Default)]
pub struct Changes {
    /// By thread.
    waiting: BTreeMap<u32, VecDeque<Waiting>>,
    /// Those of them that gave a file another name, by number: in order.
    renames: BTreeMap<u64, Seen>,
    count: u64,
    /// When calls returned that made none of the changes that were looked at, in order.
    calls: FxHashMap<Who, VecDeque<u64>>,
}

impl Changes {
    /// The watch saw a change. `late`: a name's removal in one with its creation, which may have happened after what the watch saw next.
    pub fn push(&mut self, look: Look, kind: NameChange, seen: Seen, late: bool) {
        self.count += 1;
        if seen.before.is_some() {
            self.renames.insert(self.count, seen.clone());
        }
        let waiting = self.waiting.entry(seen.change.thread).or_default();
        let second = waiting.back().is_some_and(|last| !last.second && last.seen.is_exchanged_with(&seen));
        let (number, call_ns, doubtful) = (self.count, None, false);
        waiting.push_back(Waiting { look, number, kind, seen, second, late, call_ns, doubtful });
    }

    /// A record says that a thread's call returned at this time.
    pub fn note_call(&mut self, thread: u32, kind: NameChange, time_ns: u64) {
        let calls = self.calls.entry((thread, kind)).or_default();
        // Those of two processors are not read in order.
        let place = calls.partition_point(|before| *before <= time_ns);
        calls.insert(place, time_ns);
    }

    /// Finds the calls that made the changes. Returns those of which that is not known, and when each happened at the earliest. To be asked
    /// when all calls are noted that returned until the last look, which began at `looked_ns`.
    pub fn unclear(&mut self, looked_ns: u64) -> Vec<(NameChange, u64, Seen)> {
        let again = self.perhaps_merged();
        let added = self.waiting.values().flatten().filter(|one| one.kind == NameChange::Added);
        let getting: FxHashSet<FileKey> = added.map(|one| one.seen.file()).collect();
        let mut unclear = Vec::new();
        for (thread, waiting) in &mut self.waiting {
            let mut of_looks: BTreeMap<(NameChange, Look), Vec<&mut Waiting>> = BTreeMap::new();
            for one in waiting.iter_mut().filter(|one| one.call_ns.is_none()) {
                of_looks.entry((one.kind, one.look)).or_default().push(one);
            }
            for ((kind, look), changes) in of_looks {
                let who = (*thread, kind);
                let calls = self.calls.entry(who).or_default();
                // What they changed was seen by an earlier look, if it was on a watched filesystem at all.
                calls.drain(..calls.partition_point(|call_ns| *call_ns <= look.since_ns));
                let count = changes.iter().filter(|one| !one.second).count();
                let returned = calls.partition_point(|call_ns| *call_ns <= look.began_ns);
                let returning = calls.partition_point(|call_ns| *call_ns <= look.ended_ns + RETURNING_NS);
                let is_merged = again.contains(&(who, look)) && (returned, returned) != (count, returning);
                // Which of them was first is not known, and one of their files has another name.
                let is_late = changes.len() > 1
                    && changes.iter().any(|one| one.late)
                    && changes.iter().any(|one| getting.contains(&one.seen.file()));
                if returned > count || is_merged || is_late {
                    calls.drain(..returned);
                    for one in changes {
                        one.call_ns = Some(look.ended_ns);
                        if !one.doubtful {
                            unclear.push((kind, look.since_ns, one.seen.clone()));
                        }
                    }
                    continue;
                }
                let mut call_ns = None;
                for one in changes {
                    if !one.second {
                        call_ns = calls.pop_front();
                    }
                    one.call_ns = call_ns;
                }
            }
        }
        self.calls.retain(|_, calls| {
            calls.drain(..calls.partition_point(|call_ns| *call_ns <= looked_ns));
            !calls.is_empty()
        });
        unclear
    }

    /// Of which looks whose changes of what kind may be fewer than the calls that made them. Two renames are equal only where the file has
    /// lost a name and got it again in between.
    fn perhaps_merged(&self) -> FxHashSet<(Who, Look)> {
        let mut of_files: FxHashMap<(Look, FileKey), OfFile<'_>> = FxHashMap::default();
        let of_threads =
            self.waiting.iter().flat_map(|(thread, all)| all.iter().map(move |one| (*thread, one)));
        for (thread, one) in of_threads.filter(|(_, one)| one.call_ns.is_none()) {
            let change = &one.seen.change;
            let file = of_files.entry((one.look, one.seen.file())).or_default();
            file.who.insert((thread, one.kind));
            let is_rename = one.kind == NameChange::Renamed;
            let now = (&change.parent, change.name.as_str(), is_rename);
            let before = change.before.as_ref().filter(|_| is_rename);
            file.lost.extend(before.map(|(parent, name)| (parent, name.as_str(), true)));
            if change.deleted {
                file.lost.insert(now)
            } else {
                file.got.insert(now)
            };
        }
        let again = of_files.into_iter().filter(|(_, file)| file.has_a_name_again());
        again.flat_map(|((look, ..), file)| file.who.into_iter().map(move |who| (who, look))).collect()
    }

    /// True where the file of this change gets a further name by one that waits.
    pub fn is_adding(&self, seen: &Seen) -> bool {
        let mut added = self.waiting.values().flatten().filter(|one| one.kind == NameChange::Added);
        added.any(|one| one.seen.file() == seen.file())
    }

    /// True where a change that waits gave or took this name of a file.
    pub fn has_name(&self, file: FileKey, name: &str) -> bool {
        let is_it = |path: &str| path.trim_end_matches('/') == name.trim_end_matches('/');
        self.waiting.values().flatten().filter(|one| !one.doubtful).any(|one| {
            let Seen { path, before, .. } = &one.seen;
            one.seen.file() == file && (is_it(path) || before.as_deref().is_some_and(is_it))
        })
    }

    /// Whether a file has a name after what waits, perhaps; nothing where none of that says so.
    pub fn has_now(&self, file: FileKey, name: &str) -> Option<bool> {
        let of_file = self.waiting.values().flatten().filter(|one| one.seen.file() == file);
        let newest = of_file
            .filter(|one| one.seen.path == name || one.seen.before.as_deref() == Some(name))
            .max_by_key(|one| one.number)?;
        Some(newest.doubtful || newest.seen.path == name && newest.kind != NameChange::Removed)
    }

    /// How many changes there were.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// True where a directory's other name waits, and with it those of files below.
    pub fn has_move(&self, device: DeviceNumber) -> bool {
        self.renames.values().any(|seen| seen.device == device && seen.change.directory)
    }

    /// True where a change of this file waits.
    pub fn has(&self, file: FileKey) -> bool {
        self.waiting.values().flatten().any(|one| one.seen.file() == file)
    }

    /// What waits on a filesystem and is in no doubt, in order, and when it happened at the earliest.
    pub fn of_filesystem(&self, device: DeviceNumber) -> Vec<(u64, Seen)> {
        let of_it = |one: &&Waiting| one.seen.device == device && !one.doubtful;
        let mut found: Vec<&Waiting> = self.waiting.values().flatten().filter(of_it).collect();
        found.sort_by_key(|one| one.number);
        found.into_iter().map(|one| (one.look.since_ns, one.seen.clone())).collect()
    }

    /// Nothing that waits of a file is to be used. Of what was in no doubt before: when the first of it happened, at the earliest, and what
    /// the file was called before and after each, in order.
    pub fn doubt(&mut self, file: FileKey) -> (u64, Vec<String>) {
        let (mut from_ns, mut names) = (u64::MAX, BTreeMap::new());
        let of_file = self.waiting.values_mut().flatten().filter(|one| one.seen.file() == file);
        for one in of_file.filter(|one| !one.doubtful) {
            one.doubtful = true;
            self.renames.remove(&one.number);
            from_ns = from_ns.min(one.look.since_ns);
            let Seen { path, before, .. } = &one.seen;
            names.insert(one.number, before.iter().chain([path]).cloned().collect::<Vec<_>>());
        }
        (from_ns, names.into_values().flatten().collect())
    }

    /// What has happened when a thread's call returned at this time, in order, and of each call the one change or both of an exchange.
    /// Whatever the watch saw before this call's change on that filesystem has happened, too, even where its own call returned later.
    pub fn of_call(&mut self, thread: u32, kind: NameChange, time_ns: u64) -> Vec<Vec<Seen>> {
        let Some(waiting) = self.waiting.get(&thread) else { return Vec::new() };
        let is_of_it = |one: &&Waiting| (one.kind, one.call_ns) == (kind, Some(time_ns));
        // Thousands may wait behind them.
        let until_then = waiting.iter().take_while(|one| one.look.since_ns <= time_ns);
        let Some(last) = until_then.skip_while(|one| !is_of_it(one)).take_while(is_of_it).last() else {
            return Vec::new();
        };
        let (device, last) = (last.seen.device, last.number);
        let is_before = |one: &Waiting| {
            one.number < last && (!one.late || one.call_ns.is_some_and(|call_ns| call_ns <= time_ns))
        };
        let happened =
            self.take(last, |one| one.seen.device == device && (one.number == last || is_before(one)));
        happened.into_iter().map(|(_, of_one_call)| of_one_call).collect()
    }

    /// Those seen until `until_ns`, as [`Changes::of_call`], with the time: no record reports them (io_uring, for example).
    pub fn overdue(&mut self, until_ns: u64) -> Vec<(u64, Vec<Seen>)> {
        let is_due = |one: &Waiting| one.look.ended_ns.max(one.call_ns.unwrap_or(0)) <= until_ns;
        let mut last: FxHashMap<DeviceNumber, u64> = FxHashMap::default();
        for one in self.waiting.values().flatten().filter(|one| is_due(one)) {
            let last = last.entry(one.seen.device).or_default();
            *last = one.number.max(*last);
        }
        let Some(newest) = last.values().copied().max() else { return Vec::new() };
        let is_before = |one: &Waiting| last.get(&one.seen.device).is_some_and(|last| one.number < *last);
        self.take(newest, |one| is_due(one) || !one.late && is_before(one))
    }

    /// Those that have happened up to the number `last`, in order, with the time of their look; they wait no more.
    fn take(&mut self, last: u64, has_happened: impl Fn(&Waiting) -> bool) -> Vec<(u64, Vec<Seen>)> {
        let mut happened = Vec::new();
        self.waiting.retain(|_, waiting| {
            let first = waiting.partition_point(|one| one.number <= last);
            let (taken, left): (Vec<Waiting>, Vec<Waiting>) = waiting.drain(..first).partition(&has_happened);
            happened.extend(taken);
            left.into_iter().rev().for_each(|one| waiting.push_front(one));
            !waiting.is_empty()
        });
        happened.sort_by_key(|one| one.number);
        for one in &happened {
            self.renames.remove(&one.number);
        }
        let mut of_calls: Vec<(u64, Vec<Seen>)> = Vec::new();
        for one in happened.into_iter().filter(|one| !one.doubtful) {
            match of_calls.last_mut() {
                Some((_, first)) if one.second && first[0].is_exchanged_with(&one.seen) => {
                    first.push(one.seen)
                }
                _ => of_calls.push((one.look.ended_ns, vec![one.seen])),
            }
        }
        of_calls
    }

    /// What a file was called before all that waits, by what it is called now.
    pub fn name_then(&self, (device, inode): (DeviceNumber, u64), name: String) -> String {
        let newest_first = self.renames.values().rev().filter(|seen| seen.device == device);
        file_names::name_before(name, inode, newest_first)
    }
}

#[cfg(test)]
#[path = "../tests/changes.rs"]
mod tests;
