//! Goal: behind a power cut a filesystem, stock SQLite and waldio have every COMMIT that had returned; and `joj lab crash` would
//! say so if they had not.
//! Method: the built program in an emulated machine, a few states of each combination, `JOJ_CRASH_STATES` for more, `JOJ_SEED` for
//! others; then a device that lies. A failure prints the line with seed and state, and the recordings stay below cargo's directory
//! for such files, to be given to `--recordings`.

#![allow(clippy::unwrap_used, reason = "clippy exempts test functions, not the helpers they share")]

mod schema;
mod waldio;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use joj_analysis::lab::crash::{CrashResult, CrashVerdict};
use waldio::{extension, skipped};

/// What `joj lab crash` said, and its exit code; none where the emulated machine cannot be had here.
fn crash(name: &str, arguments: &[&str]) -> Option<(CrashResult, Option<i32>)> {
    if Command::new("qemu-system-x86_64").arg("--version").output().is_err() {
        skipped("qemu-system-x86_64 is not installed");
        return None;
    }
    let extension = extension()?;
    let json = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.json"));
    // With seed and state they give a failure again.
    let recordings = json.with_extension("recordings");
    let _ = fs::remove_file(&json);
    let _ = fs::remove_dir_all(&recordings);
    let output = Command::new(env!("CARGO_BIN_EXE_joj"))
        .args(["lab", "crash", "--waldio"])
        .arg(extension)
        .arg("--json")
        .arg(&json)
        .arg("--recordings")
        .arg(&recordings)
        .args(arguments)
        .output()
        .unwrap();
    let Ok(text) = fs::read_to_string(&json) else { return no_packages(&output) };
    println!("{}", String::from_utf8_lossy(&output.stdout));
    schema::holds_of_text("crash-sqlite", text.as_bytes(), &[]);
    Some((serde_json::from_str(&text).unwrap(), output.status.code()))
}

/// Without a network, or elsewhere than on Debian, there is no kernel for the machine; anything else is a failure.
fn no_packages<T>(output: &Output) -> Option<T> {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("--kernel FILE"), "{said}");
    skipped(&said.trim().replace('\n', " | "));
    None
}

fn setting(name: &str, default: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| default.to_owned())
}

#[test]
fn no_power_cut_takes_what_was_acknowledged_in_the_lab() {
    let states = setting("JOJ_CRASH_STATES", "5");
    let seed = setting("JOJ_SEED", "1");
    let Some((result, code)) = crash("sound", &["--states", &states, "--seed", &seed]) else { return };
    assert_eq!(result.cells.len(), 6);
    assert_sound(&result, &states, &seed);
    for cell in &result.cells {
        let cuts = || cell.states.iter().filter_map(|state| state.cut.as_ref());
        assert!(cuts().any(|cut| cut.volatile_writes > 0), "{}: no cut took anything", cell.cell);
        assert!(cuts().any(|cut| cut.promise.acknowledged > 0), "{}: nothing was promised", cell.cell);
        assert!(cuts().any(|cut| cut.in_flight > 0), "{}: nothing was under way", cell.cell);
    }
    assert_eq!(code, Some(0));
}

/// Embedded frames are synced while a thread makes the log longer: F2FS left a flush out there until syncs took turns (docs/crash_states.md).
#[test]
fn a_log_that_grows_beside_its_syncs_loses_nothing_on_f2fs_in_the_lab() {
    let (states, seed) = (setting("JOJ_CRASH_STATES", "8"), setting("JOJ_SEED", "3"));
    let arguments = ["--filesystems", "f2fs", "--modes", "waldio", "--waldio-option", "layout=embedded"];
    let chosen = ["--states", &states, "--seed", &seed];
    let Some((result, code)) = crash("embedded", &[&arguments[..], &chosen].concat()) else { return };
    assert_sound(&result, &states, &seed);
    assert_eq!(code, Some(0));
}

/// Of commits that wait in a window a cut may take some, less than its bytes hold, and none that is older than its time and the flush.
#[test]
fn a_cut_takes_no_more_than_waldios_window_in_the_lab() {
    let (states, seed) = (setting("JOJ_CRASH_STATES", "8"), setting("JOJ_SEED", "202"));
    let arguments = ["--filesystems", "ext4", "--modes", "waldio", "--waldio-option", "group=16KiB,2ms"];
    let chosen = ["--states", &states, "--seed", &seed];
    let Some((result, code)) = crash("window", &[&arguments[..], &chosen].concat()) else { return };
    assert_eq!((code, result.cells[0].bound().commits_max()), (Some(0), 3));
    assert_sound(&result, &states, &seed);
}

#[test]
fn an_option_that_waldio_does_not_take_is_told_once_in_the_lab() {
    let arguments = ["--filesystems", "ext4", "--modes", "waldio", "--waldio-option", "group=banana,2ms"];
    let Some((result, code)) = crash("refused", &arguments) else { return };
    let [cell] = &result.cells[..] else { panic!("one cell") };
    assert!(cell.failure.as_ref().is_some_and(|reason| reason.contains("banana")), "{:?}", cell.failure);
    assert_eq!((cell.states.len(), code), (0, Some(1)), "no states without a recording");
}

fn assert_sound(result: &CrashResult, states: &str, seed: &str) {
    for cell in &result.cells {
        assert_eq!(cell.failure, None, "{}", cell.cell);
        assert_eq!(cell.states.len().to_string(), states, "{}", cell.cell);
        for state in &cell.states {
            assert!(cell.holds(state), "{}, seed {seed}, {state}", cell.cell);
        }
    }
}

/// Nothing is durable there: under FULL each loss is one too many, and with a bound those that are older.
#[test]
fn a_device_that_lies_about_flushes_is_found_out_in_the_lab() {
    let arguments =
        ["--filesystems", "ext4", "--modes", "wal,waldio", "--waldio-option", "durability=bounded"];
    let planted = ["--states", "6", "--plant", "ignored-flushes"];
    let Some((result, code)) = crash("planted", &[&arguments[..], &planted].concat()) else { return };
    for cell in &result.cells {
        assert!(
            cell.count(|verdict| matches!(verdict, CrashVerdict::Lost(_))) > 0,
            "{}: no loss was seen",
            cell.cell
        );
        assert!(!cell.is_sound(), "{}", cell.cell);
    }
    assert_eq!(code, Some(1));
}

#[test]
fn a_persistent_write_buffer_keeps_what_the_device_behind_would_lose_in_the_lab() {
    let arguments = ["--filesystems", "ext4", "--modes", "wal", "--device", "pcm-16mb+galaxy-s5-emmc"];
    let Some((result, code)) = crash("buffer", &[&arguments[..], &["--states", "8"]].concat()) else {
        return;
    };
    assert_sound(&result, "8", "1");
    assert_eq!(code, Some(0));
    let planted = [&arguments[..], &["--states", "8", "--plant", "ignored-flushes"]].concat();
    let Some((result, code)) = crash("volatile-buffer", &planted) else { return };
    assert!(
        result.cells[0].count(|verdict| matches!(verdict, CrashVerdict::Lost(_))) > 0,
        "no loss was seen"
    );
    assert_eq!(code, Some(1));
}
