//! Goal: `joj device` lists, shows, checks and sweeps, and says what is wrong with a description.
//! Method: the built program; what it shows is given back to it.

#![allow(clippy::unwrap_used, reason = "clippy exempts test functions, not the helpers they share")]

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

fn device(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_joj")).arg("device").args(arguments).output().unwrap()
}

fn stdout(arguments: &[&str]) -> String {
    let output = device(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn stderr(arguments: &[&str]) -> String {
    let output = device(arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

fn file(name: &str, text: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, text).unwrap();
    path
}

#[test]
fn what_is_shown_is_a_sound_description() {
    let list = stdout(&["list"]);
    assert!(list.contains("galaxy-s5-emmc") && list.contains("WALDIO"), "{list}");
    let path = file("shown.toml", &stdout(&["show", "galaxy-s5-emmc"]));
    assert!(stdout(&["check", path.to_str().unwrap()]).contains("galaxy-s5-emmc, 32000000000 bytes: sound"));
}

#[test]
fn what_is_wrong_is_said_with_file_and_cure() {
    let text = stdout(&["show", "kingston"]).replacen("log_blocks = 1", "log_blocks = 0", 1);
    let path = file("wrong.toml", &text);
    let error = stderr(&["check", path.to_str().unwrap()]);
    assert!(error.contains("wrong.toml: `ftl.log_blocks` is 0, which is not in 1 to"), "{error}");
    assert!(stderr(&["show", "floppy"]).contains("take one of a-data"));
    assert!(stderr(&["check", "missing.toml"]).contains("cannot read missing.toml"));
}

#[test]
fn a_sweep_shows_where_a_card_falls() {
    let sweep = stdout(&["sweep", "kingston"]);
    let rate = |range: &str| -> f64 {
        let line =
            sweep.lines().find(|line| line.contains(range)).unwrap_or_else(|| panic!("{range}: {sweep}"));
        line.split_whitespace().rev().nth(1).unwrap().parse().unwrap()
    };
    assert!(rate("over 16 MiB, behind") > 20.0 * rate("over 32 MiB, behind"), "{sweep}");
    assert!(stdout(&["sweep", "ram"]).contains("no time"));
    let striped = stdout(&["sweep", "2xkingston"]);
    assert_eq!(striped.lines().count(), sweep.lines().count(), "{striped}");
    assert!(!stdout(&["sweep", "pcm-16mb"]).contains("over 32 MiB"), "past the end of 16 MiB");
}

#[test]
fn a_file_puts_devices_together() {
    let card = file("card.toml", &stdout(&["show", "kingston"]));
    let text = format!(
        "format = 'joj-device'\nversion = 1\nname = 'pair'\nsummary = 'two cards'\n[raid0]\nmembers = ['ridata', '{}']\n",
        card.display()
    );
    let path = file("pair", &text);
    assert!(stdout(&["check", path.to_str().unwrap()]).contains("pair, 32000000000 bytes: sound"));
    let path = file("pair.toml", &text.replace("card.toml", "gone.toml"));
    for action in ["check", "sweep"] {
        let error = stderr(&[action, path.to_str().unwrap()]);
        assert!(error.contains("cannot read") && error.contains("gone.toml"), "{error}");
    }
}
