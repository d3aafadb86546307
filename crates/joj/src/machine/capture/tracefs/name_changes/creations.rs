//! Which file was created under a number.

use std::collections::VecDeque;
use std::ops::Range;

use joj_analysis::trace::event::DeviceNumber;
use rustc_hash::FxHashMap;

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

    /// All of them, with their filesystems and numbers.
    pub fn all(&mut self) -> impl Iterator<Item = ((DeviceNumber, u64), &mut T)> {
        self.seen.iter_mut().flat_map(|(key, files)| files.iter_mut().map(move |(_, file)| (*key, file)))
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
