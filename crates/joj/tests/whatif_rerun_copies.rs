//! Goal: a copy in which `joj whatif --rerun` runs a program is like the directory, and keeps the program away from what is its user's.
//! Method: shells that look at their copy, or try to leave it; then a look at the directory itself.

mod replay;
mod rerun;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use joj_analysis::recording::whatif::configuration::Configuration;
use joj_analysis::recording::whatif::outcome::WhatifResult;
use replay::{Scratch, told};
use rerun::{place, rerun, result, whatif, with_own_mounts};

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

#[test]
fn attributes_that_a_place_does_not_take_are_told_and_give_nobody_more_rights() {
    let scratch = Scratch::new("whatif-rerun-attributes");
    place(&scratch);
    // The group class of the mode is the mask, r--, and the group itself has nothing.
    let script = "setfacl -m u:65534:r--,g::---,m::r-- place/given && echo > place/plain && setfacl -m u:65534:r-x place || exit 77
        mkdir other && mount -t ramfs none other && mkdir other/in && mount --bind place other/in && cd other \
        && $1 whatif --rerun --rounds 1 --only recorded,all-in-ram --json ../out.json -- sh -c \
        'echo > made; case $PWD in /dev/shm/*) test $(stat -c %a in/given) = 644;; *) test $(stat -c %a in/given) = 604;; esac'";
    let Some((code, said)) = with_own_mounts(scratch.as_ref(), script) else { return };
    if code == Some(77) {
        println!("skipped: no ACLs here");
        return;
    }
    assert_eq!(code, Some(0), "{said}");
    let result = std::fs::read(scratch.file("out.json")).expect("a result");
    let result: WhatifResult = serde_json::from_slice(&result).expect("JSON");
    assert!(result.notes.iter().all(|note| !note.contains("exit code")), "{:?}", result.notes);
    assert!(rerun(&result, Configuration::AllInMemory).is_ok(), "{result:?}");
    let told: Vec<_> = result.notes.iter().filter(|note| note.contains("ACLs")).collect();
    assert_eq!(told.len(), 1, "{result:?}");
    assert!(
        told[0].starts_with("The copies on the disk lack extended attributes or ACLs of 2 files"),
        "{told:?}"
    );
    assert!(told[0].ends_with("The first is system.posix_acl_access of in/given."), "{told:?}");
}

#[test]
fn files_of_a_copy_get_no_default_acl_of_the_directory_in_which_it_lies() {
    let scratch = Scratch::new("whatif-rerun-default-acl");
    let place = place(&scratch);
    let set = Command::new("setfacl").args(["-d", "-m", "u:65534:rwx"]).arg(&place).status();
    if !set.is_ok_and(|status| status.success()) {
        println!("skipped: no ACLs here");
        return;
    }
    // But new ones do, as in the directory itself.
    let script = "test -z \"$(getfacl -cs given)\" && echo > made && getfacl -cn made | grep -q 65534";
    let result = result(&place, script);
    assert!(result.notes.iter().all(|note| !note.contains("exit code")), "{:?}", result.notes);
    for row in [Configuration::Recorded, Configuration::AllInMemory] {
        assert!(rerun(&result, row).is_ok(), "{row:?}: {:?}", result.rows);
    }
}

/// The program makes a file of 1 TiB, mostly a hole.
#[test]
fn holes_of_files_need_no_room_in_copies_and_in_memory() {
    let scratch = Scratch::new("whatif-rerun-holes");
    let place = place(&scratch);
    std::fs::File::create(place.join("before"))
        .and_then(|file| file.set_len(1 << 40))
        .expect("room for a hole");
    let script = "truncate -s 1T made && echo x | dd of=made bs=1 seek=900G conv=notrunc,fsync status=none";
    let result = result(&place, script);
    for configuration in [Configuration::Recorded, Configuration::AllInMemory] {
        let found = rerun(&result, configuration);
        assert!(found.is_ok(), "{configuration:?}: {found:?}");
    }
    for row in &result.rows {
        assert!(row.figures().is_none_or(|figures| figures.differing == 0), "{row:?}");
    }
}

#[test]
fn a_signal_while_the_files_are_looked_at_or_copied_is_told_as_one() {
    let scratch = Scratch::new("whatif-rerun-signal");
    let place = place(&scratch);
    for number in 0..2_000 {
        std::fs::write(place.join(format!("f{number}")), "text").expect("a file");
    }
    for wait_ms in [0, 5, 50] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_joj"));
        command.current_dir(&place).args(["whatif", "--rerun", "--only", "recorded", "--", "sleep", "9"]);
        let joj = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("joj");
        // It has caught signals before it makes its directory, and then looks at the files.
        while !names(&place).iter().any(|name| name.starts_with("joj-whatif-")) {
            std::thread::sleep(Duration::from_micros(200));
        }
        std::thread::sleep(Duration::from_millis(wait_ms));
        let process = rustix::process::Pid::from_child(&joj);
        rustix::process::kill_process(process, rustix::process::Signal::INT).expect("a signal");
        let (code, said) = told(&joj.wait_with_output().expect("joj"));
        assert_eq!(code, Some(130), "after {wait_ms} ms: {said}");
        assert!(said.contains("stopped by a signal"), "after {wait_ms} ms: {said}");
        assert_eq!(names(&place).len(), 2_001, "after {wait_ms} ms: nothing stays");
    }
}

#[test]
fn a_recording_that_is_kept_names_the_files_of_the_directory_itself() {
    let scratch = Scratch::new("whatif-rerun-named");
    let place = place(&scratch).canonicalize().expect("a path");
    let above = scratch.file("").canonicalize().expect("a path");
    let classes = [format!("cache:{}/cc/*", place.display()), format!("cache:{}/up", above.display())];
    let (kept, file) = (scratch.file("kept.joj"), scratch.file("again.json"));
    let words: Vec<&str> =
        ["--only", "recorded,caches-no-sync", "--class", &classes[0], "--class", &classes[1]].into();
    let first = [&words[..], &["-o", kept.to_str().expect("a name")]].concat();
    let script = "mkdir cc; echo > cc/one; sync cc/one; echo > ../up; sync ../up; echo > other; sync other";
    let (code, said) = told(&whatif(&place, &first, script));
    assert_eq!(code, Some(0), "{said}");
    let mut again = Command::new(env!("CARGO_BIN_EXE_joj"));
    again
        .args(["whatif", "--rounds", "1"])
        .args(&words)
        .arg("--json")
        .args([&file, &kept])
        .arg(scratch.file(""));
    let (code, said) = told(&again.output().expect("joj"));
    assert_eq!(code, Some(0), "{said}");
    let result: WhatifResult =
        serde_json::from_slice(&std::fs::read(&file).expect("a result")).expect("JSON");
    let syncs = |configuration| result.figures(configuration).expect("figures").syncs;
    assert_eq!(
        [Configuration::Recorded, Configuration::CachesNoSync].map(syncs),
        [Some(3), Some(1)],
        "{result:?}"
    );
}

#[test]
fn directories_that_a_program_made_inaccessible_go_with_its_copy() {
    let scratch = Scratch::new("whatif-rerun-closed");
    let place = place(&scratch);
    let joj = env!("CARGO_BIN_EXE_joj");
    let mut command = Command::new(joj);
    if rustix::process::geteuid().is_root() {
        // Root may do all of it.
        std::os::unix::fs::chown(&place, Some(65534), Some(65534)).expect("another owner");
        let run = ["--reuid", "65534", "--regid", "65534", "--clear-groups", joj];
        if !Command::new("setpriv")
            .args(run)
            .arg("--version")
            .output()
            .is_ok_and(|output| output.status.success())
        {
            println!("skipped: no other user may run joj here");
            return;
        }
        command = Command::new("setpriv");
        command.args(run);
    }
    let script =
        "mkdir -p closed/a/b && echo > closed/a/b/file && chmod 000 closed/a closed && ln -s / closed-too";
    command.current_dir(&place).args(["whatif", "--rerun", "--rounds", "1", "--only", "recorded,all-in-ram"]);
    let output = command.args(["--", "sh", "-c", script]).output().expect("joj");
    let (code, said) = told(&output);
    assert_eq!(code, Some(0), "{said}");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(!printed.contains("stays") && !said.contains("cannot remove"), "{printed}{said}");
    assert_eq!(names(&place), ["given"], "{printed}{said}");
}
