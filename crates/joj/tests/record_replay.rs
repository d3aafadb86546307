//! Goal: a recording says what was imported and nothing more, and a replay of it does what it says.
//! Method: the two published scripts of MobiGen with their known counts, small texts for everything that can be asked for, and for
//! everything that can be wrong the message and the exit code.

mod replay;

use std::path::{Path, PathBuf};

use replay::{Scratch, joj, printed, record, replay, told};

const SMALL: &str = r#"1 1700000000.000000 open("/home/alice/secret-plan.db", O_RDWR|O_CREAT|O_EXCL, 0644) = 3 <0.000010>
1 1700000000.000100 open("/home/alice/secret-plan.db-wal", O_RDWR|O_CREAT|O_EXCL, 0644) = 4 <0.000010>
1 1700000000.000200 pwrite64(4, "PLANTED-CONTENT"..., 4096, 0) = 4096 <0.000010>
1 1700000000.000300 fdatasync(4) = 0 <0.000010>
1 1700000000.000400 read(3, "PLANTED-CONTENT", 100) = 0 <0.000010>
1 1700000000.000500 close(4) = 0 <0.000010>
1 1700000000.200000 unlink("/home/alice/secret-plan.db-wal") = 0 <0.000010>
"#;

/// A published script of MobiGen, where it is there.
fn script(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/data")
        .join(format!("mobigen.out.{name}"));
    if path.is_file() {
        return Some(path);
    }
    eprintln!("skipped: {} is not there", path.display());
    None
}

fn calls(value: &serde_json::Value) -> Vec<(String, u64)> {
    let by_call = value["by_call"].as_object().expect("calls").iter();
    by_call
        .map(|(call, kind)| {
            (call.clone(), kind["calls"].as_u64().expect("calls") + kind["not_made"].as_u64().expect("more"))
        })
        .collect()
}

fn known(counts: &[(&str, u64)]) -> Vec<(String, u64)> {
    let mut known: Vec<_> = counts.iter().map(|(call, calls)| ((*call).to_owned(), *calls)).collect();
    known.sort();
    known
}

/// Figures of Mobibench's documentation of both scripts, counted with other tools.
#[test]
fn mobigens_scripts_have_their_known_counts() {
    let scratch = Scratch::new("record-known");
    let facebook = [
        ("open", 950),
        ("close", 1233),
        ("write", 7497),
        ("pwrite", 6932),
        ("read", 7453),
        ("pread", 2454),
        ("fsync", 997),
        ("stat", 981),
        ("fstat", 1331),
        ("access", 937),
        ("unlink", 54),
    ];
    let twitter = [
        ("open", 273),
        ("close", 1060),
        ("write", 4076),
        ("pwrite", 1953),
        ("read", 2683),
        ("pread", 3461),
        ("fsync", 297),
        ("stat", 732),
        ("lstat", 13),
        ("fstat", 1029),
        ("access", 717),
        ("unlink", 13),
    ];
    for (name, counts, lines, threads, bytes) in [
        ("facebook", &facebook[..], "30,819", 74, [5_084_371, 12_307_016]),
        ("twitter", &twitter, "16,307", 127, [11_494_225, 5_146_556]),
    ] {
        let Some(script) = script(name) else { return };
        let recording = scratch.file(&format!("{name}.joj"));
        let text = printed(&joj(&[&"record", &"--import", &script, &"-o", &recording]));
        assert!(text.contains(&format!("{lines} calls of {threads} threads in 117.89s")), "{text}");
        let found = replay(&recording, scratch.as_ref(), &["--order", "fast"]);
        assert_eq!(calls(&found), known(counts), "{name}");
        let fsyncs = counts.iter().find(|(call, _)| *call == "fsync").expect("a count").1;
        assert_eq!(found["syncs"], serde_json::json!({ "fsync": fsyncs }), "each is issued");
        assert_eq!([&found["read_bytes"], &found["written_bytes"]], [bytes[0], bytes[1]], "{name}");
    }
}

/// Figures of Mobibench's replayer on a machine without the phone's files.
#[test]
fn mobibenchs_own_reading_has_its_known_counts() {
    let scratch = Scratch::new("record-compat");
    for (name, fsyncs, bytes, files) in [("facebook", 682, 11_909_422, 579), ("twitter", 207, 4_872_663, 177)]
    {
        let Some(script) = script(name) else { return };
        let recording = scratch.file(&format!("{name}.joj"));
        printed(&joj(&[&"record", &"--import", &script, &"-o", &recording]));
        let found = replay(&recording, scratch.as_ref(), &["--compat", "--order", "fast"]);
        assert_eq!(
            (&found["syncs"]["fsync"], &found["written_bytes"], &found["files"]),
            (&fsyncs.into(), &bytes.into(), &files.into())
        );
    }
}

#[test]
fn a_replay_does_what_the_recording_says_and_leaves_nothing() {
    let scratch = Scratch::new("record-small");
    let recording = record(&scratch, "small", SMALL);
    let before = scratch.names();
    let found = replay(&recording, scratch.as_ref(), &["--check", "--order", "fast"]);
    assert_eq!(
        calls(&found),
        known(&[("open", 2), ("pwrite", 1), ("fdatasync", 1), ("read", 1), ("close", 1), ("unlink", 1)])
    );
    assert_eq!(
        (&found["written_bytes"], &found["syncs"]),
        (&4096.into(), &serde_json::json!({ "fdatasync": 1 }))
    );
    assert!(found["by_call"].as_object().expect("calls").values().all(|kind| kind["differ"] == 0), "{found}");
    assert_eq!(
        (&found["differences"], &found["recorded_elapsed_ns"]),
        (&serde_json::json!([]), &200_010_000.into())
    );
    assert_eq!(scratch.names(), before, "what it made is gone");
    let found = replay(&recording, scratch.as_ref(), &["--keep"]);
    let kept = PathBuf::from(found["kept"].as_str().expect("a path"));
    assert!(
        kept.join("home/alice/secret-plan.db").is_file()
            && !kept.join("home/alice/secret-plan.db-wal").exists()
    );
}

/// 200 ms of the recording are think time.
#[test]
fn orders_keep_think_time_or_leave_it_out() {
    let scratch = Scratch::new("record-orders");
    let recording = record(&scratch, "small", SMALL);
    let elapsed = |order: &str| {
        let found = replay(&recording, scratch.as_ref(), &["--order", order]);
        assert_eq!(found["order"], order);
        assert_eq!(found["lateness"].is_null(), order == "fast", "{found}");
        found["elapsed_ns"].as_u64().expect("a time")
    };
    assert!(elapsed("fast") < 150_000_000);
    for order in ["timed", "dependent"] {
        let elapsed_ns = elapsed(order);
        assert!((199_000_000..10_000_000_000).contains(&elapsed_ns), "{order}: {elapsed_ns}");
    }
}

/// How much there is to drop is a matter of the machine. The drop is no think time: it does not come on top of its own length.
#[test]
fn dropped_caches_take_as_long_as_in_the_recording() {
    let scratch = Scratch::new("record-drop");
    let text = r#"1 00:00:00.000001 openat(AT_FDCWD, "/proc/sys/vm/drop_caches", O_WRONLY) = 3 <0.000010>
1 00:00:00.000100 write(3, "3", 1) = 1 <0.600000>
1 00:00:00.600200 open("/a", O_RDWR|O_CREAT, 0644) = 4 <0.000010>
"#;
    let recording = record(&scratch, "drop", text);
    let found = replay(&recording, scratch.as_ref(), &["--order", "dependent"]);
    let (elapsed, recorded) = (&found["elapsed_ns"], found["recorded_elapsed_ns"].as_u64().expect("a time"));
    assert_eq!(found["by_call"]["drop_caches"]["calls"], 1, "{found}");
    assert!((590_000_000..650_000_000).contains(&recorded), "{recorded}");
    assert!(elapsed.as_u64().is_some_and(|elapsed_ns| elapsed_ns >= 600_000_000), "{elapsed}");
}

#[test]
fn contents_are_nowhere_and_names_can_be_hidden() {
    let scratch = Scratch::new("record-secrets");
    let bytes = std::fs::read(record(&scratch, "open", SMALL)).expect("a recording");
    let has = |bytes: &[u8], word: &str| bytes.windows(word.len()).any(|window| window == word.as_bytes());
    assert!(has(SMALL.as_bytes(), "PLANTED") && !has(&bytes, "PLANTED"), "contents");
    assert!(has(&bytes, "secret-plan.db"), "a name that is not hidden is there");
    let text = scratch.file("open.txt");
    let hidden = scratch.file("hidden.joj");
    printed(&joj(&[&"record", &"--import", &text, &"-o", &hidden, &"--hide-names"]));
    let bytes = std::fs::read(&hidden).expect("a recording");
    for secret in ["PLANTED", "alice", "secret", "plan", "home"] {
        assert!(!has(&bytes, secret), "{secret}");
    }
    let found = replay(&hidden, scratch.as_ref(), &["--check", "--keep"]);
    assert_eq!(found["differences"], serde_json::json!([]));
    // The log was made in the database's directory, and unlinked by the same name.
    let kept = Path::new(found["kept"].as_str().expect("a path"));
    let left =
        printed(&std::process::Command::new("find").arg(kept).args(["-type", "f"]).output().expect("find"));
    assert!(left.lines().count() == 1 && left.trim_end().ends_with(".db"), "{left}");
    let again = scratch.file("again.joj");
    printed(&joj(&[&"record", &"--import", &text, &"-o", &again, &"--hide-names"]));
    assert!(std::fs::read(&again).expect("a recording") != bytes, "the key is another one each time");
}

#[test]
fn a_difference_is_told_and_the_exit_code_says_so() {
    let scratch = Scratch::new("record-check");
    // Nothing says that the directory is there when the file is made in it: it was seen to be missing.
    let text = r#"1 00:00:00.000001 access("/d", F_OK) = -1 ENOENT (No such file or directory)
1 00:00:00.000002 open("/d/a", O_RDWR|O_CREAT|O_EXCL) = 3
1 00:00:00.000003 write(3, "x", 1) = 1
"#;
    let recording = record(&scratch, "differs", text);
    let output = joj(&[&"replay", &recording, &scratch.as_ref(), &"--check"]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("/d/a is missing: the recording leaves a file of 1 bytes"), "{text}");
    assert!(text.contains("open       1             1         0"), "{text}");
    assert!(text.contains("write      0             0         1"), "its file is not open: {text}");
}

/// The calls lie before the byte that the checksums name: there every flipped bit is refused. Behind it, what joj does not read may change.
#[test]
fn each_byte_of_a_recording_is_guarded() {
    let scratch = Scratch::new("record-damage");
    let recording = record(&scratch, "small", SMALL);
    let bytes = std::fs::read(&recording).expect("a recording");
    let mark = b"\"groups\":[[";
    let groups =
        bytes.windows(mark.len()).rposition(|window| window == mark).expect("checksums") + mark.len();
    let end = String::from_utf8_lossy(&bytes[groups..]).split(',').next().expect("a byte").parse::<usize>();
    let end = end.expect("a number");
    let words = ["--order", "fast", "--check"];
    // Others use the device, too.
    let without_chance = |mut value: serde_json::Value| {
        for name in ["elapsed_ns", "in_calls_ns", "cpu_us", "cpu_system_us", "device"] {
            value[name] = 0.into();
        }
        value
    };
    let sound = without_chance(replay(&recording, scratch.as_ref(), &words));
    let damaged = scratch.file("damaged.joj");
    assert!(end > 1000 && bytes.len() > end + 1000, "{end} of {}", bytes.len());
    for place in (0..bytes.len()).step_by(41) {
        let mut copy = bytes.clone();
        copy[place] ^= 0x10;
        std::fs::write(&damaged, &copy).expect("a file");
        let output =
            joj(&[&"replay", &damaged, &scratch.as_ref(), &"--order", &"fast", &"--check", &"--json", &"-"]);
        if output.status.success() {
            let found = serde_json::from_slice(&output.stdout).expect("JSON");
            assert!(place >= end && without_chance(found) == sound, "byte {place} of {end}");
        } else {
            let (code, said) = told(&output);
            assert!(code == Some(1) && said.starts_with("joj: "), "byte {place}: {code:?} {said}");
        }
    }
    std::fs::write(&damaged, &bytes[..bytes.len() / 2]).expect("a file");
    assert!(told(&joj(&[&"replay", &damaged, &scratch.as_ref()])).1.contains("was cut off"));
}

#[test]
fn what_cannot_be_recorded_is_told_and_nothing_is_written() {
    let scratch = Scratch::new("record-errors");
    let output = scratch.file("out.joj");
    let wrong = |text: &str, words: &[&str]| {
        let text = scratch.write("in.txt", text);
        let mut command: Vec<&dyn AsRef<std::ffi::OsStr>> =
            vec![&"record", &"--import", &text, &"-o", &output];
        command.extend(words.iter().map(|word| word as &dyn AsRef<std::ffi::OsStr>));
        let (code, said) = told(&joj(&command));
        assert!(!output.exists() && !scratch.names().iter().any(|name| name.ends_with(".part")), "{said}");
        (code, said)
    };
    for (text, words, wanted) in [
        (
            "1 00:00:00.1 fsync(x) = 0\n",
            &[][..],
            "in.txt: line 1 at byte 0: column 20: `x` is no descriptor: `1 00:00:00.1 fsync(x) = 0`; nothing was written",
        ),
        (
            "1 5 pwrite 3 0 4096\n1 6 pwrite 3 y 4096\n",
            &[],
            "in.txt: line 2 at byte 20: column 14: `y` is no number",
        ),
        ("1 5 pwrite 3 0\n", &[], "column 15: it ends before the result"),
        ("1 5 close 3 0 0\n", &[], "column 15: `0` is no end of the line"),
        ("1 5 mmap 3 0\n", &["--format", "mobigen"], "column 5: `mmap` is no operation of a MobiGen script"),
        ("1 5 close 3 0\n", &["--format", "strace"], "column 3: `5` is no time; run strace with -ttt or -tt"),
        (
            "1 00:00:00.1 getpid() = 1\n",
            &[],
            "in.txt: no call on a file in it; is it text of strace or MobiGen?",
        ),
        ("", &[], "no call on a file in it"),
    ] {
        let (code, said) = wrong(text, words);
        assert!(code == Some(1) && said.contains(wanted), "{text}: {code:?} {said}");
    }
    let none = scratch.file("none");
    let (code, said) = told(&joj(&[&"record", &"--import", &none, &"-o", &output]));
    assert!(code == Some(1) && said.contains("cannot read"), "{said}");
    let text = scratch.write("in.txt", SMALL);
    let (code, said) = told(&joj(&[&"record", &"--import", &text, &"-o", &text]));
    assert!(code == Some(1) && said.contains("is named twice"), "{said}");
    assert_eq!(told(&joj(&[&"record", &"--import", &text])).0, Some(2), "no -o");
}

#[test]
fn what_cannot_be_replayed_is_told_and_nothing_is_left() {
    let scratch = Scratch::new("replay-errors");
    let recording = record(&scratch, "small", SMALL);
    let trace = scratch.file("trace.parquet");
    printed(&joj(&[&"trace-generate", &"--events", &"10", &trace]));
    let file = scratch.write("file", "");
    let missing = scratch.file("missing");
    for (recording, directory, words, wanted) in [
        (
            &trace,
            scratch.as_ref(),
            &[][..],
            "trace.parquet has no calls: it is a trace of block requests. `joj record --import` makes",
        ),
        (
            &recording,
            scratch.as_ref(),
            &["--compat"],
            "--compat is Mobibench's reading of a MobiGen script, and",
        ),
        (&recording, missing.as_path(), &[], "there is no directory"),
        (&recording, file.as_path(), &[], "is not a directory"),
        (&missing, scratch.as_ref(), &[], "cannot open"),
        (&scratch.file(""), scratch.as_ref(), &[], "cannot open"),
        (&scratch.file(""), scratch.as_ref(), &[], "is a directory"),
        (&file, scratch.as_ref(), &[], "is no recording or trace"),
    ] {
        let before = scratch.names();
        let mut command: Vec<&dyn AsRef<std::ffi::OsStr>> = vec![&"replay", recording, &directory];
        command.extend(words.iter().map(|word| word as &dyn AsRef<std::ffi::OsStr>));
        let (code, said) = told(&joj(&command));
        assert!(code == Some(1) && said.contains(wanted), "{wanted}: {code:?} {said}");
        assert_eq!(scratch.names(), before);
    }
    assert_eq!(told(&joj(&[&"replay", &recording])).0, Some(2));
    assert_eq!(told(&joj(&[&"replay", &recording, &".", &"--compat", &"--check"])).0, Some(2));
}

/// What reads traces passes the calls of a recording over.
#[test]
fn who_reads_a_recording_as_a_trace_is_told_what_reads_it() {
    let scratch = Scratch::new("record-trace");
    let recording = record(&scratch, "small", SMALL);
    let exported = scratch.write("small.csv", "mine");
    let export = format!("csv={}", exported.display());
    let cases: [&[&str]; 2] = [&[], &["--export", &export]];
    for words in cases {
        let mut command: Vec<&dyn AsRef<std::ffi::OsStr>> = vec![&"trace", &"--read", &recording];
        command.extend(words.iter().map(|word| word as &dyn AsRef<std::ffi::OsStr>));
        let (code, said) = told(&joj(&command));
        let is_told = said.contains("is a recording") && said.contains("joj replay");
        assert!(code == Some(1) && is_told, "{code:?} {said}");
        assert_eq!(std::fs::read_to_string(&exported).expect("it is there"), "mine");
    }
}

/// A program that goes from directory to directory can have longer names than a call may have.
#[test]
fn a_name_that_is_too_long_for_a_call_is_told_before_anything_is_made() {
    let scratch = Scratch::new("record-long");
    let mut text = String::new();
    for depth in 0..45 {
        let name = "d".repeat(100);
        text += &format!(
            "1 17000000{depth:02}.1 mkdir(\"{name}\", 0755) = 0\n1 17000000{depth:02}.2 chdir(\"{name}\") = 0\n"
        );
    }
    let recording = record(&scratch, "long", text);
    let before = scratch.names();
    let (code, said) = told(&joj(&[&"replay", &recording, &scratch.file("")]));
    let is_told = said.contains("a call takes no more than 4,095") && said.contains("shorter names");
    assert!(code == Some(1) && is_told, "{code:?} {said}");
    assert_eq!(scratch.names(), before);
}

/// Programs ask before they execute something, also what they made themselves.
#[test]
fn what_could_be_executed_can_be_in_a_replay() {
    let scratch = Scratch::new("record-execute");
    let text = r#"1 1700000000.1 access("/bin/tool", X_OK) = 0
1 1700000000.2 open("/bin/made", O_WRONLY|O_CREAT|O_EXCL, 0600) = 3
1 1700000000.3 access("/bin/made", X_OK) = -1 EACCES (Permission denied)
1 1700000000.4 fchmod(3, 0700) = 0
1 1700000000.5 access("/bin/made", X_OK) = 0
"#;
    let recording = record(&scratch, "execute", text);
    let outcome = replay(&recording, scratch.as_ref(), &["--check"]);
    let access = &outcome["by_call"]["access"];
    assert_eq!([&access["calls"], &access["differ"]], [2, 0], "{outcome:#}");
}

/// A replay has the descriptors of all recorded processes, and takes what the hard limit allows.
#[test]
fn a_replay_that_has_no_descriptor_left_says_how_many_it_needs() {
    let scratch = Scratch::new("record-descriptors");
    let opens = |process: u32| {
        (3..153).map(move |number| {
            format!("{process} 17000000{process}0.{number} open(\"/f\", O_RDWR|O_CREAT, 0600) = {number}\n")
        })
    };
    let recording = record(&scratch, "descriptors", opens(1).chain(opens(2)).collect::<String>());
    let limited = |limit: &str| {
        let script = format!("ulimit {limit}; exec \"$@\"");
        let joj = env!("CARGO_BIN_EXE_joj");
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &script, "sh", joj, "replay", "--json", "-", "--order", "fast"]);
        shell.arg(&recording).arg(scratch.as_ref() as &Path).output().expect("sh")
    };
    let before = scratch.names();
    let (code, said) = told(&limited("-n 250"));
    let is_told = said.contains("this process may have 250") && said.contains("`ulimit -n 364`");
    assert!(code == Some(1) && is_told, "{code:?} {said}");
    assert_eq!(scratch.names(), before);
    let outcome: serde_json::Value = serde_json::from_str(&printed(&limited("-Sn 250"))).expect("JSON");
    assert_eq!(outcome["by_call"]["open"]["differ"], 0, "{outcome:#}");
}
