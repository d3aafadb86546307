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
    /// When the call that made it returned.
    call_ns: Option<u64>,
    /// Which call made it is not known.
    doubtful: bool,
}

/// What one look saw of a file: names that it lost and got, whether by a rename, and who changed them by which calls.
#[derive(Debug, Default)]
struct OfFile<'a> {
    lost: FxHashSet<(&'a str, bool)>,
    got: FxHashSet<(&'a str, bool)>,
    who: FxHashSet<Who>,
}

impl OfFile<'_> {
    /// True where a rename took or gave a name that it also got or lost. Where only link and unlink did, their number shows it.
    fn has_a_name_again(&self) -> bool {
        let is_got = |(name, renamed): &(&str, bool)| {
            self.got.contains(&(*name, true)) || *renamed && self.got.contains(&(*name, false))
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
    /// The watch saw a change.
    pub fn push(&mut self, look: Look, kind: NameChange, seen: Seen) {
        self.count += 1;
        if seen.before.is_some() {
            self.renames.insert(self.count, seen.clone());
        }
        let waiting = self.waiting.entry(seen.change.thread).or_default();
        let second = waiting.back().is_some_and(|last| !last.second && last.seen.is_exchanged_with(&seen));
        let (number, call_ns, doubtful) = (self.count, None, false);
        waiting.push_back(Waiting { look, number, kind, seen, second, call_ns, doubtful });
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
                if returned > count || is_merged {
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
        let mut of_files: FxHashMap<(Look, DeviceNumber, u64, u32), OfFile<'_>> = FxHashMap::default();
        let of_threads =
            self.waiting.iter().flat_map(|(thread, all)| all.iter().map(move |one| (*thread, one)));
        for (thread, one) in of_threads.filter(|(_, one)| one.call_ns.is_none()) {
            let Seen { device, change, path, before } = &one.seen;
            let file = of_files.entry((one.look, *device, change.inode, change.generation)).or_default();
            file.who.insert((thread, one.kind));
            let is_rename = one.kind == NameChange::Renamed;
            let lost = if is_rename { before.as_ref() } else { Some(path).filter(|_| change.deleted) };
            let got = Some(path).filter(|_| !change.deleted);
            file.lost.extend(lost.map(|name| (name.as_str(), is_rename)));
            file.got.extend(got.map(|name| (name.as_str(), is_rename)));
        }
        let again = of_files.into_iter().filter(|(_, file)| file.has_a_name_again());
        again.flat_map(|((look, ..), file)| file.who.into_iter().map(move |who| (who, look))).collect()
    }

    /// True where the file of this change gets a further name by one that waits.
    pub fn is_adding(&self, seen: &Seen) -> bool {
        let file = |seen: &Seen| (seen.device, seen.change.inode, seen.change.generation);
        self.waiting
            .values()
            .flatten()
            .any(|one| one.kind == NameChange::Added && file(&one.seen) == file(seen))
    }

    /// True where a change that waits gave or took this name of a file.
    pub fn has_name(&self, file: FileKey, name: &str) -> bool {
        let is_it = |path: &str| path.trim_end_matches('/') == name.trim_end_matches('/');
        self.waiting.values().flatten().filter(|one| !one.doubtful).any(|one| {
            let Seen { device, change, path, before } = &one.seen;
            (*device, change.inode, change.generation) == (file.device, file.inode, file.generation)
                && (is_it(path) || before.as_deref().is_some_and(is_it))
        })
    }

    /// Whether a file has a name after what waits, perhaps; nothing where none of that says so.
    pub fn has_now(&self, file: FileKey, name: &str) -> Option<bool> {
        let of_file = self.waiting.values().flatten().filter(|one| {
            let Seen { device, change, .. } = &one.seen;
            (*device, change.inode, change.generation) == (file.device, file.inode, file.generation)
        });
        let newest = of_file
            .filter(|one| one.seen.path == name || one.seen.before.as_deref() == Some(name))
            .max_by_key(|one| one.number)?;
        Some(newest.doubtful || newest.seen.path == name && newest.kind != NameChange::Removed)
    }

    /// How many changes there were.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Nothing that waits of a file is to be used. Returns when the first of it happened that was no doubt before, at the earliest, and
    /// what it was called before and after each, in order.
    pub fn doubt(&mut self, file: FileKey) -> (u64, Vec<String>) {
        let (mut from_ns, mut names) = (u64::MAX, BTreeMap::new());
        for one in self.waiting.values_mut().flatten() {
            let Seen { device, change, path, before } = &one.seen;
            if (*device, change.inode, change.generation) == (file.device, file.inode, file.generation) {
                self.renames.remove(&one.number);
                if !std::mem::replace(&mut one.doubtful, true) {
                    from_ns = from_ns.min(one.look.since_ns);
                }
                names.insert(one.number, before.iter().chain([path]).cloned().collect::<Vec<_>>());
            }
        }
        (from_ns, names.into_values().flatten().collect())
    }

    /// What a thread's call changed that returned at this time: one change, and the second of an exchange.
    pub fn of_call(&mut self, thread: u32, kind: NameChange, time_ns: u64) -> Vec<Seen> {
        let Some(waiting) = self.waiting.get_mut(&thread) else { return Vec::new() };
        let is_of_it = |one: &Waiting| (one.kind, one.call_ns) == (kind, Some(time_ns));
        let mut found = Vec::new();
        if let Some(place) = waiting.iter().position(is_of_it) {
            while waiting.get(place).is_some_and(is_of_it) {
                found.extend(waiting.remove(place));
            }
        }
        if waiting.is_empty() {
            self.waiting.remove(&thread);
        }
        for one in &found {
            self.renames.remove(&one.number);
        }
        found.into_iter().filter(|one| !one.doubtful).map(|one| one.seen).collect()
    }

    /// Those seen until `until_ns`, in order, with the time: no record reports them (io_uring, for example).
    pub fn overdue(&mut self, until_ns: u64) -> Vec<(u64, Seen)> {
        let mut overdue = Vec::new();
        self.waiting.retain(|_, waiting| {
            let (due, left): (VecDeque<Waiting>, VecDeque<Waiting>) = waiting
                .drain(..)
                .partition(|one| one.look.ended_ns.max(one.call_ns.unwrap_or(0)) <= until_ns);
            overdue.extend(due);
            *waiting = left;
            !waiting.is_empty()
        });
        overdue.sort_by_key(|one| one.number);
        for one in &overdue {
            self.renames.remove(&one.number);
        }
        overdue.retain(|one| !one.doubtful);
        overdue.into_iter().map(|one| (one.look.ended_ns, one.seen)).collect()
    }

    /// What a file was called before all that waits, by what it is called now.
    pub fn name_then(&self, (device, inode): (DeviceNumber, u64), name: String) -> String {
        let newest_first = self.renames.values().rev().filter(|seen| seen.device == device);
        file_names::name_before(name, inode, newest_first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::files::file_watch::Change;

    fn seen(thread: u32, inode: u64, deleted: bool) -> Seen {
        let parent = (1, Vec::new());
        let name = format!("{inode}");
        let path = format!("/{inode}");
        let (generation, directory, created, before) = (1, false, false, None);
        let handle = (1, Vec::new());
        let change =
            Change { inode, generation, handle, directory, created, deleted, thread, parent, name, before };
        Seen { device: DeviceNumber(8), change, path, before: None }
    }

    use NameChange::{Added, Removed, Renamed};

    /// A look that saw what happened between these times.
    fn look(since_ns: u64, began_ns: u64) -> Look {
        Look { since_ns, began_ns, ended_ns: began_ns + 1 }
    }

    /// All calls that returned until `looked_ns` are noted. The names of those changes of which it is not known which call made them.
    fn unclear(changes: &mut Changes, looked_ns: u64) -> Vec<String> {
        changes.unclear(looked_ns).into_iter().map(|(_, _, seen)| seen.path).collect()
    }

    fn inodes(seen: &[Seen]) -> Vec<u64> {
        seen.iter().map(|seen| seen.change.inode).collect()
    }

    #[test]
    fn a_call_made_the_change_that_was_seen_when_it_returned() {
        let mut changes = Changes::default();
        for (look, kind, seen) in [
            (look(0, 10), Removed, seen(1, 5, true)),
            (look(0, 10), Renamed, seen(1, 6, false)),
            (look(10, 20), Removed, seen(2, 7, true)),
            (look(10, 30), Removed, seen(1, 8, true)),
        ] {
            changes.push(look, kind, seen);
        }
        for (thread, kind, time_ns) in [(1, Removed, 31), (1, Removed, 8), (1, Renamed, 5), (3, Removed, 7)] {
            changes.note_call(thread, kind, time_ns);
        }
        assert!(unclear(&mut changes, 30).is_empty());
        let mut of = |thread, kind, time_ns| inodes(&changes.of_call(thread, kind, time_ns));
        assert_eq!([of(1, Renamed, 5), of(1, Renamed, 6), of(3, Removed, 7)], [vec![6], vec![], vec![]]);
        assert_eq!(of(1, Removed, 8), [5]);
        assert_eq!(of(1, Removed, 31), [8], "it changed the name, and returned later");
        assert_eq!(
            changes.overdue(21).iter().map(|(time, seen)| (*time, seen.change.inode)).collect::<Vec<_>>(),
            [(21, 7)]
        );
        assert!(changes.waiting.is_empty() && changes.calls.is_empty(), "a capture may last for days");
    }

    #[test]
    fn a_call_that_returns_after_the_next_look_has_its_change_still() {
        let mut changes = Changes::default();
        changes.push(look(0, 10), Removed, seen(1, 5, true));
        assert!(unclear(&mut changes, 10).is_empty());
        changes.note_call(1, Removed, 1_000_000);
        assert!(unclear(&mut changes, 2_000_000).is_empty());
        assert_eq!(inodes(&changes.of_call(1, Removed, 1_000_000)), [5]);
    }

    fn renamed(inode: u64, before: &str, path: &str) -> Seen {
        Seen { path: path.to_owned(), before: Some(before.to_owned()), ..seen(1, inode, false) }
    }

    #[test]
    fn one_call_gives_two_files_each_others_names() {
        let exchanged = [renamed(5, "/a", "/b"), renamed(6, "/b", "/a")];
        let mut changes = Changes::default();
        // There and back again is two calls.
        for one in exchanged.iter().chain(&[renamed(7, "/c", "/d"), renamed(7, "/d", "/c")]) {
            changes.push(look(0, 10), Renamed, one.clone());
        }
        (1..4).for_each(|time_ns| changes.note_call(1, Renamed, time_ns));
        assert!(unclear(&mut changes, 10).is_empty(), "three calls, and three changes");
        let counts: Vec<usize> = (1..5).map(|time_ns| changes.of_call(1, Renamed, time_ns).len()).collect();
        assert_eq!(counts, [2, 1, 1, 0]);
    }

    #[test]
    fn more_calls_than_changes_in_a_look_are_unclear() {
        let mut changes = Changes::default();
        changes.push(look(0, 10), Renamed, renamed(5, "/a", "/b"));
        changes.push(look(0, 10), Removed, seen(1, 6, true));
        changes.push(look(10, 20), Renamed, renamed(5, "/b", "/c"));
        // One of the first two was on another filesystem.
        for (kind, time_ns) in [(Removed, 3), (Renamed, 4), (Renamed, 5), (Renamed, 15)] {
            changes.note_call(1, kind, time_ns);
        }
        assert_eq!(unclear(&mut changes, 20), ["/b"]);
        let file = FileKey { device: DeviceNumber(8), inode: 5, generation: 1 };
        let names = ["/a", "/b", "/b", "/c"].map(str::to_owned);
        assert!(changes.has_name(file, "/b") && !changes.has_name(file, "/d"));
        assert_eq!(changes.doubt(file), (0, names.to_vec()));
        assert_eq!(changes.doubt(file).0, u64::MAX, "known to be in doubt");
        assert!(unclear(&mut changes, 20).is_empty(), "told once");
        assert_eq!(changes.name_then((DeviceNumber(8), 5), "/a".to_owned()), "/a");
        assert!(changes.of_call(1, Renamed, 15).is_empty());
        assert_eq!(changes.of_call(1, Removed, 3).len(), 1, "another file's are certain");
        changes.overdue(21);
        assert!(changes.waiting.is_empty());
    }

    #[test]
    fn a_call_on_another_filesystem_before_a_look_is_none_of_it() {
        let mut changes = Changes::default();
        changes.push(look(10, 20), Renamed, renamed(5, "/a", "/b"));
        (8..13).step_by(4).for_each(|time_ns| changes.note_call(1, Renamed, time_ns));
        assert!(unclear(&mut changes, 20).is_empty());
        assert_eq!(changes.of_call(1, Renamed, 12).len(), 1);
    }

    #[test]
    fn a_file_that_gets_a_name_again_needs_as_many_calls_as_changes() {
        let there_and_back = |calls_ns: &[u64]| {
            let mut changes = Changes::default();
            changes.push(look(0, 10), Renamed, renamed(5, "/a", "/b"));
            changes.push(look(0, 10), Renamed, renamed(5, "/b", "/a"));
            calls_ns.iter().for_each(|time_ns| changes.note_call(1, Renamed, *time_ns));
            unclear(&mut changes, 10)
        };
        assert!(there_and_back(&[1, 2]).is_empty());
        // To b again, which is the first change once more.
        assert_eq!(there_and_back(&[1, 2, 3]), ["/b", "/a"]);
        assert_eq!(there_and_back(&[1, 2, 12]), ["/b", "/a"], "it changed the name, and had not returned");
        assert_eq!(there_and_back(&[1, 12]), ["/b", "/a"], "nobody knows whether there is a third");
        assert!(there_and_back(&[1, 2, RETURNING_NS * 2]).is_empty(), "much later");
    }

    #[test]
    fn the_newest_change_of_a_name_says_whether_the_file_has_it() {
        let mut changes = Changes::default();
        let file = FileKey { device: DeviceNumber(8), inode: 5, generation: 1 };
        let has = |changes: &Changes, name| changes.has_now(file, name);
        changes.push(look(0, 10), Renamed, renamed(5, "/a", "/b"));
        assert_eq!(
            [has(&changes, "/a"), has(&changes, "/b"), has(&changes, "/c")],
            [Some(false), Some(true), None]
        );
        let named = |kind| (kind, Seen { path: "/c".to_owned(), ..seen(1, 5, kind == Removed) });
        for (kind, seen) in [named(Added), named(Removed)] {
            changes.push(look(10, 20), kind, seen.clone());
            assert_eq!(has(&changes, "/c"), Some(kind == Added));
        }
        changes.doubt(file);
        assert_eq!(has(&changes, "/c"), Some(true), "perhaps");
    }

    #[test]
    fn changes_of_which_no_record_tells_are_overdue() {
        let mut changes = Changes::default();
        changes.push(look(0, 10), Added, seen(1, 5, false));
        assert!(changes.is_adding(&seen(2, 5, true)) && !changes.is_adding(&seen(1, 6, false)));
        assert!(unclear(&mut changes, 10).is_empty());
        assert_eq!(changes.overdue(11).len(), 1);
        changes.note_call(1, Added, 15);
        changes.push(look(10, 20), Added, seen(1, 6, false));
        assert!(unclear(&mut changes, 20).is_empty());
        assert_eq!(inodes(&changes.of_call(1, Added, 15)), [6]);
    }

    #[test]
    fn a_name_that_is_asked_for_now_is_that_from_before_what_waits() {
        let moved = |inode, directory, before: &str, path: &str| {
            let one = seen(1, inode, false);
            let change = Change { directory, ..one.change };
            Seen { change, path: path.to_owned(), before: Some(before.to_owned()), ..one }
        };
        let mut changes = Changes::default();
        let seen = [
            moved(5, true, "/p", "/q"),
            moved(6, true, "/new", "/p"),
            moved(7, false, "/q/a", "/q/b"),
            // Each other's.
            moved(5, true, "/q", "/p"),
            moved(6, true, "/p", "/q"),
        ];
        for (nth, one) in (0..).zip(seen) {
            changes.push(look(nth * 10, nth * 10 + 10), Renamed, one);
        }
        let then = |changes: &Changes, inode, name: &str| {
            changes.name_then((DeviceNumber(8), inode), name.to_owned())
        };
        assert_eq!(then(&changes, 7, "/p/b"), "/p/a");
        assert_eq!(then(&changes, 8, "/p/b"), "/p/b", "another file has the name now");
        assert_eq!(then(&changes, 8, "/q/c"), "/new/c");
        assert_eq!(then(&changes, 5, "/p/"), "/p/");
        assert_eq!(then(&changes, 9, "/pp"), "/pp");
        let other = (DeviceNumber(9), 8);
        assert_eq!(changes.name_then(other, "/q/c".to_owned()), "/q/c", "on another filesystem");
        changes.note_call(1, Renamed, 5);
        assert!(unclear(&mut changes, 50).is_empty());
        changes.of_call(1, Renamed, 5);
        assert_eq!(then(&changes, 8, "/p/b"), "/q/b", "the first has happened");
        changes.overdue(51);
        assert_eq!(then(&changes, 8, "/q/c"), "/q/c");
        assert!(changes.renames.is_empty());
    }
}
