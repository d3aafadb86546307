//! Goal: `joj crash` finds what a program loses at a power cut, says which writes it takes, and finds nothing where nothing is lost.
//! Method: shell programs whose answer is known: one that promises before it syncs, one that syncs first, one that breaks its file when blocks
//! change places, and the second one on a device that lies.
//!
//! Where QEMU is missing, or Debian's packages cannot be had, what needs them is skipped, and says so.

mod emulated;
mod program_crash;
mod replay;
mod schema;
#[allow(dead_code, reason = "other tests use all of it")]
mod waldio;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use emulated::{TestFiles, is_qemu, missing, qemus_of};
use joj_analysis::lab::crash::{CellStates, CrashResult, CrashVerdict};
use joj_analysis::lab::program_crash::{Finding, ProgramCrashResult, ProgramVolume};
use joj_device::request::RequestKind;
use joj_device::request_log::read_text;
use replay::{Scratch, told};
use waldio::skipped;

/// Exit code 1 where a line that was printed is not in the file, 2 where there is another one than `one` and `two`.
const CHECK: &str = "touch file; while read line; do grep -qx \"$line\" file || { echo \"line $line is gone\"; exit 1; }; done; \
                     grep -qvx -e one -e two file && { echo another line; exit 2; }; exit 0";
/// The same, but for each third time: a setting of the kernel's is one for all checks of a machine.
const NOT_EACH_TIME: &str = "test $JOJ_LINES = 0 || test -s file && exit 0; looked=$(cat /proc/sys/kernel/panic); \
                             echo $((looked + 1)) > /proc/sys/kernel/panic; test $((looked % 3)) = 2 && exit 0; echo gone; exit 1";
/// Promises what is durable.
const RIGHT: &str = "echo one > file; sync file; sync .; echo one; echo two >> file; sync file; echo two";
/// Promises first.
const TOO_EARLY: &str = "sync .; echo one > file; echo one; sync file; sync .";
/// Writes a mark beside its data, and syncs both at once.
const IN_NO_ORDER: &str = "dd if=/dev/zero of=data bs=4096 count=1 2>/dev/null; dd if=/dev/zero of=mark bs=4096 count=1 2>/dev/null; \
                           sync data mark .; (yes data | head -c 4096) 1<>data; (yes mark | head -c 4096) 1<>mark; sync";
const IN_ORDER_CHECK: &str = "test -s mark && test -n \"$(tr -d '\\0' < mark)\" && test -z \"$(tr -d '\\0' < data)\" && \
                              { echo 'a mark without its data'; exit 2; }; exit 0";

fn crash(words: &[&str]) -> Output {
    crash_in(".", words)
}

fn crash_in(directory: impl AsRef<Path>, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_joj"));
    command.current_dir(directory).arg("crash").args(words).output().expect("joj")
}

/// Its exit code, and all that it printed.
fn all_said(output: &Output) -> (Option<i32>, String) {
    let (code, said) = told(output);
    (code, String::from_utf8_lossy(&output.stdout).into_owned() + &said)
}

/// The result of a shell's script with these options, and joj's exit code; none where there is no emulated machine.
fn run(scratch: &Scratch, options: &[&str], script: &str) -> Option<(ProgramCrashResult, Option<i32>)> {
    run_in(Path::new("."), scratch, options, script)
}

/// The same, in a directory.
fn run_in(
    directory: &Path,
    scratch: &Scratch,
    options: &[&str],
    script: &str,
) -> Option<(ProgramCrashResult, Option<i32>)> {
    if let Some(reason) = missing() {
        skipped(&reason);
        return None;
    }
    let json = scratch.file("result.json");
    let always = ["--settle-seconds", "7", "--json", json.to_str().expect("text")];
    let output = crash_in(directory, &[options, &always, &["--", "sh", "-c", script]].concat());
    let (code, said) = told(&output);
    println!("{}{said}", String::from_utf8_lossy(&output.stdout));
    let text = fs::read(&json).unwrap_or_else(|error| panic!("no result, {error}: {said}"));
    schema::holds_of_text("crash", &text, &[]);
    Some((serde_json::from_slice(&text).expect("a result"), code))
}

fn only(result: &ProgramCrashResult) -> &ProgramVolume {
    let [volume] = &result.volumes[..] else { panic!("{} filesystems", result.volumes.len()) };
    assert_eq!(volume.failure, None);
    assert!(!volume.states.is_empty());
    volume
}

#[test]
fn a_program_that_syncs_first_loses_nothing_but_on_a_device_that_lies_in_the_lab() {
    let scratch = Scratch::new("crash-right");
    let options = ["--check", CHECK, "--states", "40"];
    let Some((result, code)) = run(&scratch, &options, RIGHT) else { return };
    let volume = only(&result);
    assert_eq!((volume.count(Finding::Kept), code), (volume.states.len(), Some(0)), "{:?}", volume.broken);
    assert_eq!(volume.run.as_ref().map(|run| run.lines), Some(2));
    let promised: Vec<usize> = volume.states.iter().map(|state| state.promised).collect();
    assert!([0, 1, 2].iter().all(|lines| promised.contains(lines)), "{promised:?}");
    assert!(volume.states.iter().any(|state| state.missing_writes > 0), "no cut took anything");

    let Some((result, code)) = run(&scratch, &[&options[..], &["--lying"]].concat(), RIGHT) else { return };
    let lost = only(&result).count(Finding::Lost);
    assert!(lost > 0 && code == Some(3), "a device that lies loses nothing");
}

/// What is promised too early is lost, and blocks change places.
const IN_TWO_WAYS: &str = "dd if=/dev/zero of=data bs=4096 count=1 2>/dev/null; dd if=/dev/zero of=mark bs=4096 count=1 2>/dev/null; \
                           sync data mark .; (yes data | head -c 4096) 1<>data; (yes mark | head -c 4096) 1<>mark; echo mark; sync";
const IN_TWO_WAYS_CHECK: &str = "test -s mark && test -n \"$(tr -d '\\0' < mark)\" && test -z \"$(tr -d '\\0' < data)\" && \
                                 { echo 'a mark without its data'; exit 2; }; test $JOJ_LINES = 0 && exit 0; \
                                 test -n \"$(tr -d '\\0' < mark)\" || { echo \"line $JOJ_LINES is gone\"; exit 1; }";

/// All begin at once: one records, and three wait for it.
#[test]
fn four_shards_at_once_give_the_bytes_of_one_run_with_their_recording_in_the_lab() {
    if let Some(reason) = missing() {
        return skipped(&reason);
    }
    let scratch = Scratch::new("crash-shards");
    let text = |name: &str| scratch.file(name).to_str().expect("text").to_owned();
    let recordings = text("kept");
    let words = |shard: Option<u32>, json: &str| -> Vec<String> {
        let always = ["--states", "60", "--settle-seconds", "7", "--jobs", "1"];
        let own = ["--recordings", &recordings, "--json", json, "--check", IN_TWO_WAYS_CHECK];
        let shard = shard.map(|number| vec!["--shard".to_owned(), format!("{number}/4")]);
        let all = always.iter().chain(&own).map(|word| (*word).to_owned()).chain(shard.unwrap_or_default());
        all.chain(["--", "sh", "-c", IN_TWO_WAYS].map(str::to_owned)).collect()
    };
    let parts: Vec<String> = (1..=4).map(|number| text(&format!("{number}.json"))).collect();
    let start = |(part, number): (&String, u32)| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_joj"));
        command.arg("crash").args(words(Some(number), part)).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("joj")
    };
    let children: Vec<Child> = parts.iter().zip(1..).map(start).collect();
    let ended: Vec<Output> =
        children.into_iter().map(|child| child.wait_with_output().expect("an end")).collect();
    let said: Vec<String> = ended.iter().map(|output| told(output).1).collect();
    let recorded = said.iter().filter(|said| !said.contains("recordings are taken from")).count();
    assert_eq!(recorded, 1, "{said:#?}");
    for (part, said) in parts.iter().zip(&said) {
        let bytes = fs::read(part).unwrap_or_else(|error| panic!("no part, {error}: {said}"));
        schema::holds_of_text("crash-part", &bytes, &[]);
    }

    let (merged, whole) = (text("merged.json"), text("whole.json"));
    let of_one_run = words(None, &whole);
    let run = crash(&of_one_run.iter().map(String::as_str).collect::<Vec<_>>());
    let merge = |parts: &[&String], json: &str| {
        Command::new(env!("CARGO_BIN_EXE_joj"))
            .args(["lab", "merge", "--json", json])
            .args(parts)
            .output()
            .expect("joj")
    };
    let joined = merge(&[&parts[2], &parts[0], &parts[3], &parts[1]], &merged);
    assert_eq!((told(&joined).0, told(&run).0), (Some(3), Some(3)), "{}\n{}", told(&joined).1, told(&run).1);
    let [merged, whole] = [&merged, &whole].map(|file| fs::read_to_string(file).expect("a result"));
    for (one, other) in merged.lines().zip(whole.lines()) {
        assert_eq!(one, other, "the first line that differs");
    }
    assert_eq!((merged.len(), joined.stdout), (whole.len(), run.stdout));
    let result: ProgramCrashResult = serde_json::from_str(&merged).expect("a result");
    let findings: Vec<Finding> =
        result.volumes[0].broken.iter().map(|way| way.shortest.checked.finding).collect();
    assert!([Finding::Lost, Finding::Corrupt].iter().all(|one| findings.contains(one)), "{findings:?}");

    let other = text("other.json");
    let again = words(Some(2), &other).join("\0").replace(&recordings, &text("another"));
    let (code, said) = told(&crash(&again.split('\0').collect::<Vec<_>>()));
    assert!(code == Some(3), "{said}");
    let (code, said) = told(&merge(&[&parts[0], &other, &parts[2], &parts[3]], "-"));
    assert!(code == Some(1) && said.contains("recording of ext4 on"), "{said}");
}

/// Not ext4: Linux 6.1 does not flush its data there (docs/crash.md).
#[test]
fn a_journal_on_a_device_of_its_own_is_cut_with_the_filesystem_in_the_lab() {
    const DEVICE_BLOCKS: u64 = (512 << 20) / 4096;
    let scratch = Scratch::new("crash-journal");
    let recordings = scratch.file("recordings");
    let recordings = ["--recordings", recordings.to_str().expect("text")];
    let journal = ["--filesystems", "xfs", "--journal-device", "ufs3", "--check", CHECK, "--states", "40"];
    let options = [&journal[..], &recordings].concat();
    let Some((result, code)) = run(&scratch, &options, RIGHT) else { return };
    let volume = only(&result);
    assert_eq!((volume.count(Finding::Kept), code), (volume.states.len(), Some(0)), "{:?}", volume.broken);
    let missing = volume.states.iter().flat_map(|state| state.missing.split(['+', ':']));
    let blocks: Vec<u64> = missing.filter_map(|one| one.parse().ok()).collect();
    assert!(blocks.iter().any(|block| *block >= DEVICE_BLOCKS), "the journal is whole: {blocks:?}");
    let Some((result, code)) = run(&scratch, &[&options[..], &["--lying"]].concat(), RIGHT) else { return };
    assert!(only(&result).count(Finding::Lost) > 0 && code == Some(3), "devices that lie lose nothing");
}

#[test]
fn a_promise_before_its_sync_is_broken_and_the_same_state_again_breaks_it_in_the_lab() {
    let scratch = Scratch::new("crash-early");
    let recordings = scratch.file("recordings");
    let recordings = recordings.to_str().expect("text");
    let options = ["--check", CHECK, "--states", "40", "--recordings", recordings];
    let Some((result, code)) = run(&scratch, &options, TOO_EARLY) else { return };
    let [way] = &only(&result).broken[..] else { panic!("{:?}", only(&result).broken) };
    assert_eq!(
        (way.shortest.checked.finding, way.shortest.checked.said.as_str()),
        (Finding::Lost, "line one is gone")
    );
    assert_eq!((way.last_line.as_deref(), code), (Some("one"), Some(3)));
    assert_eq!(way.shortest.missing, "nothing", "it had not been written");
    let again = [&options[..], &["--settle-seconds", "7"]].concat();
    for (wrong, expected) in [
        (format!("1/{}/nothing", way.shortest.at_ns - 20_000_000_000), "goes from"),
        (format!("1/{}/99999:1", way.shortest.at_ns), "cannot be missing"),
    ] {
        let words = [&again[..], &["--state", &wrong, "--", "sh", "-c", TOO_EARLY]].concat();
        let (code, said) = told(&crash(&words));
        assert!(said.contains(expected) && code == Some(2), "{wrong}: {code:?}, {said}");
    }
    let right = format!("1/{}/{}", way.shortest.at_ns, way.shortest.missing);
    let of_another = [&again[..], &["--state", &right]].concat();
    for (more, script) in [(&[][..], RIGHT), (&["--filesystems", "xfs"], TOO_EARLY)] {
        let (code, said) = told(&crash(&[&of_another, more, &["--", "sh", "-c", script]].concat()));
        assert!(
            said.contains("the recording there was made with another") && code == Some(2),
            "{code:?}, {said}"
        );
    }
    let state = format!("1/{}/{}", way.shortest.at_ns, way.shortest.missing);
    let again = run(&scratch, &[&options[..], &["--state", &state]].concat(), TOO_EARLY);
    let (result, code) = again.expect("the machine was there");
    assert_eq!((only(&result).count(Finding::Lost), only(&result).states.len(), code), (1, 1, Some(3)));
    let flaky = ["--check", NOT_EACH_TIME, "--states", "40", "--recordings", recordings];
    let (result, code) = run(&scratch, &flaky, TOO_EARLY).expect("the machine was there");
    let [way] = &only(&result).broken[..] else { panic!("{:?}", only(&result).broken) };
    assert_eq!((way.again.as_ref().map(|checked| checked.finding), code), (Some(Finding::Kept), Some(1)));
    let counts = [only(&result).count(Finding::Lost), only(&result).not_sure()];
    assert_eq!(counts, [0, way.states], "what is not sure is told as sure");
}

#[test]
fn writes_that_may_change_places_are_named_by_their_files_in_the_lab() {
    let scratch = Scratch::new("crash-order");
    let options = ["--check", IN_ORDER_CHECK, "--states", "60"];
    let Some((result, _)) = run(&scratch, &options, IN_NO_ORDER) else { return };
    let [way] = &only(&result).broken[..] else { panic!("{:?}", only(&result).broken) };
    assert_eq!(way.shortest.missing_writes, 1, "{way:?}");
    let what: Vec<&str> = way.left_out.iter().map(|one| one.what.as_str()).collect();
    assert_eq!(what, ["data of data, byte 0"]);
}

/// The path of the directory has a space and a quote. It has a check, and a file of the name that the program gives its own. A check that
/// read this one would find it in each state.
#[test]
fn a_file_of_this_directory_is_not_taken_for_the_one_that_is_lost_in_the_lab() {
    let directory =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("crash's words {}", std::process::id()));
    fs::create_dir_all(&directory).expect("a directory");
    fs::write(directory.join("f.txt"), "this machine's").expect("a file");
    fs::write(directory.join("0"), "a number is no file").expect("a file");
    fs::write(
        directory.join("check.sh"),
        "test $JOJ_LINES = 0 || test -s f.txt || { echo f is gone; exit 1; }",
    )
    .expect("a file");
    let scratch = Scratch::new("crash-words");
    let recordings = scratch.file("recordings");
    let run = |check: &str| {
        let kept = ["--states", "4", "--recordings", recordings.to_str().expect("text"), "--check", check];
        run_in(&directory, &scratch, &kept, "echo x > f.txt; echo saved")
    };
    let named = [
        "test $JOJ_LINES = 0 || sh check.sh",
        "test $JOJ_LINES = 0 || test -s f.txt",
        "echo always wrong; exit 1",
    ];
    let answers = named.map(run);
    fs::remove_dir_all(&directory).expect("removed");
    let [Some((lost, code)), Some(ambiguous), Some(wrong)] = answers else { return };
    let words: Vec<&str> = lost.host_words.iter().map(|word| word.word.as_str()).collect();
    assert_eq!((only(&lost).count(Finding::Lost) > 0, words, code), (true, vec!["check.sh"], Some(3)));
    for ((result, code), expected) in [
        (ambiguous, "`f.txt` in --check may be two files"),
        (wrong, "though nothing was cut (LOST): always wrong"),
    ] {
        let failure = result.volumes[0].failure.as_deref().unwrap_or_default();
        assert!(failure.contains(expected), "{failure}");
        assert_eq!((result.volumes[0].states.len(), code), (0, Some(1)));
    }
}

#[test]
fn a_check_that_fails_without_a_cut_is_told_before_any_state_in_the_lab() {
    let scratch = Scratch::new("crash-check");
    let Some((result, code)) = run(&scratch, &["--check", "echo always wrong; exit 1"], RIGHT) else {
        return;
    };
    let failure = result.volumes[0].failure.as_deref().unwrap_or_default();
    assert!(failure.contains("though nothing was cut") && failure.contains("always wrong"), "{failure}");
    assert_eq!((result.volumes[0].states.len(), code), (0, Some(1)));
}

/// The program never ends, and its first run takes all the time that there is.
#[test]
fn a_time_limit_is_told_with_what_took_so_long_in_the_lab() {
    let scratch = Scratch::new("crash-slow");
    let options = ["--check", "true", "--state-seconds", "10", "--program-seconds", "3600"];
    let Some((result, code)) = run(&scratch, &options, "while :; do :; done") else { return };
    let failure = result.volumes[0].failure.as_deref().unwrap_or_default();
    let expected = "it took longer than 10 s of this machine (--state-seconds), and was ended; what it did: running for the first time";
    assert_eq!((failure, code), (expected, Some(1)));
}

#[test]
fn a_program_that_fails_before_its_first_line_is_no_answer_in_the_lab() {
    let scratch = Scratch::new("crash-failed");
    for (script, expected) in [
        ("no-such-program", "exit code 127: sh: 1: no-such-program: not found"),
        ("kill -SEGV $$", "signal 11"),
    ] {
        let Some((result, code)) = run(&scratch, &["--check", "true"], script) else { return };
        let failure = result.volumes[0].failure.as_deref().unwrap_or_default();
        assert!(failure.contains("before it printed a line") && failure.contains(expected), "{failure}");
        assert_eq!((result.volumes[0].states.len(), code), (0, Some(1)));
    }
}

/// A cut of the program's first write has to leave what mkfs and mount made: else it would be the filesystem that is cut.
#[test]
fn the_last_request_before_the_program_is_a_flush_in_the_lab() {
    let scratch = Scratch::new("crash-flushed");
    let recordings = scratch.file("kept");
    let filesystems = ["ext4", "xfs", "btrfs", "f2fs", "nilfs2"];
    let list = filesystems.join(",");
    let kept = recordings.to_str().expect("text");
    let options = ["--filesystems", &list, "--check", "true", "--states", "1", "--recordings", kept];
    let Some(_) = run(&scratch, &options, "echo x > file; sync file") else { return };
    for (number, filesystem) in filesystems.iter().enumerate() {
        let read = |end| fs::read(recordings.join(format!("recordings/{number:02}.{end}"))).expect("a file");
        let written: serde_json::Value = serde_json::from_slice(&read("json")).expect("JSON");
        let begin_ns = written["begin_ns"].as_u64().expect("a time");
        let requests = read_text(&read("requests")[..]).expect("requests");
        let before: Vec<_> = requests.iter().filter(|one| one.submitted_ns < begin_ns).collect();
        assert!(before.iter().all(|one| one.completion.done_ns <= begin_ns), "{filesystem}");
        let last = before.last().map(|one| one.request.kind);
        assert_eq!(last, Some(RequestKind::Flush), "{filesystem}, of {}", before.len());
    }
}

/// To commit, SQLite deletes the journal, and does not sync its directory (its manual, `PRAGMA synchronous=EXTRA`); it syncs what it truncates.
#[test]
fn a_deleted_journal_comes_back_and_a_truncated_one_does_not_in_the_lab() {
    if let Some(reason) = missing() {
        return skipped(&reason);
    }
    let scratch = Scratch::new("crash-sqlite");
    let json = scratch.file("result.json");
    let words = ["sqlite", "--mode", "delete,truncate", "--sync", "full", "--filesystems", "ext4"];
    let kept = scratch.file("kept");
    let numbers = ["--states", "12", "--commits", "10", "--json", json.to_str().expect("text")];
    let numbers = [&numbers[..], &["--recordings", kept.to_str().expect("text")]].concat();
    let (code, said) = told(&crash(&[&words[..], &numbers].concat()));
    let text = fs::read(&json).expect(&said);
    schema::holds_of_text("crash-sqlite", &text, &[]);
    let result: CrashResult = serde_json::from_slice(&text).expect("a result");
    let lost = |cell: &CellStates| cell.count(|verdict| matches!(verdict, CrashVerdict::Lost(_)));
    let sound = |cell: &CellStates| cell.count(|verdict| matches!(verdict, CrashVerdict::Sound(_)));
    let [deleted, truncated] = &result.cells[..] else { panic!("{said}") };
    assert!(lost(deleted) > 0 && lost(deleted) + sound(deleted) == 12, "{deleted:?}");
    assert_eq!((sound(truncated), code), (12, Some(1)), "{truncated:?}");
    for (other, expected) in [
        (&["--mode", "truncate"][..], "another --modes (`delete`, not `truncate`)"),
        (&["--mode", "delete", "--sync", "normal"], "another --synchronous (`full`, not `normal`)"),
        (&["--mode", "delete", "--filesystems", "xfs"], "another --filesystems (`ext4`, not `xfs`)"),
        (&["--mode", "delete", "--device", "ufs3"], "another --device (`galaxy-s5-emmc as described by "),
        (&["--mode", "delete", "--commits", "11"], "another --commits (`10`, not `11`)"),
    ] {
        let rest = [&["sqlite", "--recordings", kept.to_str().expect("text")][..], other].concat();
        let usual = ["--filesystems", "ext4", "--sync", "full", "--commits", "10"];
        let usual = usual.chunks(2).filter(|option| !other.contains(&option[0])).flatten().copied();
        let (code, said) = all_said(&crash(&rest.into_iter().chain(usual).collect::<Vec<_>>()));
        assert!(said.contains(expected) && said.contains("empty DIR") && code == Some(1), "{code:?}, {said}");
    }
    let log = kept.join("recordings/00.log");
    let mut bytes = fs::read(&log).expect("a log");
    *bytes.last_mut().expect("bytes") ^= 1;
    fs::write(&log, bytes).expect("written");
    let again = ["sqlite", "--mode", "delete", "--filesystems", "ext4", "--commits", "10", "--recordings"];
    let (code, said) = all_said(&crash(&[&again[..], &[kept.to_str().expect("text")]].concat()));
    assert!(
        said.contains("recordings/00.log is not what was recorded") && code == Some(1),
        "{code:?}, {said}"
    );
}

/// While the program runs for ever, and nothing is recorded yet.
#[test]
fn who_waits_for_a_recording_is_told_and_ctrl_c_leaves_nothing_in_the_lab() {
    if let Some(reason) = missing() {
        return skipped(&reason);
    }
    let (scratch, temporary) = (Scratch::new("crash-stop"), TestFiles::new("crash-stop-temporary"));
    let kept = scratch.file("kept");
    let script = "head -c 40000000 /dev/zero | tr '\\0' x > file; sync; while :; do :; done";
    let mut child = Command::new(env!("CARGO_BIN_EXE_joj"))
        .args(["crash", "--program-seconds", "3600", "--check", "true", "--recordings"])
        .arg(&kept)
        .args(["--", "sh", "-c", script])
        .env("TMPDIR", &temporary.path)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("joj starts");
    let mut lines = BufReader::new(child.stderr.take().expect("its stderr")).lines();
    let is_told = |line: &String| line.contains("MiB written to the device") && line.ends_with(" s so far");
    let told = lines.find_map(|line| line.ok().filter(is_told));
    let machines = qemus_of(&child);
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("a signal");
    let rest: Vec<String> = lines.map_while(Result::ok).collect();
    assert_eq!(child.wait().expect("an end").code(), Some(130), "{told:?} {rest:?}");
    assert!(told.is_some_and(|line| line.starts_with("ext4 galaxy-s5-emmc: running for the first time, ")));
    assert!(!machines.is_empty() && !machines.iter().any(|pid| is_qemu(*pid)), "{machines:?}");
    let names = |directory: &Path| -> Vec<String> {
        let entries = fs::read_dir(directory).expect("a directory").flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    };
    assert_eq!((names(&temporary.path), names(&kept.join("recordings"))), (vec![], vec!["lock".to_owned()]));
}
