//! When files got and lost their names, and which file was created under a number.
//!
//! The watch of names knows the file, the name and the thread, but no time. A record of the thread's call has the time, and neither
//! file nor name. One of each belongs together, in the order in which the thread made its calls.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use joj_analysis::trace::event::DeviceNumber;
use rustc_hash::FxHashMap;

use crate::machine::capture::tracefs::file_names::{self, Seen};

/// Changes whose call no record told yet.
#[derive(Debug, Default)]
pub struct Changes {
    /// By thread, with the time of the look and a number.
    waiting: BTreeMap<u32, VecDeque<(u64, u64, Seen)>>,
    /// Those of them that gave a file another name, by number: in order.
    renames: BTreeMap<u64, Seen>,
    count: u64,
}

impl Changes {
    /// The watch saw a change, at `seen_ns` or before.
    pub fn push(&mut self, seen_ns: u64, seen: Seen) {
        self.count += 1;
        if seen.before.is_some() {
            self.renames.insert(self.count, seen.clone());
        }
        self.waiting.entry(seen.change.thread).or_default().push_back((seen_ns, self.count, seen));
    }

    /// What a thread's call changed: the oldest change of its kind, and the second of an exchange.
    pub fn of_call(&mut self, thread: u32, removed: bool) -> Vec<Seen> {
        let Some(waiting) = self.waiting.get_mut(&thread) else { return Vec::new() };
        let is_of_kind = |(_, _, seen): &(u64, u64, Seen)| seen.change.deleted == removed;
        let mut found: Vec<(u64, u64, Seen)> = Vec::new();
        let first = waiting.iter().position(is_of_kind);
        found.extend(first.and_then(|place| waiting.remove(place)));
        let second = waiting.iter().position(is_of_kind);
        if let (Some((_, _, one)), Some(place)) = (found.first(), second)
            && waiting.get(place).is_some_and(|(_, _, other)| one.is_exchanged_with(other))
        {
            found.extend(waiting.remove(place));
        }
        if waiting.is_empty() {
            self.waiting.remove(&thread);
        }
        for (_, number, _) in &found {
            self.renames.remove(number);
        }
        found.into_iter().map(|(.., seen)| seen).collect()
    }

    /// Those seen until `until_ns`, in order, with the time: no record tells of them (io_uring, for example).
    pub fn overdue(&mut self, until_ns: u64) -> Vec<(u64, Seen)> {
        let mut overdue = Vec::new();
        self.waiting.retain(|_, waiting| {
            let count = waiting.partition_point(|(seen_ns, ..)| *seen_ns <= until_ns);
            overdue.extend(waiting.drain(..count));
            !waiting.is_empty()
        });
        overdue.sort_by_key(|(_, number, _)| *number);
        for (_, number, _) in &overdue {
            self.renames.remove(number);
        }
        overdue.into_iter().map(|(seen_ns, _, seen)| (seen_ns, seen)).collect()
    }

    /// What a file was called before all that waits, by what it is called now.
    pub fn name_then(&self, (device, inode): (DeviceNumber, u64), name: String) -> String {
        let newest_first = self.renames.values().rev().filter(|seen| seen.device == device);
        file_names::name_before(name, inode, newest_first)
    }
}

/// Only a file that is created so soon after it got its number is the one that got it. Later it is another one with that number, and the
/// first had no name.
const CREATING_NS: u64 = 100_000_000;

/// What was seen of one number, and between which times, in order.
type OfNumber<T> = VecDeque<(Range<u64>, T)>;

/// Files that the watch saw being created, by filesystem and number, with the times between which that was. In order, as a number may be
/// given to one file after another. The records that say when are without names.
#[derive(Debug)]
pub struct Creations<T> {
    seen: FxHashMap<(DeviceNumber, u64), OfNumber<T>>,
}

impl<T> Default for Creations<T> {
    fn default() -> Self {
        Self { seen: FxHashMap::default() }
    }
}

impl<T> Creations<T> {
    /// The watch saw one that was created between these times.
    pub fn push(&mut self, key: (DeviceNumber, u64), between_ns: Range<u64>, file: T) {
        self.seen.entry(key).or_default().push_back((between_ns, file));
    }

    /// Those of a number, in order.
    pub fn of(&mut self, key: (DeviceNumber, u64)) -> impl Iterator<Item = &mut T> {
        self.seen.get_mut(&key).into_iter().flatten().map(|(_, file)| file)
    }

    /// True where the file is known that was created at this time.
    pub fn has(&mut self, key: (DeviceNumber, u64), time_ns: u64) -> bool {
        let Some(seen) = self.seen.get_mut(&key) else { return false };
        // What was seen before that is another one, for which nobody waited long enough.
        while seen.front().is_some_and(|(between_ns, _)| between_ns.end < time_ns) {
            seen.pop_front();
        }
        if seen.is_empty() {
            self.seen.remove(&key);
            return false;
        }
        seen.front().is_some_and(|(between_ns, _)| between_ns.start <= time_ns.saturating_add(CREATING_NS))
    }

    /// The file that was created at this time.
    pub fn take(&mut self, key: (DeviceNumber, u64), time_ns: u64) -> Option<T> {
        self.has(key, time_ns).then_some(())?;
        let seen = self.seen.get_mut(&key)?;
        let (_, file) = seen.pop_front()?;
        if seen.is_empty() {
            self.seen.remove(&key);
        }
        Some(file)
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

    #[test]
    fn a_call_made_its_threads_oldest_change_of_its_kind() {
        let mut changes = Changes::default();
        for (seen_ns, seen) in
            [(10, seen(1, 5, true)), (10, seen(1, 6, false)), (20, seen(2, 7, true)), (30, seen(1, 8, true))]
        {
            changes.push(seen_ns, seen);
        }
        let mut inodes = |thread, removed| {
            changes.of_call(thread, removed).iter().map(|seen| seen.change.inode).collect::<Vec<_>>()
        };
        assert_eq!([inodes(1, false), inodes(1, false), inodes(3, true)], [vec![6], vec![], vec![]]);
        assert_eq!(inodes(1, true), [5]);
        let overdue = changes.overdue(20);
        assert_eq!(
            overdue.iter().map(|(time, seen)| (*time, seen.change.inode)).collect::<Vec<_>>(),
            [(20, 7)]
        );
        assert_eq!(changes.of_call(1, true).len(), 1);
        assert!(changes.waiting.is_empty());
    }

    #[test]
    fn one_call_gives_two_files_each_others_names() {
        let renamed = |inode, before: &str, path: &str| Seen {
            path: path.to_owned(),
            before: Some(before.to_owned()),
            ..seen(1, inode, false)
        };
        let exchanged = [renamed(5, "/a", "/b"), renamed(6, "/b", "/a")];
        let mut changes = Changes::default();
        // There and back again is two calls.
        for one in exchanged.iter().chain(&[renamed(7, "/c", "/d"), renamed(7, "/d", "/c")]) {
            changes.push(10, one.clone());
        }
        let counts: Vec<usize> = (0..4).map(|_| changes.of_call(1, false).len()).collect();
        assert_eq!(counts, [2, 1, 1, 0]);
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
        for one in seen {
            changes.push(10, one);
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
        changes.of_call(1, false);
        assert_eq!(then(&changes, 8, "/p/b"), "/q/b", "the first has happened");
        changes.overdue(10);
        assert_eq!(then(&changes, 8, "/q/c"), "/q/c");
        assert!(changes.renames.is_empty());
    }

    #[test]
    fn a_number_goes_to_one_file_after_another() {
        let (mut creations, key, other) =
            (Creations::default(), (DeviceNumber(8), 12), (DeviceNumber(8), 13));
        assert!(!creations.has(key, 5));
        creations.push(key, 0..10, "a");
        creations.push(key, 0..10, "b");
        creations.push(other, 0..10, "c");
        assert_eq!(creations.of(key).map(|name| *name).collect::<Vec<_>>(), ["a", "b"]);
        assert!(creations.has(key, 5));
        assert_eq!(
            [creations.take(key, 5), creations.take(key, 7), creations.take(key, 8)],
            [Some("a"), Some("b"), None]
        );
        creations.push(key, 10..20, "late");
        creations.push(key, 20..40, "d");
        assert_eq!(creations.take(key, 30), Some("d"), "the first was seen before this one was created");
        assert_eq!(creations.take(other, 9), Some("c"));
        let later_ns = CREATING_NS + 10;
        creations.push(key, later_ns..later_ns + 5, "e");
        assert_eq!(creations.take(key, 9), None, "a file without a name had the number before");
        assert_eq!(creations.take(key, later_ns + 1), Some("e"));
        assert!(creations.seen.is_empty(), "a capture may last for days");
    }
}
