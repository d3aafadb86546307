//! Goal: `joj whatif --rerun` runs the program itself in each configuration that it can have so, and says of the others why not.
//! Method: shells whose exit codes and files tell in what they ran. No time is compared.

mod replay;
mod rerun;

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

use joj_analysis::recording::whatif::configuration::Configuration;
use joj_analysis::recording::whatif::outcome::{WhatifOutcome, WhatifResult};
use replay::{Scratch, record, told};
use rerun::{place, rerun, result, whatif, with_own_mounts};

#[test]
fn each_run_begins_with_the_files_of_the_directory_which_stay_as_they_are() {
    let scratch = Scratch::new("whatif-rerun");
    let place = place(&scratch);
    // It fails where a run before it left something.
    let script = "test ! -e made && cat given > made && sync made && rm given";
    let result = result(&place, script);
    for configuration in [Configuration::Recorded, Configuration::AllInMemory, Configuration::NoSync] {
        assert!(
            rerun(&result, configuration).is_ok_and(|ns| ns > 0.0),
            "{configuration:?}: {:?}",
            result.rows
        );
    }
    for (configuration, reason) in [
        (Configuration::DatabasesInMemory, "only the program itself can put these files elsewhere"),
        (Configuration::Wal, "the program itself sets journal_mode"),
        (Configuration::Waldio, "the program itself has to load waldio"),
    ] {
        let found = rerun(&result, configuration).expect_err("a reason");
        assert!(found.contains(reason), "{configuration:?}: {found}");
    }
    let names: Vec<_> =
        std::fs::read_dir(&place).expect("names").map(|name| name.expect("a name").file_name()).collect();
    assert_eq!(names, ["given"], "the directory stays as it is");
    assert!(
        result.advice.iter().any(|said| said.contains("was run in 3 of these configurations")),
        "{result:?}"
    );
}

#[test]
fn without_syncs_the_kernel_makes_none_and_another_exit_code_is_told() {
    let scratch = Scratch::new("whatif-rerun-syncs");
    let place = place(&scratch);
    // The kernel refuses to sync a pipe.
    let result = result(&place, "echo > made; true | sync /dev/stdin");
    assert!(rerun(&result, Configuration::Recorded).is_ok(), "{:?}", result.rows);
    let reason = rerun(&result, Configuration::NoSync).expect_err("another exit code");
    assert_eq!(reason, "the program ended with 0 there, and with 1 when it was recorded");
}

#[test]
fn the_table_has_the_runs_beside_the_forecast_and_wrong_options_are_refused() {
    let scratch = Scratch::new("whatif-rerun-text");
    let place = place(&scratch);
    let text = whatif(&place, &["--only", "no-sync,wal"], "echo > made; sync made");
    let text = String::from_utf8(text.stdout).expect("text");
    let head = text.lines().find(|line| line.contains("elapsed")).expect("a head");
    assert!(head.contains("run itself  forecast is  of recorded"), "{text}");
    assert!(text.contains("\nWAL: was not run itself: the program itself sets journal_mode"), "{text}");
    for words in [&["whatif", "--rerun", "app.joj"][..], &["whatif", "--rerun", "--lab", "--", "true"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_joj")).args(words).output().expect("joj");
        assert_eq!(told(&output).0, Some(2), "{words:?}");
    }
}

#[test]
fn a_result_on_standard_output_has_nothing_of_the_command_in_it() {
    let scratch = Scratch::new("whatif-rerun-printed");
    let place = place(&scratch);
    for rerun in [&[][..], &["--rerun"]] {
        let run = |words: &[&str]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_joj"));
            command.current_dir(&place).args(["whatif", "--rounds", "1", "--only", "recorded"]).args(rerun);
            command.args(words).args(["--", "sh", "-c", "echo printed; echo x > made; rm made"]);
            let output = command.output().expect("joj");
            let (code, said) = told(&output);
            assert_eq!(code, Some(0), "{said}");
            (String::from_utf8(output.stdout).expect("text"), said.lines().any(|line| line == "printed"))
        };
        let (json, is_elsewhere) = run(&["--json", "-"]);
        serde_json::from_str::<WhatifResult>(&json).expect("JSON alone");
        assert!(is_elsewhere);
        let (markdown, is_elsewhere) = run(&["--markdown", "-"]);
        assert!(markdown.starts_with("# What would make it faster\n") && is_elsewhere, "{markdown}");
        let (table, is_elsewhere) = run(&[]);
        assert!(table.starts_with("printed\n") && !is_elsewhere, "{table}");
    }
}

#[test]
fn what_a_program_leaves_at_work_is_ended_with_each_run_and_told() {
    let scratch = Scratch::new("whatif-rerun-left");
    let place = place(&scratch);
    // It makes its directory again and again; a second one is asleep in a session of its own.
    let left = "(trap '' TERM HUP; while :; do mkdir -p \"$PWD/more\"; done) >/dev/null 2>&1 &";
    let script = format!("echo > made; sync made; {left} setsid sleep 3600 >/dev/null 2>&1 & exit 0");
    let result = result(&place, &script);
    let told = result.notes.iter().find(|note| note.contains("still at work")).expect("a note");
    // Two of the recorded run and of one in each of three rows; and the mkdir of some.
    let (_, behind) = told.split_once("it left ").expect("a number");
    let left: u64 = behind.split(' ').next().and_then(|number| number.parse().ok()).expect("a number");
    assert!((8..=12).contains(&left), "{told}");
    assert_eq!(scratch.names(), ["place", "place.json"]);
    let names: Vec<_> =
        std::fs::read_dir(&place).expect("names").map(|name| name.expect("a name").file_name()).collect();
    assert_eq!(names, ["given"]);
}

#[test]
fn a_file_outside_of_the_directory_is_named_by_its_whole_path() {
    let scratch = Scratch::new("whatif-rerun-outside");
    let place = place(&scratch);
    std::fs::write(scratch.file("beside.sh"), "echo > made").expect("a file");
    let run = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_joj"));
        command.current_dir(&place).args(["whatif", "--rounds", "1", "--only", "recorded", "--rerun", "--"]);
        told(&command.args(words).output().expect("joj"))
    };
    let (code, said) = run(&["sh", "../beside.sh"]);
    assert_eq!(code, Some(1), "{said}");
    let whole = scratch.file("beside.sh").canonicalize().expect("a path").display().to_string();
    assert!(said.contains("`../beside.sh` is a file outside of this directory"), "{said}");
    assert!(said.contains(&format!("write its whole path, {whole}")), "{said}");
    let (code, said) = run(&["sh", &whole]);
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn a_program_that_writes_to_the_directory_itself_does_so_once_and_not_in_each_run() {
    let scratch = Scratch::new("whatif-rerun-original");
    let place = place(&scratch);
    let given = place.join("given");
    let script = format!("echo more >> {}; echo > made", given.display());
    let (code, said) = told(&whatif(&place, &["--only", "recorded,no-sync"], &script));
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains(&format!("writes {} by a name that leads out of the copy", given.display())),
        "{said}"
    );
    assert_eq!(std::fs::read_to_string(&given).expect("a file"), "textmore\n", "the recorded run alone");
}

#[test]
fn nothing_is_deleted_behind_a_mount_that_a_program_leaves() {
    let scratch = Scratch::new("whatif-rerun-mounts");
    let place = place(&scratch);
    std::fs::create_dir(scratch.file("gold")).expect("a directory");
    std::fs::write(scratch.file("gold").join("kept"), "text").expect("a file");
    // `shared` passes mounts on to what is bound from it: what is in it must stay mounted.
    let script = "mkdir shared && mount -t tmpfs none shared && mount --make-shared shared && mkdir shared/inner \
        && mount -t tmpfs none shared/inner && echo > shared/inner/kept && top=$PWD && cd place \
        && $1 whatif --rerun --rounds 1 --only recorded,all-in-ram --json ../out.json -- sh -c \
        \"mkdir one two && mount --bind $top/gold one && mount --bind $top/gold one && mount --rbind $top/shared two\" \
        && test -e ../shared/inner/kept";
    let Some((code, said)) = with_own_mounts(&scratch.file(""), script) else { return };
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(std::fs::read_to_string(scratch.file("gold").join("kept")).expect("the file"), "text");
    let result = std::fs::read(scratch.file("out.json")).expect("a result");
    let result: WhatifResult = serde_json::from_slice(&result).expect("JSON");
    assert!(result.notes.iter().any(|note| note.contains("(one, two): joj unmounted it")), "{result:?}");
    assert_eq!(std::fs::read_dir(&place).expect("names").count(), 1, "no copy stays");
}

#[test]
fn where_memory_is_read_only_the_reason_names_what_makes_it_writable() {
    let scratch = Scratch::new("whatif-memory");
    let script = "mount -t tmpfs none /dev/shm && mount -o remount,ro /dev/shm && whatif() { \
        $1 whatif maps . --rounds 1 --only recorded,all-in-ram --json $2; } && whatif $1 before.json \
        && mount -o remount,rw /dev/shm && whatif $1 after.json && test -z \"$(ls -A /dev/shm)\"";
    let Some((code, said)) = with_own_mounts(&scratch.file(""), script) else { return };
    assert_eq!(code, Some(0), "{said}");
    let [before, after] = ["before.json", "after.json"].map(|name| {
        let result = std::fs::read(scratch.file(name)).expect("a result");
        serde_json::from_slice::<WhatifResult>(&result).expect("JSON").rows[1].outcome.clone()
    });
    let WhatifOutcome::Unavailable(reason) = before else { panic!("{before:?}") };
    assert!(reason.contains("`mount -o remount,rw /dev/shm`") && !reason.contains("bench"), "{reason}");
    assert!(matches!(after, WhatifOutcome::Measured(_)), "{after:?}");
}

/// A row is measured as the emulated machine does it, on a disk that is too small.
#[test]
fn a_full_emulated_disk_is_told_without_a_directory_of_the_machine() {
    let scratch = Scratch::new("whatif-full");
    let write = r#"write(3, ""..., 1048576) = 1048576"#;
    let line = |call: &str, number: u32| format!("1 1700000000.{number:06} {call} <0.000010>\n");
    let writes: String = (1..9).map(|number| line(write, number)).collect();
    let open = line(r#"open("/d/a", O_RDWR|O_CREAT|O_TRUNC, 0644) = 3"#, 0);
    record(&scratch, "large", format!("{open}{writes}"));
    // Of this one nobody knows before.
    record(&scratch, "grows", format!("{open}{writes}{}", line(r#"unlink("/d/a") = 0"#, 9)));
    let script = "mkdir small && mount -t tmpfs -o size=4m none small && for name in large grows; do \
        $1 whatif $name.joj small --rounds 1 --only recorded --alone 2> $name.text && exit 9; done; true";
    let Some((code, said)) = with_own_mounts(&scratch.file(""), script) else { return };
    assert_eq!(code, Some(0), "{said}");
    for name in ["large.text", "grows.text"] {
        let said = std::fs::read_to_string(scratch.file(name)).expect("what it said");
        let said = said.lines().last().unwrap_or_default();
        assert!(said.starts_with("joj: the emulated disk is full: ") && !said.contains("small"), "{said}");
        assert!(said.contains("a DIR on a disk with room"), "{said}");
    }
}

#[test]
fn what_a_killed_joj_left_is_not_removed_where_something_is_mounted_in_it() {
    let scratch = Scratch::new("whatif-rerun-left-mount");
    let place = place(&scratch);
    std::fs::create_dir(scratch.file("gold")).expect("a directory");
    std::fs::write(scratch.file("gold").join("kept"), "text").expect("a file");
    let script = "cd place && mkdir -p 'joj-whatif-1-0/a b' && : > joj-whatif-1-0.lock \
        && mount --bind ../gold 'joj-whatif-1-0/a b' && $1 whatif --rerun --rounds 1 --only recorded -- true";
    let Some((code, said)) = with_own_mounts(&scratch.file(""), script) else { return };
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("joj-whatif-1-0 of a joj that was killed stays: something is mounted on "),
        "{said}"
    );
    assert!(said.contains("joj-whatif-1-0/a b, and what lies behind it"), "{said}");
    assert!(scratch.file("gold").join("kept").exists(), "{said}");
    assert!(place.join("joj-whatif-1-0").exists() && place.join("joj-whatif-1-0.lock").exists(), "{said}");
}

#[test]
fn a_copy_that_stays_is_told_with_the_remedy() {
    let scratch = Scratch::new("whatif-rerun-kept");
    let place = place(&scratch);
    let probe = scratch.file("probe");
    std::fs::write(&probe, "").expect("a file");
    let chattr = |how: &str, file: &Path| {
        let run = Command::new("chattr").args(["-R", how]).arg(file).output();
        run.is_ok_and(|output| output.status.success())
    };
    if !chattr("+i", &probe) {
        println!("skipped: no immutable files here");
        return;
    }
    chattr("-i", &probe);
    let file = scratch.file("out.json");
    let json = file.display().to_string();
    let script = "echo > made; chattr +i made";
    let (code, said) = told(&whatif(&place, &["--only", "recorded", "--json", &json], script));
    chattr("-i", &place);
    assert_eq!(code, Some(0), "{said}");
    let result: WhatifResult =
        serde_json::from_slice(&std::fs::read(&file).expect("a result")).expect("JSON");
    let told =
        result.notes.iter().filter(|note| note.starts_with("The copy ") && note.contains("chattr -R -i"));
    assert_eq!(told.count(), 2, "{result:?}");
}

#[test]
fn patterns_for_whole_paths_name_files_of_the_directory_itself() {
    let scratch = Scratch::new("whatif-rerun-classes");
    let place = place(&scratch).canonicalize().expect("a path");
    let file = scratch.file("out.json");
    let [permanent, cache] = ["permanent:", "cache:"].map(|class| {
        format!("{class}{}/cc/{}*", place.display(), if class == "cache:" { "" } else { "keep" })
    });
    let json = file.display().to_string();
    let words =
        ["--json", &json, "--only", "recorded,caches-no-sync", "--class", &permanent, "--class", &cache];
    let script = "mkdir cc; echo > cc/keep; sync cc/keep; echo > cc/two; sync cc/two";
    let (code, said) = told(&whatif(&place, &words, script));
    assert_eq!(code, Some(0), "{said}");
    let result: WhatifResult =
        serde_json::from_slice(&std::fs::read(&file).expect("a result")).expect("JSON");
    let syncs = |configuration| result.figures(configuration).expect("figures").syncs;
    assert_eq!(syncs(Configuration::Recorded), Some(2), "{result:?}");
    assert_eq!(syncs(Configuration::CachesNoSync), Some(1), "{result:?}");
}

#[test]
fn the_copy_itself_has_the_mode_and_the_time_of_the_directory() {
    let scratch = Scratch::new("whatif-rerun-top");
    let place = place(&scratch);
    std::fs::set_permissions(&place, std::fs::Permissions::from_mode(0o1750)).expect("its mode");
    let time = Command::new("touch").args(["-d", "@1000000000"]).arg(&place).status();
    assert!(time.is_ok_and(|status| status.success()));
    let facts = std::fs::metadata(&place).expect("the directory");
    let expected = format!("{}:{} 1750 1000000000", facts.uid(), facts.gid());
    let result = result(&place, &format!("test \"$(stat -c '%u:%g %a %Y' .)\" = '{expected}'"));
    assert!(result.notes.iter().all(|note| !note.contains("exit code")), "{:?}", result.notes);
    assert!(rerun(&result, Configuration::AllInMemory).is_ok(), "{:?}", result.rows);
}

#[test]
fn memory_that_would_become_full_is_a_reason_and_no_figure() {
    let scratch = Scratch::new("whatif-rerun-full");
    let place = place(&scratch);
    std::fs::write(place.join("big"), vec![1; 3 << 20]).expect("a file");
    // What is made and removed again needs room, too; and a directory in which nothing more can be made.
    let programs = [
        (
            "size=8M",
            "dd if=/dev/zero of=y bs=64k count=160; rm y; true",
            "all that the program writes need 13,",
        ),
        ("size=8M,nr_inodes=3", "true", "bytes, or inodes (`df -i`), are all used"),
    ];
    for (options, program, expected) in programs {
        let script = format!(
            "mount -t tmpfs -o {options} none /dev/shm && cd place && $1 whatif --rerun --rounds 1 --only recorded,all-in-ram --json \
             ../out.json -- sh -c '{program}'"
        );
        let Some((code, said)) = with_own_mounts(&scratch.file(""), &script) else { return };
        assert_eq!(code, Some(0), "{said}");
        let result = std::fs::read(scratch.file("out.json")).expect("a result");
        let result: WhatifResult = serde_json::from_slice(&result).expect("JSON");
        let reason = rerun(&result, Configuration::AllInMemory).expect_err("no room");
        assert!(reason.contains(expected), "{reason}");
        assert!(rerun(&result, Configuration::Recorded).is_ok(), "{result:?}");
    }
}

#[test]
fn a_name_that_is_too_long_to_be_copied_says_what_to_do() {
    let scratch = Scratch::new("whatif-rerun-deep");
    let place = place(&scratch);
    let deep = "i=0; while [ $i -lt 25 ]; do n=$(printf %0200d $i); mkdir $n && cd -P $n || exit 1; i=$((i + 1)); done";
    let made = Command::new("sh").current_dir(&place).args(["-c", deep]).status();
    assert!(made.is_ok_and(|status| status.success()));
    let (code, said) = told(&whatif(&place, &["--only", "recorded"], "true"));
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("cannot copy ") && said.contains("fewer lie in each other, or leave --rerun out"),
        "{said}"
    );
    assert!(said.len() < 1_000, "{said}");
}

#[test]
fn no_run_changes_a_file_of_the_directory_by_what_joj_has_open_nor_its_mode_unseen() {
    let scratch = Scratch::new("whatif-rerun-held");
    let place = place(&scratch);
    let script =
        "exec 7>held; exec \"$0\" whatif --rerun --rounds 1 --only recorded -- sh -c 'echo data >&7'";
    let run = Command::new("sh").current_dir(&place).args(["-c", script, env!("CARGO_BIN_EXE_joj")]).output();
    let (code, said) = told(&run.expect("joj"));
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(std::fs::read_to_string(place.join("held")).expect("the file"), "", "{said}");
    let given = place.join("given").display().to_string();
    let (code, said) = told(&whatif(&place, &["--only", "recorded"], &format!("chmod 600 {given}")));
    assert!(
        code == Some(1) && said.contains(&format!("writes {given} by a name that leads out of the copy")),
        "{code:?} {said}"
    );
}
