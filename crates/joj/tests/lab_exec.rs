//! Goal: `joj lab exec` runs a command of this machine on emulated disks, with its own files and none of its own changed, and with the same
//! figures every time.
//! Method: shell commands with a known output, exit code and amount of writing; then what is refused before a machine starts.
//!
//! Where QEMU is missing, or Debian's packages cannot be had, what needs them is skipped, and says so.

mod emulated;
mod replay;
mod schema;
#[allow(dead_code, reason = "other tests use all of it")]
mod waldio;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use emulated::missing;
use joj_analysis::lab::exec_result::{CommandRun, ExecOutcome, ExecResult};
use replay::{Scratch, told};
use waldio::skipped;

fn exec(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_joj")).args(["lab", "exec"]).args(words).output().expect("joj")
}

/// The result of a shell's script in the lab, with these options, joj's exit code and standard error; none where there is no emulated machine.
fn run(scratch: &Scratch, options: &[&str], script: &str) -> Option<(ExecResult, Option<i32>, String)> {
    if let Some(reason) = missing() {
        skipped(&reason);
        return None;
    }
    let json = scratch.file("result.json");
    let output =
        exec(&[options, &["--json", json.to_str().expect("text"), "--", "sh", "-c", script]].concat());
    let (code, said) = told(&output);
    println!("{}{said}", String::from_utf8_lossy(&output.stdout));
    let text = fs::read(&json).unwrap_or_else(|error| panic!("no result, {error}: {said}"));
    schema::holds_of_text("lab-exec", &text, &[]);
    Some((serde_json::from_slice(&text).expect("a result"), code, said))
}

fn ran(outcome: &ExecOutcome) -> &CommandRun {
    match outcome {
        ExecOutcome::Ran(run) => run,
        ExecOutcome::Failed(reason) => panic!("{reason}"),
    }
}

#[test]
fn a_command_of_this_machine_runs_on_an_emulated_disk_and_its_files_can_be_kept_in_the_lab() {
    let scratch = Scratch::new("exec");
    // Not below /tmp, which is the command's own.
    let own = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("exec-{}", std::process::id()));
    fs::write(&own, "of this machine").unwrap();
    // It reads a file of this machine, changes it as far as it can, and leaves one on the emulated disk.
    let script = format!(
        "pwd; cat {0}; echo changed > {0}; echo complains >&2; ls; \
         dd if=/dev/zero of=kept bs=4096 count=16 conv=fsync 2>/dev/null; exit 3",
        own.display()
    );
    let take_to = scratch.as_ref().to_str().expect("text");
    let options = ["--take", "/data/kept", "--take-to", take_to];
    let Some((first, code, said)) = run(&scratch, &options, &script) else { return };
    let one = ran(&first.rows[0].outcome);
    assert_eq!((one.exit_code, one.signal, code), (Some(3), None, Some(3)));
    assert_eq!(one.stdout, "/data\nof this machinelost+found\n", "the working directory is new each time");
    assert!(
        one.stderr.contains("Read-only file system") && one.stderr.ends_with("complains\n"),
        "{}",
        one.stderr
    );
    assert!(said.contains("complains\n"), "on standard error: {said}");
    assert_eq!(one.host_requests, 0, "all that it reads is in the machine's memory");
    let device = one.device.expect("a block device");
    assert!(device.written_bytes >= 16 * 4096 && device.flushes > Some(0), "{device:?}");
    assert_eq!(fs::read(scratch.file("kept")).unwrap(), vec![0; 16 * 4096]);
    // On a busy machine one run was 2.6 % off.
    let mut times = vec![one.elapsed_ns as f64];
    let is_same = |times: &[f64]| {
        times.iter().rev().skip(1).any(|time| (time / times[times.len() - 1] - 1.0).abs() < 0.005)
    };
    while !is_same(&times) {
        assert!(times.len() < 3, "the guest's clock: {times:?}");
        let (again, ..) = run(&scratch, &options, &script).expect("as before");
        times.push(ran(&again.rows[0].outcome).elapsed_ns as f64);
    }
    assert_eq!(fs::read_to_string(&own).unwrap(), "of this machine");
    fs::remove_file(&own).unwrap();
}

/// What a run leaves in the kernel's settings tells the next one of it.
#[test]
fn a_command_unmounts_in_its_first_run_what_it_read_and_what_it_leaves_mounted_is_gone_in_the_lab() {
    let scratch = Scratch::new("exec-mounts");
    let script = "mkdir m n && mount --bind /etc m && cat m/passwd >/dev/null && umount m || exit 3; \
                  test $(cat /proc/sys/kernel/panic) = 7 && echo again; echo 7 >/proc/sys/kernel/panic; \
                  mount -t tmpfs none m && mount --bind m n";
    let Some((result, code, said)) = run(&scratch, &["--filesystem", "ext4,btrfs"], script) else { return };
    let ran: Vec<_> = result.rows.iter().map(|row| ran(&row.outcome)).collect();
    assert!(ran.iter().all(|run| (run.stdout.as_str(), run.exit_code) == ("again\n", Some(0))), "{ran:?}");
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn the_run_in_which_the_time_was_over_is_told_in_the_lab() {
    let scratch = Scratch::new("exec-slow");
    let Some((result, code, _)) = run(&scratch, &["--exec-seconds", "10"], "while :; do :; done") else {
        return;
    };
    let ExecOutcome::Failed(reason) = &result.rows[0].outcome else { panic!("{:?}", result.rows) };
    assert!(reason.ends_with("and was ended; what it did: running for the first time"), "{reason}");
    assert_eq!(code, Some(1));
}

#[test]
fn each_filesystem_has_a_row_and_what_cannot_be_started_says_so_in_the_lab() {
    let scratch = Scratch::new("exec-rows");
    let Some((result, code, _)) =
        run(&scratch, &["--filesystem", "ext4,f2fs"], "df -T . | tail -1; kill -9 $$")
    else {
        return;
    };
    let kinds: Vec<&str> =
        result.rows.iter().filter_map(|row| ran(&row.outcome).stdout.split_whitespace().nth(1)).collect();
    assert_eq!((kinds, code), (vec!["ext4", "f2fs"], Some(1)));
    assert!(result.rows.iter().all(|row| ran(&row.outcome).signal == Some(9)));
    let output = exec(&["--", "/no/such/program"]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("cannot start /no/such/program: No such file or directory"), "{said}");
}

#[test]
fn what_cannot_be_run_is_refused_before_a_machine_starts() {
    let there = Path::new("/bin/true").to_str().expect("text");
    let refused = [
        (vec!["--take", "/etc/passwd", "--", there], "below /data or /tmp"),
        (vec!["--take", "/data/../etc/passwd", "--", there], "below /data or /tmp"),
        (vec!["--take-to", ".", "--", there], "--take"),
        (vec!["--take", "/tmp/a", "--take-to", "/no/such", "--", there], "/no/such"),
        (vec!["--take", "/tmp/a", "--take", "/data/a", "--", there], "twice"),
        (vec!["--filesystem", "fat", "--", there], "fat"),
        (vec!["--device", "floppy", "--", there], "floppy"),
        (vec![], "COMMAND"),
    ];
    for (words, says) in refused {
        let (code, said) = told(&exec(&words));
        assert!(matches!(code, Some(1 | 2)) && said.contains(says), "{words:?}: {code:?} {said}");
        assert!(!said.contains("booting"), "{words:?}: {said}");
    }
}
