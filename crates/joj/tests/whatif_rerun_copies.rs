//! Goal: a copy in which `joj whatif --rerun` runs a program is like the directory, and keeps the program away from what is its user's.
//! Method: shells that look at their copy, or try to leave it; then a look at the directory itself.

mod replay;
mod rerun;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use joj_analysis::recording::whatif::configuration::Configuration;
use replay::{Scratch, told};
use rerun::{place, rerun, result, whatif};

/// The names in a directory.
fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).expect("the directory");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn names_that_go_up_lead_to_nothing_of_the_directory_itself() {
    let scratch = Scratch::new("whatif-rerun-up");
    let place = place(&scratch);
    std::fs::create_dir(place.join("build")).expect("a directory");
    // Where no run before it left something.
    let script = "n=0; up=..; while [ $n -lt 16 ]; do \
        test ! -e $up/given && echo changed > $up/given && rm -rf $up/build && cd -P . || exit 1; up=$up/..; n=$((n + 1)); done";
    let result = result(&place, script);
    for row in [Configuration::Recorded, Configuration::AllInMemory, Configuration::NoSync] {
        assert!(rerun(&result, row).is_ok(), "{row:?}: {:?}", result.rows);
    }
    assert_eq!(std::fs::read_to_string(place.join("given")).expect("the file"), "text");
    assert_eq!(
        (names(&place), scratch.names()),
        (vec!["build".to_owned(), "given".to_owned()], vec!["place".to_owned(), "place.json".to_owned()])
    );
    // It must want to.
    let script = format!("echo > made; echo changed > {}given", "../".repeat(18));
    let (code, said) = told(&whatif(&place, &["--only", "recorded"], &script));
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("or more than 16 `../`"), "{said}");
}

#[test]
fn whoever_cannot_reach_the_directory_cannot_reach_a_copy_elsewhere_and_others_can() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: no other user here (not root)");
        return;
    }
    let scratch = Scratch::new("whatif-rerun-private");
    let place = place(&scratch);
    let reads = "setpriv --reuid 65534 --regid 65534 --clear-groups cat \"$PWD/given\"";
    let open = |mode: u32| {
        std::fs::set_permissions(&scratch, std::fs::Permissions::from_mode(mode)).expect("its mode");
    };
    // The directory above lets nobody pass, or one group alone; then all.
    for (mode, expected) in [(0o700, "!"), (0o711, ""), (0o701, "!"), (0o755, "")] {
        open(mode);
        let script = format!("echo > made; case $PWD in /dev/shm/*) {expected} {reads};; esac");
        let result = result(&place, &script);
        assert!(rerun(&result, Configuration::AllInMemory).is_ok(), "{mode:o}: {:?}", result.rows);
    }
    // On the disk the copy lies in the directory itself.
    let result = result(&place, &format!("echo > made; {reads}"));
    assert!(result.notes.iter().all(|note| !note.contains("exit code")), "{:?}", result.notes);
    assert!(rerun(&result, Configuration::Recorded).is_ok(), "{:?}", result.rows);
}
