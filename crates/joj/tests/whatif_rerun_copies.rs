//! Goal: a copy in which `joj whatif --rerun` runs a program is like the directory, and keeps the program away from what is its user's.
//! Method: shells that look at their copy, or try to leave it; then a look at the directory itself.

mod replay;
mod rerun;

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
