//! The same recording, changed in one respect. Calls keep their places, so that durations of one are durations of the other.

use std::collections::{HashMap, HashSet};

use crate::recording::Recording;
use crate::recording::call::{CallKind, RecordedCall};
use crate::recording::flags::{O_CREAT, O_EXCL, O_SYNC_BITS, RWF_SYNC_BITS};
use crate::recording::whatif::classes::ClassPaths;
use crate::recording::whatif::classes::open_files::{OpenFiles, is_unnamed};
use crate::trace::texts::{Text, Texts};

/// With the files of a class below another directory.
///
/// A directory belongs to no class where others have files in it, but a program opens it to make a new name durable. So one that a thread
/// opens after it changed a name of the class in it is opened there, unless its sync makes names of others durable, too.
pub fn with_files_at(recording: &Recording, class: &ClassPaths, place: &str) -> Recording {
    let mut moved = recording.clone();
    let mut known: HashMap<Text, Text> = HashMap::new();
    let names = names_class(recording, class);
    for ((call, was), names_class) in moved.calls.iter_mut().zip(&recording.calls).zip(names) {
        let mut put = |path: Text| {
            let to = || moved.texts.keep(&format!("{place}{}", recording.texts.get(path)));
            *known.entry(path).or_insert_with(to)
        };
        if names_class && was.path != Text::NONE {
            call.path = put(was.path);
        }
        if was.kind != CallKind::Symlink && class.contains(&was.second_path) {
            call.second_path = put(was.second_path);
        }
    }
    moved
}

/// Of each call whether its path is of the class, or the file that it opens, or a directory that is opened for the sake of a name of the
/// class.
fn names_class(recording: &Recording, class: &ClassPaths) -> Vec<bool> {
    let texts = &recording.texts;
    // By thread the path that it made, renamed or removed last.
    let mut changed: HashMap<u32, Text> = HashMap::new();
    let mut others = NamesOfOthers::default();
    let files = OpenFiles::find(recording);
    let mut named = Vec::with_capacity(recording.calls.len());
    for (place, call) in recording.calls.iter().enumerate() {
        let is_of_directory = |directory: Text| {
            let last = changed.get(&call.thread).filter(|last| class.contains(last));
            last.is_some_and(|last| directory_of(texts, *last) == Some(texts.get(directory)))
        };
        let of_description = Some(call.description).filter(|_| opens(call.kind));
        let of_description = of_description.and_then(|description| files.is_of(description, class));
        let is_of_class = of_description.unwrap_or_else(|| class.contains(&call.path));
        let is_directory = call.kind == CallKind::Open && !is_unnamed(call);
        let is_for_it = !is_of_class && is_directory && is_of_directory(call.path);
        named.push(is_of_class || is_for_it);
        if let Some(directory) = others.pass(recording, class, call, is_for_it.then_some(place)) {
            named[directory] = false;
        }
        if let Some(path) = changed_path(call) {
            changed.insert(call.thread, path);
        }
    }
    named
}

/// In which directories names of others changed that no sync has made durable.
#[derive(Debug, Default)]
struct NamesOfOthers<'a> {
    changed: HashSet<&'a str>,
    /// Of each description its path, and where it was opened if that was for the sake of the class.
    opened: HashMap<u32, (Text, Option<usize>)>,
    /// Names that are there already: to open one with `O_CREAT` makes none.
    known: HashSet<Text>,
}

impl<'a> NamesOfOthers<'a> {
    /// A call passes by; `of_class`: its place, if it opens a directory for the sake of the class. Gives the place of such an open whose
    /// directory is synced for others by this call.
    fn pass(
        &mut self,
        recording: &'a Recording,
        class: &ClassPaths,
        call: &RecordedCall,
        of_class: Option<usize>,
    ) -> Option<usize> {
        if call.result < 0 {
            return None;
        }
        let is_change = changed_path(call).is_some_and(|path| {
            call.kind != CallKind::Open || !self.known.contains(&path) || call.flags & O_EXCL != 0
        });
        let source = (call.kind == CallKind::Rename).then_some(call.path);
        let names = changed_path(call).into_iter().chain(source).filter(|_| is_change);
        for path in names.filter(|path| !class.contains(path)) {
            self.changed.extend(directory_of(&recording.texts, path));
        }
        match call.kind {
            // What lies below has other names now, too.
            CallKind::Rename => self.known.clear(),
            CallKind::Unlink | CallKind::Rmdir => {
                self.known.remove(&call.path);
            }
            CallKind::Open | CallKind::Held => {
                self.known.insert(call.path);
                // A sync of a file without a name is none of its directory.
                if is_unnamed(call) {
                    return None;
                }
                self.opened.insert(call.description, (call.path, of_class));
            }
            _ => {}
        }
        let (path, of_class) = self.opened.get(&call.description).filter(|_| call.kind.is_sync())?;
        let is_for_others = self.changed.remove(recording.texts.get(*path));
        of_class.filter(|_| is_for_others || call.kind == CallKind::Syncfs)
    }
}

/// The directory that a path is a name in.
fn directory_of(texts: &Texts, path: Text) -> Option<&str> {
    texts.get(path).rsplit_once('/').map(|(directory, _)| directory)
}

/// Without what makes files of a class durable: the flags are gone, and of each call it says whether it is to be left out. A sync of the
/// whole filesystem stays.
pub fn without_syncs_of(recording: &Recording, class: &ClassPaths) -> (Recording, Vec<bool>) {
    let names = names_class(recording, class);
    let opened = recording.calls.iter().zip(&names).filter(|(call, names)| opens(call.kind) && **names);
    let descriptions: HashSet<u32> =
        opened.map(|(call, _)| call.description).filter(|description| *description != 0).collect();
    let mut changed = recording.clone();
    let is_of_file = |kind: CallKind| !matches!(kind, CallKind::Sync | CallKind::Syncfs);
    let mut left_out = Vec::with_capacity(changed.calls.len());
    for call in &mut changed.calls {
        let is_own = descriptions.contains(&call.description);
        if is_own {
            make_plain(call);
        }
        left_out.push(is_own && call.kind.is_sync() && is_of_file(call.kind));
    }
    (changed, left_out)
}

fn opens(kind: CallKind) -> bool {
    matches!(kind, CallKind::Open | CallKind::Held)
}

/// Takes the flags away that make a write durable.
fn make_plain(call: &mut RecordedCall) {
    match call.kind {
        CallKind::Open | CallKind::Held | CallKind::SetFlags => call.flags &= !O_SYNC_BITS,
        CallKind::Pwritev | CallKind::Writev => call.flags &= !RWF_SYNC_BITS,
        _ => {}
    }
}

/// The path that a call makes, renames or removes.
fn changed_path(call: &RecordedCall) -> Option<Text> {
    let path = match call.kind {
        CallKind::Open if call.flags & O_CREAT != 0 => call.path,
        CallKind::Rename | CallKind::Link => call.second_path,
        CallKind::Unlink | CallKind::Mkdir | CallKind::Rmdir | CallKind::Symlink => call.path,
        _ => return None,
    };
    (call.result >= 0).then_some(path)
}

/// True where some flag makes each write of a file, or one write, durable.
pub fn has_durable_writes(recording: &Recording) -> bool {
    recording.calls.iter().any(|call| match call.kind {
        CallKind::Open | CallKind::Held | CallKind::SetFlags => {
            call.result >= 0 && call.flags & O_SYNC_BITS != 0
        }
        CallKind::Pwritev | CallKind::Writev => call.flags & RWF_SYNC_BITS != 0,
        _ => false,
    })
}

/// Without flags that make each write durable. Calls that make something durable are still there.
pub fn without_durable_writes(recording: &Recording) -> Recording {
    let mut changed = recording.clone();
    changed.calls.iter_mut().for_each(make_plain);
    changed
}

/// What lies below some directories is named as if it lay below others, in calls and in what the recording says of itself. The first name
/// that fits counts. No former name stays.
pub fn named_below(recording: &mut Recording, names: &[(String, String)]) {
    let named = |path: &str| {
        let moved = names.iter().find_map(|(from, to)| {
            let below = path.strip_prefix(from.as_str())?;
            let above = if below.is_empty() { to } else { to.trim_end_matches('/') };
            (below.is_empty() || below.starts_with('/')).then(|| format!("{above}{below}"))
        });
        moved.unwrap_or_else(|| path.to_owned())
    };
    let (mut known, mut texts): (HashMap<Text, Text>, Texts) = Default::default();
    for call in &mut recording.calls {
        for path in [&mut call.path, &mut call.second_path] {
            let renamed = || texts.keep(&named(recording.texts.get(*path)));
            *path = *known.entry(*path).or_insert_with(renamed);
        }
    }
    recording.texts = texts;
    for said in &mut recording.header.inferred {
        for (from, to) in names {
            *said = said.replace(from, to);
        }
    }
    if let Some(facts) = &mut recording.header.recording {
        facts.mount_points.iter_mut().for_each(|place| *place = named(place));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::flags::{O_RDONLY, O_RDWR, O_TMPFILE};
    use crate::trace::header::RecordingFacts;

    #[derive(Default)]
    struct Made(Recording);

    impl Made {
        fn push(
            &mut self,
            kind: CallKind,
            paths: [&str; 2],
            change: impl Fn(&mut RecordedCall),
        ) -> &mut Self {
            let [path, second_path] = paths.map(|path| self.0.texts.keep(path));
            let mut call = RecordedCall { kind, thread: 1, path, second_path, ..RecordedCall::default() };
            change(&mut call);
            self.0.calls.push(call);
            self
        }
    }

    fn paths(recording: &Recording) -> Vec<[&str; 2]> {
        let of = |call: &RecordedCall| [call.path, call.second_path].map(|path| recording.texts.get(path));
        recording.calls.iter().map(of).collect()
    }

    #[test]
    fn files_of_the_class_lie_elsewhere_and_so_does_the_directory_that_is_synced_for_them() {
        let mut made = Made::default();
        let creat = |call: &mut RecordedCall| call.flags = O_RDWR | O_CREAT;
        let reads = |call: &mut RecordedCall| call.flags = O_RDONLY;
        made.push(CallKind::Open, ["/d/a", ""], creat)
            .push(CallKind::Open, ["/d", ""], reads)
            .push(CallKind::Open, ["/d/b", ""], creat)
            .push(CallKind::Open, ["/d", ""], reads)
            .push(CallKind::Rename, ["/d/b", "/d/a"], |_| {})
            .push(CallKind::Open, ["/d", ""], |call| call.thread = 2);
        let class: ClassPaths = [made.0.texts.keep("/d/a")].into();
        let moved = with_files_at(&made.0, &class, "/R");
        assert_eq!(
            paths(&moved),
            [["/R/d/a", ""], ["/R/d", ""], ["/d/b", ""], ["/d", ""], ["/d/b", "/R/d/a"], ["/d", ""]]
        );
    }

    #[test]
    fn a_file_without_a_name_is_made_where_it_gets_one() {
        let mut made = Made::default();
        let unnamed = |call: &mut RecordedCall| (call.description, call.flags) = (3, O_TMPFILE | O_RDWR);
        made.push(CallKind::Open, ["/d", ""], unnamed)
            .push(CallKind::Link, ["", "/d/a"], |call| call.description = 3);
        let class: ClassPaths = [made.0.texts.keep("/d/a")].into();
        assert_eq!(paths(&with_files_at(&made.0, &class, "/R")), [["/R/d", ""], ["", "/R/d/a"]]);
        assert_eq!(paths(&with_files_at(&made.0, &ClassPaths::new(), "/R")), [["/d", ""], ["", "/d/a"]]);
    }

    #[test]
    fn a_file_without_a_name_is_of_its_directorys_class_only_where_it_gets_no_name() {
        let mut made = Made::default();
        let unnamed = |number: u32| {
            move |call: &mut RecordedCall| {
                (call.description, call.flags) = (number, O_TMPFILE | O_RDWR | 0o10_000)
            }
        };
        let of = |number: u32| move |call: &mut RecordedCall| call.description = number;
        // One becomes a file of others, one stays without a name, and one becomes a file of the class.
        for (number, place, name) in [(1, "/c", "/d/a"), (2, "/c", ""), (3, "/d", "/c/b")] {
            made.push(CallKind::Open, [place, ""], unnamed(number)).push(
                CallKind::Fsync,
                ["", ""],
                of(number),
            );
            if !name.is_empty() {
                made.push(CallKind::Link, ["", name], of(number));
            }
            made.push(CallKind::Fdatasync, ["", ""], of(number));
        }
        let class: ClassPaths = ["/c", "/c/b"].map(|path| made.0.texts.keep(path)).into();
        let (changed, left_out) = without_syncs_of(&made.0, &class);
        let opened = |recording: &Recording| -> Vec<RecordedCall> {
            recording.calls.iter().filter(|call| call.kind == CallKind::Open).copied().collect()
        };
        let flags: Vec<u32> = opened(&changed).iter().map(|call| call.flags & O_SYNC_BITS).collect();
        assert_eq!(flags, [0o10_000, 0, 0]);
        let of_first = [false, false, false, false];
        assert_eq!(left_out, [&of_first[..], &[false, true, true], &[false, true, false, true]].concat());
        let moved = with_files_at(&made.0, &class, "/R");
        let places: Vec<&str> = opened(&moved).iter().map(|call| moved.texts.get(call.path)).collect();
        assert_eq!(places, ["/c", "/R/c", "/R/d"]);
        // With a name of others, too, it is theirs.
        made.push(CallKind::Link, ["", "/d/b"], of(3));
        assert!(!without_syncs_of(&made.0, &class).1[8]);
    }

    #[test]
    fn a_sync_of_a_file_without_a_name_is_none_of_its_directory() {
        let mut made = Made::default();
        let of = |number: u32| move |call: &mut RecordedCall| call.description = number;
        made.push(CallKind::Unlink, ["/d/b", ""], |_| {})
            .push(CallKind::Open, ["/d", ""], |call| {
                (call.description, call.flags) = (1, O_TMPFILE | O_RDWR);
            })
            .push(CallKind::Fsync, ["", ""], of(1))
            .push(CallKind::Open, ["/d/a", ""], |call| call.flags = O_RDWR | O_CREAT)
            .push(CallKind::Open, ["/d", ""], of(2))
            .push(CallKind::Fsync, ["", ""], of(2));
        let class: ClassPaths = [made.0.texts.keep("/d/a")].into();
        assert_eq!(without_syncs_of(&made.0, &class).1, [false; 6], "/d/b is gone only with the last one");
    }

    #[test]
    fn syncs_of_a_class_are_left_out_with_those_of_its_directory() {
        let mut made = Made::default();
        let creat = |number: u32| {
            move |call: &mut RecordedCall| {
                (call.flags, call.description) = (O_RDWR | O_CREAT | 0o10_000, number);
            }
        };
        let of = |number: u32| move |call: &mut RecordedCall| call.description = number;
        made.push(CallKind::Open, ["/d/a", ""], creat(1))
            .push(CallKind::Fsync, ["", ""], of(1))
            .push(CallKind::Open, ["/d", ""], of(2))
            .push(CallKind::Fsync, ["", ""], of(2))
            .push(CallKind::Open, ["/d/b", ""], creat(3))
            .push(CallKind::Fdatasync, ["", ""], of(3))
            .push(CallKind::Syncfs, ["", ""], of(1));
        let class: ClassPaths = [made.0.texts.keep("/d/a")].into();
        let (changed, left_out) = without_syncs_of(&made.0, &class);
        assert_eq!(left_out, [false, true, false, true, false, false, false]);
        let flags: Vec<u32> = [0, 4].map(|call| changed.calls[call].flags & O_SYNC_BITS).to_vec();
        assert_eq!(flags, [0, 0o10_000]);
    }

    #[test]
    fn a_sync_of_a_directory_that_others_need_stays() {
        // What happens before a name of the class is made and the directory is synced: whether others need the sync.
        let made = (CallKind::Open, ["/d/b", ""], 1);
        let linked = (CallKind::Link, ["/e/c", "/d/b"], 1);
        let removed = (CallKind::Unlink, ["/d/b", ""], 2);
        let moved_out = (CallKind::Rename, ["/d/b", "/e/b"], 2);
        let below = (CallKind::Open, ["/d/e/b", ""], 1);
        for (before, is_needed) in [
            (&[][..], false),
            (&[made], true),
            (&[linked], true),
            (&[removed], true),
            (&[moved_out], true),
            (&[below], false),
            (&[(CallKind::Mkdir, ["/d/e", ""], 1)], true),
            // It is there already.
            (&[made, (CallKind::Open, ["/d", ""], 3), (CallKind::Fsync, ["", ""], 3), made], false),
            (&[made, (CallKind::Open, ["/d", ""], 3), (CallKind::Fsync, ["", ""], 3), removed], true),
        ] {
            let mut recorded = Made::default();
            let of = |number: u32| move |call: &mut RecordedCall| call.description = number;
            for (kind, paths, number) in before {
                recorded.push(*kind, *paths, |call| {
                    call.description = *number;
                    call.flags = if paths[0] == "/d" { O_RDONLY } else { O_RDWR | O_CREAT };
                    // The program does that in another thread.
                    call.thread = 2;
                });
            }
            recorded.push(CallKind::Open, ["/d/a", ""], |call| call.flags = O_RDWR | O_CREAT);
            recorded.push(CallKind::Open, ["/d", ""], of(9)).push(CallKind::Fsync, ["", ""], of(9));
            let class: ClassPaths = [recorded.0.texts.keep("/d/a")].into();
            let (_, left_out) = without_syncs_of(&recorded.0, &class);
            assert_eq!(left_out[before.len() + 2], !is_needed, "{before:?}");
            let moved = paths(&with_files_at(&recorded.0, &class, "/R"))[before.len() + 1][0].to_owned();
            assert_eq!(moved, if is_needed { "/d" } else { "/R/d" }, "{before:?}");
        }
    }

    #[test]
    fn durable_writes_become_plain_ones() {
        let mut made = Made::default();
        made.push(CallKind::Open, ["/a", ""], |call| call.flags = O_RDWR | 0o4_010_000)
            .push(CallKind::Pwritev, ["", ""], |call| call.flags = 2 | 8)
            .push(CallKind::SyncFileRange, ["", ""], |call| call.flags = 7);
        assert!(has_durable_writes(&made.0) && !has_durable_writes(&without_durable_writes(&made.0)));
        let flags: Vec<u32> = without_durable_writes(&made.0).calls.iter().map(|call| call.flags).collect();
        assert_eq!(flags, [O_RDWR, 8, 7]);
    }

    #[test]
    fn what_lay_in_a_copy_is_named_as_in_its_original() {
        let mut made = Made::default();
        made.push(CallKind::Rename, ["/u/d/copy-0/d/a", "/u/d/copy-0/d/b"], |_| ())
            .push(CallKind::Open, ["/u/d/copy-0/d", ""], |_| ())
            .push(CallKind::Unlink, ["/u/d/copy-01/a", ""], |_| ())
            .push(CallKind::Symlink, ["/u/d/link", "/u/d/copy-0/d/a"], |_| ())
            .push(CallKind::Open, ["/u/d/copy-0/beside", ""], |_| ())
            .push(CallKind::Unlink, ["/u/d/a", ""], |_| ());
        made.0.header.inferred = vec!["/u/d/copy-0/d/a was there".to_owned()];
        let mount_points = vec!["/u".to_owned(), "/u/d/copy-0/d/disk".to_owned()];
        made.0.header.recording = Some(RecordingFacts { mount_points, ..RecordingFacts::default() });
        let names = [("/u/d/copy-0/d", "/u/d"), ("/u/d/copy-0", "/")];
        let mut named = made.0.clone();
        named_below(&mut named, &names.map(|(from, to)| (from.to_owned(), to.to_owned())));
        assert_eq!(
            paths(&named),
            [
                ["/u/d/a", "/u/d/b"],
                ["/u/d", ""],
                ["/u/d/copy-01/a", ""],
                ["/u/d/link", "/u/d/a"],
                ["/beside", ""],
                ["/u/d/a", ""]
            ]
        );
        assert_eq!(named.calls[0].path, named.calls[5].path, "the same file has the same name");
        assert_eq!(named.header.inferred, ["/u/d/a was there"]);
        assert_eq!(named.header.recording.unwrap().mount_points, ["/u", "/u/d/disk"]);
        let mut texts =
            (0..u32::try_from(named.texts.count()).unwrap()).map(|text| named.texts.get(Text(text)));
        assert!(texts.all(|text| !text.contains("copy-0/")), "{:?}", named.texts);
    }
}
