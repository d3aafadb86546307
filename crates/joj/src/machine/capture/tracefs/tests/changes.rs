//! Goal: each change belongs to the call that made it, or is reported as one whose call is not known.
//! Method: looks, changes and calls as a thread's program would make them.

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
    Seen { device: DeviceNumber(8), change, path, before: None, unsure: false }
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

fn inodes(of_calls: &[Vec<Seen>]) -> Vec<u64> {
    of_calls.iter().flatten().map(|seen| seen.change.inode).collect()
}

#[test]
fn a_call_made_the_change_that_was_seen_when_it_returned() {
    let mut changes = Changes::default();
    for (look, kind, seen) in [
        (look(0, 10), Removed, seen(1, 5, true)),
        (look(0, 10), Renamed, seen(1, 6, false)),
        (look(10, 20), Removed, seen(1, 8, true)),
        (look(10, 30), Removed, seen(2, 7, true)),
    ] {
        changes.push(look, kind, seen, false);
    }
    for (thread, kind, time_ns) in [(1, Removed, 21), (1, Removed, 5), (1, Renamed, 8), (3, Removed, 7)] {
        changes.note_call(thread, kind, time_ns);
    }
    assert!(unclear(&mut changes, 30).is_empty());
    let mut of = |thread, kind, time_ns| inodes(&changes.of_call(thread, kind, time_ns));
    assert_eq!([of(1, Removed, 5), of(1, Removed, 6), of(3, Removed, 7)], [vec![5], vec![], vec![]]);
    assert_eq!(of(1, Renamed, 8), [6]);
    assert_eq!(of(1, Removed, 21), [8], "it changed the name, and returned later");
    let overdue = changes.overdue(31);
    assert_eq!(
        overdue.iter().map(|(time, seen)| (*time, seen[0].change.inode)).collect::<Vec<_>>(),
        [(31, 7)]
    );
    assert!(changes.waiting.is_empty() && changes.calls.is_empty(), "a capture may last for days");
}

#[test]
fn a_call_that_returns_after_the_next_look_has_its_change_still() {
    let mut changes = Changes::default();
    changes.push(look(0, 10), Removed, seen(1, 5, true), false);
    assert!(unclear(&mut changes, 10).is_empty());
    changes.note_call(1, Removed, 1_000_000);
    assert!(unclear(&mut changes, 2_000_000).is_empty());
    assert_eq!(inodes(&changes.of_call(1, Removed, 1_000_000)), [5]);
}

fn renamed(inode: u64, before: &str, path: &str) -> Seen {
    let one = seen(1, inode, false);
    let parent = one.change.parent.clone();
    let change = Change { name: path.to_owned(), before: Some((parent, before.to_owned())), ..one.change };
    Seen { change, path: path.to_owned(), before: Some(before.to_owned()), ..one }
}

#[test]
fn what_the_watch_saw_first_has_happened_first_whoever_returns_first() {
    let mut changes = Changes::default();
    changes.push(look(0, 10), Removed, seen(3, 4, true), true);
    changes.push(look(0, 10), Renamed, renamed(5, "/a", "/b"), false);
    changes.push(
        look(0, 10),
        Renamed,
        Seen { change: Change { thread: 2, ..seen(1, 6, false).change }, ..renamed(6, "/c", "/d") },
        false,
    );
    for (thread, kind, time_ns) in [(1, Renamed, 9), (2, Renamed, 6), (3, Removed, 8)] {
        changes.note_call(thread, kind, time_ns);
    }
    assert!(unclear(&mut changes, 10).is_empty());
    assert_eq!(inodes(&changes.of_call(2, Renamed, 6)), [5, 6]);
    assert_eq!(inodes(&changes.of_call(3, Removed, 8)), [4], "the name came first, and went at the end");
    assert!(changes.of_call(1, Renamed, 9).is_empty() && changes.waiting.is_empty());
}

#[test]
fn one_call_gives_two_files_each_others_names() {
    let exchanged = [renamed(5, "/a", "/b"), renamed(6, "/b", "/a")];
    let mut changes = Changes::default();
    // There and back again is two calls.
    for one in exchanged.iter().chain(&[renamed(7, "/c", "/d"), renamed(7, "/d", "/c")]) {
        changes.push(look(0, 10), Renamed, one.clone(), false);
    }
    (1..4).for_each(|time_ns| changes.note_call(1, Renamed, time_ns));
    assert!(unclear(&mut changes, 10).is_empty(), "three calls, and three changes");
    let counts: Vec<usize> =
        (1..5).map(|time_ns| inodes(&changes.of_call(1, Renamed, time_ns)).len()).collect();
    assert_eq!(counts, [2, 1, 1, 0]);
}

#[test]
fn more_calls_than_changes_in_a_look_are_unclear() {
    let mut changes = Changes::default();
    changes.push(look(0, 10), Renamed, renamed(5, "/a", "/b"), false);
    changes.push(look(0, 10), Removed, seen(1, 6, true), false);
    changes.push(look(10, 20), Renamed, renamed(5, "/b", "/c"), false);
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
    assert_eq!(changes.of_call(1, Removed, 3).len(), 1, "another file's are certain");
    assert!(changes.of_call(1, Renamed, 15).is_empty());
    changes.overdue(21);
    assert!(changes.waiting.is_empty());
}

#[test]
fn a_call_on_another_filesystem_before_a_look_is_none_of_it() {
    let mut changes = Changes::default();
    changes.push(look(10, 20), Renamed, renamed(5, "/a", "/b"), false);
    (8..13).step_by(4).for_each(|time_ns| changes.note_call(1, Renamed, time_ns));
    assert!(unclear(&mut changes, 20).is_empty());
    assert_eq!(changes.of_call(1, Renamed, 12).len(), 1);
}

#[test]
fn a_file_that_gets_a_name_again_needs_as_many_calls_as_changes() {
    let there_and_back = |calls_ns: &[u64]| {
        let mut changes = Changes::default();
        changes.push(look(0, 10), Renamed, renamed(5, "/a", "/b"), false);
        changes.push(look(0, 10), Renamed, renamed(5, "/b", "/a"), false);
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
    changes.push(look(0, 10), Renamed, renamed(5, "/a", "/b"), false);
    assert_eq!(
        [has(&changes, "/a"), has(&changes, "/b"), has(&changes, "/c")],
        [Some(false), Some(true), None]
    );
    let named = |kind| (kind, Seen { path: "/c".to_owned(), ..seen(1, 5, kind == Removed) });
    for (kind, seen) in [named(Added), named(Removed)] {
        changes.push(look(10, 20), kind, seen.clone(), false);
        assert_eq!(has(&changes, "/c"), Some(kind == Added));
    }
    changes.doubt(file);
    assert_eq!(has(&changes, "/c"), Some(true), "perhaps");
}

#[test]
fn changes_of_which_no_record_tells_are_overdue() {
    let mut changes = Changes::default();
    changes.push(look(0, 10), Added, seen(1, 5, false), false);
    assert!(changes.is_adding(&seen(2, 5, true)) && !changes.is_adding(&seen(1, 6, false)));
    assert!(unclear(&mut changes, 10).is_empty());
    assert_eq!(changes.overdue(11).len(), 1);
    changes.note_call(1, Added, 15);
    changes.push(look(10, 20), Added, seen(1, 6, false), false);
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
        changes.push(look(nth * 10, nth * 10 + 10), Renamed, one, false);
    }
    let then =
        |changes: &Changes, inode, name: &str| changes.name_then((DeviceNumber(8), inode), name.to_owned());
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

#[test]
fn names_that_came_and_went_have_no_order_among_removals() {
    let calls = |is_getting: bool| {
        let mut changes = Changes::default();
        changes.push(look(0, 10), Removed, seen(1, 5, true), true);
        if is_getting {
            changes.push(look(0, 10), Added, seen(1, 5, false), false);
        }
        changes.push(look(0, 10), Removed, seen(1, 6, true), false);
        for (kind, time_ns) in [(Removed, 3), (Added, 4), (Removed, 5)] {
            changes.note_call(1, kind, time_ns);
        }
        unclear(&mut changes, 10)
    };
    assert_eq!(calls(true), ["/5", "/6"]);
    assert!(calls(false).is_empty(), "files with one name each are gone with it");
}
