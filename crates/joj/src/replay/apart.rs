//! Filesystems that a program only read: a replay has their files elsewhere, so that the one that it measures has what it had.
//!
//! ```text
//! recorded: /usr/lib/libc.so.6 read, /data/app.db written   two filesystems
//! replay:   TMPDIR/..../usr/lib/libc.so.6                   DIR/..../data/app.db
//! ```
//!
//! What else a filesystem holds changes what it writes. Mobibench made Btrfs write 15 % less next to 4 MB of new files, and F2FS 5 % more
//! next to 15 small ones (docs/recording.md).

use std::collections::BTreeSet;

use joj_analysis::recording::Recording;
use joj_analysis::recording::call::{CallKind, RecordedCall};
use joj_analysis::recording::file_tree::{Entries, TreeEntry};
use joj_analysis::recording::flags::{O_ACCMODE, O_CREAT, O_RDONLY, O_TRUNC};
use joj_analysis::recording::paths::{absolute, mount_point_of};
use joj_analysis::trace::texts::{Text, Texts};

/// Which filesystems lie apart.
#[derive(Debug, Default)]
pub struct Apart {
    mount_points: Vec<String>,
    read_only: BTreeSet<String>,
}

impl Apart {
    /// Those on which no call changes anything, where others are changed. None where a link leads from one filesystem to another,
    /// or the recording does not tell where they were mounted.
    pub fn of(recording: &Recording, before: &Entries) -> Apart {
        let facts = recording.header.recording.as_ref();
        let mount_points = facts.map(|facts| facts.mount_points.clone()).unwrap_or_default();
        let place = |path: &str| mount_point_of(path, &mount_points);
        let leads_across = before.iter().any(|(path, entry)| match entry {
            TreeEntry::Symlink(target) | TreeEntry::HardLink(target) => {
                let above = path.rsplit_once('/').map_or("/", |(above, _)| above);
                place(path) != place(&absolute(above, target))
            }
            _ => false,
        });
        let changed: BTreeSet<&str> = recording
            .calls
            .iter()
            .flat_map(|call| changes(call, &recording.texts))
            .filter_map(place)
            .collect();
        if leads_across || changed.is_empty() {
            return Apart::default();
        }
        let read_only = mount_points.iter().filter(|place| !changed.contains(place.as_str())).cloned();
        Apart { read_only: read_only.collect(), mount_points }
    }

    /// True for a path on one of them.
    pub fn has(&self, path: &str) -> bool {
        !self.read_only.is_empty()
            && mount_point_of(path, &self.mount_points).is_some_and(|place| self.read_only.contains(place))
    }
}

/// The paths that a call changes, or may change later through the descriptor that it gives.
fn changes<'texts>(call: &RecordedCall, texts: &'texts Texts) -> impl Iterator<Item = &'texts str> {
    let writes = call.flags & O_ACCMODE != O_RDONLY || call.flags & (O_CREAT | O_TRUNC) != 0;
    let [first, second] = match call.kind {
        CallKind::Open if call.result >= 0 => [writes, false],
        CallKind::Held => [writes, false],
        CallKind::Rename | CallKind::Link => [true, true],
        CallKind::Symlink
        | CallKind::Unlink
        | CallKind::Mkdir
        | CallKind::Rmdir
        | CallKind::Truncate
        | CallKind::SetAttributes => [true, false],
        _ => [false, false],
    };
    let path = |is_changed: bool, path: Text| Some(texts.get(path)).filter(|_| is_changed);
    path(first, call.path).into_iter().chain(path(second, call.second_path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use joj_analysis::trace::header::RecordingFacts;

    fn recording(mount_points: &[&str], calls: &[(CallKind, &str, u32)]) -> Recording {
        let mut recording = Recording::default();
        recording.header.recording = Some(RecordingFacts {
            mount_points: mount_points.iter().map(|place| (*place).to_owned()).collect(),
            ..RecordingFacts::default()
        });
        for (kind, path, flags) in calls {
            let path = recording.texts.keep(path);
            recording.calls.push(RecordedCall {
                kind: *kind,
                path,
                flags: *flags,
                ..RecordedCall::default()
            });
        }
        recording
    }

    #[test]
    fn filesystems_that_are_only_read_lie_apart_where_another_is_changed() {
        let reads = (CallKind::Open, "/usr/lib/a", O_RDONLY);
        let writes = (CallKind::Open, "/data/app.db", O_CREAT | 2);
        let none = Entries::new();
        let apart = Apart::of(&recording(&["/", "/data"], &[reads, writes]), &none);
        assert_eq!(
            ["/usr/lib/a", "/usr/missing", "/data/x", "/"].map(|path| apart.has(path)),
            [true, true, false, true]
        );
        for (mount_points, calls) in [
            (vec!["/", "/data"], vec![reads]),
            (vec!["/", "/data"], vec![reads, writes, (CallKind::Mkdir, "/new", 0)]),
            (vec!["/"], vec![reads, writes]),
            (vec![], vec![reads, writes]),
        ] {
            assert!(!Apart::of(&recording(&mount_points, &calls), &none).has("/usr/lib/a"), "{calls:?}");
        }
    }

    #[test]
    fn a_link_from_one_filesystem_to_another_keeps_all_together() {
        let calls = [(CallKind::Open, "/usr/a", O_RDONLY), (CallKind::Open, "/data/b", O_CREAT | 2)];
        let symlink = |target: &str| TreeEntry::Symlink(target.to_owned());
        let hard_link = |first: &str| TreeEntry::HardLink(first.to_owned());
        for (target, lies_apart) in [
            (symlink("../usr/a"), false),
            (symlink("b"), true),
            (hard_link("/usr/a"), false),
            (hard_link("/data/b"), true),
        ] {
            let before = Entries::from([("/data/link".to_owned(), target.clone())]);
            assert_eq!(
                Apart::of(&recording(&["/", "/data"], &calls), &before).has("/usr/a"),
                lies_apart,
                "{target:?}"
            );
        }
    }
}
