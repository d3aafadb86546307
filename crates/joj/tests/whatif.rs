//! Goal: each configuration of `joj whatif` is what its name says, and what cannot be had says why.
//! Method: recordings made of text, of which the calls for durability are known in each mode; damaged ones; a command; Ctrl-C. No time is
//! compared but think time, which no disk shortens.

mod record;
mod replay;
mod waldio;
mod whatif_made;

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use replay::{Scratch, joj, printed, record, told};
use serde_json::Value;
use whatif_made::{Text, names_of_whatif, rows_of, whatif};

/// Commits in DELETE mode: each has a sync of the journal, of its directory, and of the database.
const COMMITS: u64 = 30;
const SYNCS_OF_COMMIT: u64 = 3;
/// Syncs of files that are no databases.
const OTHER_SYNCS: u64 = 7;
/// Of these, caches.
const CACHE_SYNCS: u64 = 3;
/// Think time of the recording.
const THINK_NS: f64 = 200e6;

/// Commits, caches, and think time.
fn application() -> String {
    text_of_application().text
}

fn text_of_application() -> Text {
    let mut text = Text::default();
    text.line(r#"open("/d/app.db", O_RDWR|O_CREAT|O_EXCL, 0644) = 3"#).line(r#"mkdir("/d/Cache", 0777) = 0"#);
    for commit in 0..COMMITS {
        text.commit(1 + commit % 3);
    }
    text.now_us += 200_000;
    for file in 0..OTHER_SYNCS {
        text.file(&if file < CACHE_SYNCS { format!("/d/Cache/{file}") } else { format!("/d/{file}.text") });
    }
    text
}

#[test]
fn each_configuration_has_the_syncs_of_its_mode() {
    let scratch = Scratch::new("whatif-syncs");
    let recording = record(&scratch, "app", application());
    let found = whatif(&recording, scratch.as_ref(), &["--rounds", "1"]);
    let rows = rows_of(&found);
    let syncs = |name: &str| rows[name].as_ref().ok().map(|figures| figures["syncs"].as_u64());
    let recorded = COMMITS * SYNCS_OF_COMMIT + OTHER_SYNCS;
    for name in ["recorded", "databases-in-ram", "caches-in-ram", "all-in-ram"] {
        assert_eq!(syncs(name), Some(Some(recorded)), "{name}: {found:#}");
        assert_eq!(rows[name].as_ref().expect("figures")["differing"], 0, "{name}");
    }
    assert_eq!(syncs("no-sync"), Some(Some(0)));
    assert_eq!(syncs("caches-no-sync"), Some(Some(recorded - CACHE_SYNCS)));
    let database = serde_json::json!({ "path": "/d/app.db", "journal_mode": "delete", "commits": COMMITS });
    assert_eq!(found["databases"], serde_json::json!([database]));
    match (syncs("wal"), syncs("wal-normal")) {
        (Some(Some(full)), Some(Some(normal))) => {
            assert_eq!(found["notes"].to_string().contains("debug build"), cfg!(debug_assertions));
            // Both prepare the log once; FULL syncs it at each commit besides.
            assert_eq!(full - normal, COMMITS, "{full}, {normal}");
            assert!((OTHER_SYNCS..OTHER_SYNCS + 4).contains(&normal), "{normal}");
            // The last close copies the log back: it syncs the log, and then the database.
            let closed = record(&scratch, "closed", text_of_application().line("close(3) = 0").text.clone());
            let words = ["--rounds", "1", "--only", "recorded,wal,wal-normal"];
            let closed = rows_of(&whatif(&closed, scratch.as_ref(), &words));
            let syncs = |name: &str| closed[name].as_ref().expect("figures")["syncs"].as_u64();
            let expected = [("recorded", recorded), ("wal", full + 2), ("wal-normal", normal + 2)];
            assert_eq!(expected.map(|(name, _)| syncs(name)), expected.map(|(_, calls)| Some(calls)));
        }
        other => waldio::skipped(&format!("the kernel counts no calls of a replay: {other:?}")),
    }
    assert_eq!(names_of_whatif(scratch.as_ref()), [""; 0], "what it made is gone");
}

/// What SQLite promises of commits to several databases (its documentation of ATTACH): whole with rollback journals, each for itself with
/// logs.
#[test]
fn commits_to_several_databases_are_told_to_be_whole_as_recorded_alone() {
    let scratch = Scratch::new("whatif-databases");
    let mut text = Text::default();
    for (name, file) in [("a", 3), ("b", 7)] {
        text.line(&format!(r#"open("/d/{name}.db", O_RDWR|O_CREAT|O_EXCL, 0644) = {file}"#));
    }
    for _ in 0..3 {
        for (name, journal) in [("a", 4), ("b", 8)] {
            text.line(&format!(r#"open("/d/{name}.db-journal", O_RDWR|O_CREAT, 0644) = {journal}"#))
                .line(&format!(r#"pwrite64({journal}, ""..., 512, 0) = 512"#))
                .line(&format!("fdatasync({journal}) = 0"));
        }
        for file in [3, 7] {
            text.line(&format!(r#"pwrite64({file}, ""..., 4096, 0) = 4096"#))
                .line(&format!("fdatasync({file}) = 0"));
        }
        for (name, journal) in [("a", 4), ("b", 8)] {
            text.line(&format!("close({journal}) = 0"))
                .line(&format!(r#"unlink("/d/{name}.db-journal") = 0"#));
        }
    }
    let both = record(&scratch, "both", text.text);
    let one = record(&scratch, "one", application());
    for (recording, is_torn) in [(both, true), (one, false)] {
        let result = whatif(&recording, scratch.as_ref(), &["--rounds", "1", "--only", "recorded,wal"]);
        let said = |row: usize| result["rows"][row]["gives_up"].as_str().expect("words").to_owned();
        assert_eq!(said(1).contains("part of a commit to several"), is_torn, "{}", said(1));
        assert_eq!(said(0), "nothing: as the program has it");
    }
}

#[test]
fn where_two_threads_sync_replays_may_wait_for_think_time() {
    let scratch = Scratch::new("whatif-think");
    let mut text = Text::default();
    for round in 0..5 {
        for thread in [1, 2] {
            let mut own = Text { now_us: text.now_us, ..Text::default() };
            own.file(&format!("/d/{thread}-{round}"));
            text.text +=
                &own.text.replace("\n1 ", &format!("\n{thread} ")).replacen('1', &thread.to_string(), 1);
            text.now_us = own.now_us + 20_000;
        }
    }
    let alone = record(
        &scratch,
        "alone",
        text.text
            .lines()
            .filter(|line| line.starts_with('1'))
            .fold(String::new(), |all, line| all + line + "\n"),
    );
    let both = record(&scratch, "both", text.text);
    let only = ["--rounds", "1", "--only", "recorded"];
    let found = |recording: &Path, more: &[&str]| {
        let begin = Instant::now();
        let result = whatif(recording, scratch.as_ref(), &[&only[..], more].concat());
        let notes = result["notes"].as_array().expect("notes").clone();
        let says = notes.iter().any(|note| note.as_str().is_some_and(|note| note.contains("--think-time")));
        (says, begin.elapsed())
    };
    assert!(found(&both, &[]).0 && !found(&alone, &[]).0, "said where it matters");
    let (says, took) = found(&both, &["--think-time"]);
    assert!(!says && took >= Duration::from_millis(9 * 20), "it waits: {took:?}");
}

#[test]
fn each_class_of_files_is_as_durable_as_it_has_to_be() {
    let scratch = Scratch::new("whatif-classes");
    let recording = record(&scratch, "app", application());
    let only = ["--rounds", "1", "--only", "by-class,caches-no-sync,caches-in-ram"];
    let found = |words: &[&str]| rows_of(&whatif(&recording, scratch.as_ref(), &[&only[..], words].concat()));
    let none = found(&[]);
    let reason = none["by-class"].as_ref().expect_err("nothing is temporary");
    assert!(reason.contains("--class 'temporary:PATTERN'"), "{reason}");
    let recorded = COMMITS * SYNCS_OF_COMMIT + OTHER_SYNCS;
    // The syncs of temporary files are made, in memory; those of caches are not; of what is permanent all are there.
    for (words, caches, by_class) in [
        (&["--class", "temporary:*.text"][..], recorded - CACHE_SYNCS, recorded - CACHE_SYNCS),
        // A journal is of its database's class, and its directory is synced for it. The first such sync is for `Cache` there, too.
        (&["--class", "temporary:*.text", "--class", "cache:*.db"], OTHER_SYNCS + 1, OTHER_SYNCS + 1),
        (
            &["--class", "temporary:*.text", "--class", "cache:/d", "--class", "permanent:*.db"],
            recorded - CACHE_SYNCS,
            recorded - CACHE_SYNCS,
        ),
        (&["--class", "temporary:*.text", "--class", "permanent:/d/Cache/1"], recorded - 2, recorded - 2),
    ] {
        let rows = found(words);
        for (name, syncs) in [("caches-in-ram", recorded), ("caches-no-sync", caches), ("by-class", by_class)]
        {
            let figures = rows[name].as_ref().expect("figures");
            assert_eq!(
                (&figures["syncs"], &figures["differing"]),
                (&syncs.into(), &0.into()),
                "{name}: {words:?}"
            );
        }
    }
}

#[test]
fn think_time_is_in_each_elapsed_time_and_no_replay_waits_for_it() {
    let scratch = Scratch::new("whatif-think");
    let recording = record(&scratch, "app", application());
    let found = whatif(&recording, scratch.as_ref(), &["--rounds", "1"]);
    for (name, figures) in rows_of(&found) {
        let Ok(figures) = figures else { continue };
        let [elapsed, blocked] = ["elapsed_ns", "blocked_ns"].map(|name| figures[name]["median"].as_f64());
        let (elapsed, blocked) = (elapsed.expect("a time"), blocked.expect("a time"));
        assert!(elapsed >= THINK_NS + blocked, "{name}: {elapsed} with {blocked} in calls");
    }
}

/// A program that computes for 200 ms between two statements of a transaction does so in each journal mode.
#[test]
fn what_a_program_does_within_a_transaction_is_in_the_rows_with_commits() {
    let scratch = Scratch::new("whatif-within");
    let mut text = Text::default();
    text.line(r#"open("/d/app.db", O_RDWR|O_CREAT|O_EXCL, 0644) = 3"#);
    text.line(r#"open("/d/app.db-journal", O_RDWR|O_CREAT, 0644) = 4"#)
        .line(r#"pwrite64(4, ""..., 512, 0) = 512"#);
    text.now_us += 200_000;
    text.line("fdatasync(4) = 0")
        .line(r#"pwrite64(3, ""..., 4096, 0) = 4096"#)
        .line(r#"pwrite64(3, ""..., 4096, 4096) = 4096"#)
        .line("fdatasync(3) = 0")
        .line("close(4) = 0")
        .line(r#"unlink("/d/app.db-journal") = 0"#);
    let recording = record(&scratch, "within", text.text);
    let result =
        whatif(&recording, scratch.as_ref(), &["--rounds", "1", "--only", "recorded,wal,wal-normal"]);
    for (row, figures) in rows_of(&result) {
        let elapsed_ns = figures.expect("figures")["elapsed_ns"]["median"].as_f64().expect("a time");
        assert!(elapsed_ns >= THINK_NS, "{row}: {elapsed_ns}");
    }
}

#[test]
fn waldio_has_its_rows_where_the_extension_is_and_a_reason_elsewhere() {
    let scratch = Scratch::new("whatif-waldio");
    let recording = record(&scratch, "app", application());
    let words = ["--rounds", "1", "--only", "waldio,waldio-bounded"];
    let no_library = "-p waldio`, or leave its rows out with --only";
    for (file, why) in [("libnone.so", "cannot find the waldio extension"), ("app.joj", no_library)] {
        let file = scratch.file(file).display().to_string();
        let found = whatif(&recording, scratch.as_ref(), &[&words[..], &["--waldio", &file]].concat());
        let none = rows_of(&found);
        assert_eq!(none.len(), 3, "the recorded one and those that were asked for");
        for name in ["waldio", "waldio-bounded"] {
            let reason = none[name].as_ref().expect_err("no extension");
            assert!(reason.contains(why), "{reason}");
        }
    }
    let Some(extension) = waldio::extension() else { return };
    let extension = extension.display().to_string();
    let found = whatif(&recording, scratch.as_ref(), &[&words[..], &["--waldio", &extension]].concat());
    let rows = rows_of(&found);
    let syncs = |name: &str| rows[name].as_ref().expect("figures")["syncs"].as_u64();
    match (syncs("waldio"), syncs("waldio-bounded")) {
        (Some(full), Some(bounded)) => {
            assert!(full >= COMMITS + OTHER_SYNCS, "each COMMIT waits for a flush: {full}");
            assert!(bounded < full, "flushes are shared: {bounded} of {full}");
        }
        _ => waldio::skipped("the kernel counts no calls of a replay"),
    }
}

#[test]
fn what_makes_waldios_commits_less_durable_than_its_rows_say_is_the_reason_of_these_rows_alone() {
    let scratch = Scratch::new("whatif-durability");
    let recording = record(&scratch, "app", application());
    for name in ["WALDIO_DURABILITY", "WALDIO_GROUP", "WALDIO_NO_SYNC"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_joj"));
        command.env(name, "1").arg("whatif").args([recording.as_path(), scratch.as_ref()]);
        command.args(["--rounds", "1", "--json", "-", "--only", "wal,waldio,waldio-bounded"]);
        let found = serde_json::from_str(&printed(&command.output().expect("joj"))).expect("JSON");
        let rows = rows_of(&found);
        assert!(rows["recorded"].is_ok() && rows["wal"].is_ok(), "{name}: {found:#}");
        for row in ["waldio", "waldio-bounded"] {
            let reason = rows[row].as_ref().expect_err(row);
            assert!(reason.starts_with(&format!("{name} is set: ")), "{reason}");
            assert!(reason.contains("unset it, or") && reason.contains("--only"), "{reason}");
        }
    }
}

#[test]
fn a_program_without_databases_or_caches_has_reasons_in_their_rows() {
    let scratch = Scratch::new("whatif-files");
    let mut text = Text::default();
    text.file("/d/a").file("/d/b");
    let recording = record(&scratch, "files", text.text);
    let words = ["--rounds", "1", "--class", "cache:*.cache"];
    let found = whatif(&recording, scratch.as_ref(), &words);
    let found = rows_of(&found);
    for (name, reason) in [
        ("databases-in-ram", "there is no SQLite database in it"),
        ("caches-in-ram", "no file of it is named *.cache; name some with --class 'cache:PATTERN'"),
        ("wal", "no commit of a SQLite database is in it"),
        ("waldio-bounded", "no commit of a SQLite database is in it"),
    ] {
        let told = found[name].as_ref().expect_err(name);
        assert!(told.contains(reason), "{name}: {told}");
    }
    let words = ["--rounds", "1", "--class", "temporary:/d/b", "--only", "by-class"];
    let found_by_class = whatif(&recording, scratch.as_ref(), &words);
    assert_eq!(found_by_class["rows"][1]["gives_up"], "a restart of the machine takes temporary files");
    for (name, syncs) in [("recorded", 2), ("all-in-ram", 2), ("no-sync", 0)] {
        assert_eq!(found[name].as_ref().expect("figures")["syncs"], syncs, "{name}");
    }
    let words = ["--rounds", "1", "--class", "temporary:/d/?", "--class", "permanent:/d/a"];
    let words = [&words[..], &["--class", "cache:/d/b", "--only", "caches-in-ram,caches-no-sync"]].concat();
    for (name, told) in rows_of(&whatif(&recording, scratch.as_ref(), &words)) {
        let reason = "no file of it that is named /d/b is a cache: 1 is temporary by another pattern or name; name some with --class";
        assert!(name == "recorded" || told.expect_err("no cache").starts_with(reason), "{name}");
    }
    let words =
        ["--rounds", "1", "--only", "by-class", "--class", "temporary:/d/b", "--class", "permanent:b"];
    let told = rows_of(&whatif(&recording, scratch.as_ref(), &words));
    let reason = told["by-class"].as_ref().expect_err("nothing is temporary");
    assert!(
        reason.starts_with("no file of it that is named /d/b is temporary: 1 is permanent by"),
        "{reason}"
    );
    let text = printed(&joj(&[&"whatif", &recording, &scratch.as_ref(), &"--rounds", &"1"]));
    assert!(text.contains("\nWAL: cannot be had: no commit of a SQLite database"), "{text}");
}

#[test]
fn rows_that_names_decide_cannot_be_had_where_names_are_hidden() {
    let scratch = Scratch::new("whatif-hidden");
    let (text, recording) = (scratch.file("app.strace"), scratch.file("app.joj"));
    std::fs::write(&text, application()).expect("a file");
    printed(&joj(&[&"record", &"--import", &text, &"-o", &recording, &"--hide-names"]));
    let only = "recorded,databases-in-ram,caches-in-ram,caches-no-sync,by-class";
    let words = ["--rounds", "1", "--only", only, "--class", "cache:*.text", "--class", "temporary:*.db"];
    for (name, found) in rows_of(&whatif(&recording, scratch.as_ref(), &words)) {
        match name.as_str() {
            "recorded" | "databases-in-ram" => drop(found.expect("SQLite's endings stay")),
            _ => assert!(found.expect_err("no names").starts_with("the names in it are hidden"), "{name}"),
        }
    }
}

#[test]
fn the_result_is_text_and_markdown_and_a_page() {
    let scratch = Scratch::new("whatif-forms");
    let recording = record(&scratch, "app", application());
    let files = ["w.json", "w.md", "w.html"].map(|name| scratch.file(name));
    let text = printed(&joj(&[
        &"whatif",
        &recording,
        &scratch.as_ref(),
        &"--only",
        &"no-sync",
        &"--rounds",
        &"3",
        &"--json",
        &files[0],
        &"--markdown",
        &files[1],
        &"--html",
        &files[2],
    ]));
    let [json, markdown, page] = files.map(|file| std::fs::read_to_string(file).expect("a file"));
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(
        (&json["format"], &json["version"], &json["rounds"]),
        (&"joj-whatif".into(), &2.into(), &3.into())
    );
    let advice = json["advice"][0].as_str().expect("a sentence");
    assert!(advice.starts_with("Of ") && advice.contains("are calls on files"), "{advice}");
    assert!(markdown.contains(advice) && markdown.contains("\n| no sync | "), "{markdown}");
    assert!(page.contains("<svg") && page.contains("no sync"), "{page}");
    assert!(text.contains("a power cut takes the last half minute"), "{text}");
    let words: [&dyn AsRef<OsStr>; 9] = [
        &"whatif",
        &recording,
        &scratch.as_ref(),
        &"--only",
        &"no-sync",
        &"--rounds",
        &"1",
        &"--markdown",
        &"-",
    ];
    assert!(printed(&joj(&words)).starts_with("# What would make it faster\n"));
}

#[test]
fn what_cannot_be_replayed_is_told_and_nothing_is_left() {
    let scratch = Scratch::new("whatif-errors");
    let recording = record(&scratch, "app", application());
    let bytes = std::fs::read(&recording).expect("a recording");
    let damaged = scratch.write("damaged.joj", &bytes[..bytes.len() / 2]);
    let missing = scratch.file("missing");
    let place = scratch.as_ref();
    for (recording, directory, words, code, wanted) in [
        (&damaged, place, &[][..], 1, "was cut off"),
        (&missing, place, &[], 1, "cannot open"),
        (&recording, missing.as_path(), &[], 1, "there is no directory"),
        (&recording, place, &["--class", "cash:*.db"], 2, "there is no class `cash`"),
        (&recording, place, &["--only", "cloud"], 2, "there is no configuration `cloud`"),
        (&recording, place, &["--json", "-", "--markdown", "-"], 2, "only one of --json and --markdown"),
        (&recording, place, &["--html", "-"], 2, "a page goes to a file"),
        (&recording, place, &["--", "true"], 2, "cannot be used with"),
    ] {
        let mut command: Vec<&dyn AsRef<OsStr>> = vec![&"whatif", recording, &directory];
        command.extend(words.iter().map(|word| word as &dyn AsRef<OsStr>));
        let (found, said) = told(&joj(&command));
        assert!(found == Some(code) && said.contains(wanted), "{wanted}: {found:?} {said}");
        assert_eq!(names_of_whatif(place), [""; 0], "{wanted}");
    }
    assert_eq!(told(&joj(&[&"whatif"])).0, Some(2), "neither a recording nor a command");
}

/// The files of a recording that have no room: nothing is made.
#[test]
fn files_without_room_are_refused_before_any_is_made() {
    let scratch = Scratch::new("whatif-room");
    let mut text = Text::default();
    text.line(r#"open("/d/huge", O_RDWR) = 3"#)
        .line(r#"pread64(3, ""..., 4096, 1152921504606846976) = 4096"#);
    let recording = record(&scratch, "huge", text.text);
    let (code, said) = told(&joj(&[&"whatif", &recording, &scratch.as_ref()]));
    assert!(code == Some(1) && said.contains("the files of the recording need"), "{code:?} {said}");
    assert_eq!(names_of_whatif(scratch.as_ref()), [""; 0]);
}

/// A file of 1 TiB needs what is written to it, on the disk and in memory, unless all of it is reserved.
#[test]
fn holes_that_the_program_makes_need_no_room() {
    let scratch = Scratch::new("whatif-holes");
    let made = |call: &str| {
        let mut text = Text::default();
        text.line(r#"open("/d/image", O_RDWR|O_CREAT|O_EXCL, 0644) = 3"#)
            .line(call)
            .line(r#"pwrite64(3, ""..., 4096, 549755813888) = 4096"#)
            .line(r#"link("/d/image", "/d/again") = 0"#);
        text.text
    };
    let recording = record(&scratch, "holes", made("ftruncate(3, 1099511627776) = 0"));
    let result = whatif(&recording, scratch.as_ref(), &["--rounds", "1", "--only", "recorded,all-in-ram"]);
    let rows = rows_of(&result);
    for row in ["recorded", "all-in-ram"] {
        assert!(rows[row].as_ref().is_ok_and(|figures| figures["differing"] == 0), "{row}: {rows:?}");
    }
    let recording = record(&scratch, "reserved", made("fallocate(3, 0, 0, 1099511627776) = 0"));
    let (code, said) = told(&joj(&[&"whatif", &recording, &scratch.as_ref()]));
    assert!(code == Some(1) && said.contains("need 1,073,741,824 KiB"), "{code:?} {said}");
}

#[test]
fn a_command_is_recorded_first_and_runs_where_joj_stands() {
    let scratch = Scratch::new("whatif-command");
    let output = Command::new(env!("CARGO_BIN_EXE_joj"))
        .current_dir(&scratch)
        .args(["whatif", "--rounds", "1", "--json", "w.json", "-o", "it.joj", "--"])
        .args(["sh", "-c", "echo text > made; sleep 0.3; exit 3"])
        .output()
        .expect("joj");
    let (code, said) = told(&output);
    assert_eq!(code, Some(0), "{said}");
    let table = String::from_utf8_lossy(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(table.contains("The command ended with exit code 3"), "{table}");
    // A tracer does not see sleeps.
    let sees_sleeps = record::methods().contains(&"bpf");
    assert_eq!(
        table.contains("Its threads slept, or waited until a limit was over, for 30"),
        sees_sleeps,
        "{table}"
    );
    assert_eq!(scratch.names(), ["it.joj", "made", "w.json"]);
    let json = std::fs::read_to_string(scratch.file("w.json")).expect("JSON");
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["recording"], "sh -c echo text > made; sleep 0.3; exit 3");
    assert!(json["notes"][0].as_str().is_some_and(|note| note.contains("exit code 3")), "{json:#}");
    assert!(rows_of(&json)["recorded"].is_ok(), "{json:#}");
    let (code, said) = told(&joj(&[&"whatif", &"--", &"/no/such/command"]));
    assert_eq!(code, Some(127), "{said}");
}

#[test]
fn ctrl_c_leaves_nothing() {
    let scratch = Scratch::new("whatif-stop");
    let recording = record(&scratch, "app", application());
    let mut child = Command::new(env!("CARGO_BIN_EXE_joj"))
        .arg("whatif")
        .args([recording.as_path(), scratch.as_ref()])
        .args(["--rounds", "1000"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("joj");
    let began = Instant::now();
    while names_of_whatif(scratch.as_ref()).is_empty() && began.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-s", "INT", &id]).status().expect("kill").success());
    assert_eq!(child.wait().expect("its end").code(), Some(130));
    assert_eq!(names_of_whatif(scratch.as_ref()), [""; 0]);
    let own = names_of_whatif(Path::new("/dev/shm")).into_iter().filter(|name| name.contains(&id)).count();
    assert_eq!(own, 0, "nothing is left in memory");
}
