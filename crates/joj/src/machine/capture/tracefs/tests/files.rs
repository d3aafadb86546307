//! Goal: a number stands for one file after another, and never for two at once; and its newest name is told last.
//! Method: files that nobody can be asked for.

use joj_analysis::trace::ftrace::record::NameChange;

use super::*;
use crate::machine::capture::tracefs::name_changes::file_names::Seen;
use crate::machine::capture::tracefs::name_changes::watcher::Look;
use crate::machine::files::file_watch::Change;

#[test]
fn a_number_is_nobodys_between_two_files() {
    let file = FileKey { device: DeviceNumber(8), inode: 12, generation: 0 };
    let mut files = Files::default();
    assert!(!files.is_gone(file), "nobody said anything of it");
    files.identify(file, 0);
    assert!(!files.is_gone(file));
    files.ended(file);
    assert!(files.is_gone(file));
    files.created(file, InodeKind::File, 0);
    assert!(!files.is_gone(file), "another has it");
    files.identify(file, 0);
    files.ended(file);
    assert!(files.is_gone(file));
}

#[test]
fn an_inode_that_comes_back_after_its_last_name_went_is_another_file() {
    let file = FileKey { device: DeviceNumber(8), inode: 12, generation: 0 };
    let mut files = Files::default();
    files.known.insert((file.device, 12), Known { generation: 5, ..Known::default() });
    files.fetched(file);
    assert_eq!(files.identify(file, 0).generation, 5, "it was out of memory for a while");
    files.identify(file, 0).nameless = true;
    files.fetched(file);
    assert_ne!(files.identify(file, 0).generation, 5);
}

/// Overlayfs renames a file while it is being opened, io_uring without a call.
#[test]
fn a_rename_that_no_record_tells_stays_the_newest_where_the_old_name_was_told_meanwhile() {
    let (parent, handle) = ((1, vec![2]), (1, vec![12]));
    let change = Change {
        inode: 12,
        generation: 5,
        handle,
        directory: false,
        created: false,
        deleted: false,
        thread: 1,
        parent: parent.clone(),
        name: "new".to_owned(),
        before: Some((parent, "old".to_owned())),
    };
    let device = DeviceNumber(8);
    let seen =
        Seen { device, change, path: "/new".to_owned(), before: Some("/old".to_owned()), unsure: false };
    let mut files = Files::default();
    let known = Known { generation: 5, name: Some("/old".to_owned()), ..Known::default() };
    files.known.insert((device, 12), known);
    files.changes.push(Look { since_ns: 90, began_ns: 99, ended_ns: 100 }, NameChange::Renamed, seen, false);
    // A call for the file comes next, and the records up to it are read first.
    assert!(files.identify(FileKey { device, inode: 12, generation: 0 }, 0).tell(150));
    let told = files.overdue(1_000);
    let told: Vec<(u64, &str)> = told.iter().map(|(event, name)| (event.time_ns, name.as_str())).collect();
    assert_eq!(told, [(100, "/new"), (150, "/new")]);
}
