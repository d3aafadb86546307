//! Goal: `joj monitor` samples, passes its command's exit code on, ends cleanly, and its files hold what their description says.
//! Method: the built program on the running kernel and on written-down texts; no figure of the running kernel is judged.

#![allow(clippy::unwrap_used, reason = "clippy exempts test functions, not the helpers they share")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use joj_analysis::monitor::document::{EndReason, MonitorDocument};
use joj_analysis::monitor::quantity::QuantityKind;

fn joj(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_joj"));
    command.arg("monitor").args(arguments).stdin(Stdio::null());
    command
}

fn run(arguments: &[&str]) -> Output {
    joj(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A fresh directory of the build tree.
fn directory(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("monitor-{name}"));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

fn document(output: &Output) -> MonitorDocument {
    let found = serde_json::from_slice(&output.stdout);
    found.unwrap_or_else(|error| panic!("{error}: {} {}", text(&output.stdout), text(&output.stderr)))
}

#[test]
fn two_samples_make_sound_files() {
    let place = directory("files");
    let [json, csv, html] =
        ["a.json", "a.csv", "a.html"].map(|name| place.join(name).to_str().unwrap().to_owned());
    let output = run(&["--every", "50ms", "--for", "100ms", "--json", &json, "--csv", &csv, "--html", &html]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    assert!(shown.contains("busiest disk") && shown.contains("joj monitor itself:"), "{shown}");
    let document: MonitorDocument = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
    assert_eq!((document.format.as_str(), document.version), ("joj-monitor", 1));
    // A machine that is late joins intervals.
    assert!((1..=2).contains(&document.samples()), "{shown}");
    assert_eq!(document.ending.reason, EndReason::Time);
    assert!(document.quantities.iter().any(|series| series.kind == QuantityKind::Cpu));
    for series in &document.quantities {
        assert_eq!(series.values.0.len(), document.samples(), "{} {}", series.name, series.quantity);
        let summary = series.summary;
        assert!(summary.p50 <= summary.p99 && summary.p99 <= summary.max, "{series:?}");
    }
    assert!(document.own_cost.elapsed_ms >= 100.0 && document.own_cost.cpu_ms > 0.0);
    let rows: Vec<String> = fs::read_to_string(&csv).unwrap().lines().map(str::to_owned).collect();
    assert_eq!(rows.len(), document.samples() + 1);
    assert!(rows[0].starts_with("at_ms,span_ms,cpu active [%],"), "{}", rows[0]);
    assert_eq!(rows[1].split(',').count(), document.quantities.len() + 2, "{}", rows[1]);
    let page = fs::read_to_string(&html).unwrap();
    assert!(page.contains("<svg") && page.contains("Processors") && page.ends_with("</html>\n"));
    for outside in ["<script", "src=", "href="] {
        assert!(!page.contains(outside), "the page needs {outside}");
    }
    fs::remove_dir_all(&place).unwrap();
}

#[test]
fn the_commands_exit_code_is_passed_on() {
    let arguments = ["--every", "50ms", "--json", "-", "--quiet", "--", "sh", "-c", "echo mine; exit 7"];
    let output = run(&arguments);
    assert_eq!(output.status.code(), Some(7), "{}", text(&output.stderr));
    let document = document(&output);
    assert_eq!((document.ending.reason, document.ending.exit_code), (EndReason::Command, Some(7)));
    assert_eq!(document.conditions.command[0], "sh");
    assert!(
        text(&output.stderr).starts_with("mine\n"),
        "its output went elsewhere: {}",
        text(&output.stderr)
    );
    let beyond = run(&["--every", "10ms", "--for", "20ms", "-q", "--", "sh", "-c", "sleep 0.2; kill -9 $$"]);
    assert_eq!(beyond.status.code(), Some(137), "{}", text(&beyond.stderr));
    assert!(text(&beyond.stderr).contains("waiting for sh to end"), "{}", text(&beyond.stderr));
    let missing = run(&["--", "/no/such/program"]);
    assert_eq!(missing.status.code(), Some(127), "{}", text(&missing.stderr));
}

fn wait_at_most_20_s(child: &mut Child) -> i32 {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code().unwrap();
        }
        assert!(began.elapsed() < Duration::from_secs(20), "it does not end");
        sleep(Duration::from_millis(10));
    }
}

/// Starts it with its output in a file, sends SIGINT once it shows a sample; its exit code and output.
fn interrupted(name: &str, more: &[&str]) -> (i32, String) {
    let place = directory(name);
    let file = place.join("out");
    let (stdout, stderr) = (fs::File::create(&file).unwrap(), fs::File::create(place.join("err")).unwrap());
    let arguments = [&["--every", "50ms"], more].concat();
    let mut child = joj(&arguments).stdout(stdout).stderr(stderr).spawn().unwrap();
    let shown = || fs::read_to_string(&file).unwrap() + &fs::read_to_string(place.join("err")).unwrap();
    let began = Instant::now();
    while shown().lines().count() < 3 {
        assert!(began.elapsed() < Duration::from_secs(20), "no sample: {}", shown());
        sleep(Duration::from_millis(10));
    }
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    let code = wait_at_most_20_s(&mut child);
    let shown = shown();
    fs::remove_dir_all(&place).unwrap();
    (code, shown)
}

#[test]
fn ctrl_c_ends_with_the_summary() {
    for (name, more, expected) in [("plain", &[] as &[&str], 0), ("cut", &["--for", "10m"], 130)] {
        let (code, shown) = interrupted(name, more);
        assert_eq!(code, expected, "{shown}");
        assert!(shown.contains("ended by a signal") && shown.contains("joj monitor itself:"), "{shown}");
    }
}

#[test]
fn ctrl_c_ends_the_command_too() {
    let began = Instant::now();
    let (code, shown) = interrupted("command", &["--", "sleep", "600"]);
    assert_eq!(code, 128 + 15, "{shown}");
    assert!(shown.contains("exit code 143"), "{shown}");
    assert!(began.elapsed() < Duration::from_secs(60));
}

/// A directory like /proc with one disk, whose counters stand still.
fn proc_with(name: &str, diskstats: &str) -> PathBuf {
    let place = directory(name);
    fs::create_dir_all(place.join("net")).unwrap();
    fs::write(place.join("stat"), "cpu  1 2 3 4\nctxt 5\n").unwrap();
    fs::write(place.join("diskstats"), diskstats).unwrap();
    place
}

#[test]
fn texts_of_an_old_kernel_and_missing_ones_are_no_zeros() {
    let place = proc_with("old", " 179 0 mmcblk0 284 10 1500 612 91 88 640 400 0 60 461\n");
    let proc = place.to_str().unwrap();
    let output =
        run(&["--proc", proc, "--device", "mmcblk0", "--every", "10ms", "--for", "20ms", "--json", "-"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let document = document(&output);
    let has = |quantity: &str| document.quantities.iter().any(|series| series.quantity == quantity);
    assert!(has("writes") && !has("discards") && !has("flushes") && !has("dirty"), "{document:?}");
    // Of CPU time nothing passed: no share, and ticks that are 0.
    assert!(!has("active") && has("active_ticks"));
    assert_eq!(document.warnings.len(), 4, "{:?}", document.warnings);
    fs::remove_dir_all(&place).unwrap();
}

#[test]
fn damage_and_wrong_names_are_told_with_their_place() {
    let place = proc_with("damaged", "8 0 sda 1 2 3 4 5 6 7 8 0 9 10\n8 16 sdb 1 2 3 4 5\n");
    let proc = place.to_str().unwrap();
    let output = run(&["--proc", proc, "--for", "20ms"]);
    assert_eq!(output.status.code(), Some(1));
    let error = text(&output.stderr);
    let expected = format!("{}, line 2: it has 8 fields", place.join("diskstats").display());
    assert!(error.contains(&expected), "{error}");
    fs::write(place.join("diskstats"), "8 0 sda 1 2 3 4 5 6 7 8 0 9 10\n").unwrap();
    let output = run(&["--proc", proc, "--for", "20ms", "--device", "sdx"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("--device takes one of: sda"), "{}", text(&output.stderr));
    fs::remove_dir_all(&place).unwrap();
    let output = run(&["--proc", proc, "--for", "20ms"]);
    assert!(text(&output.stderr).contains("there is nothing to monitor in"), "{}", text(&output.stderr));
    let output = run(&["--for", "20ms", "--html", "/no/such/directory/a.html"]);
    assert!(text(&output.stderr).contains("/no/such/directory/a.html"), "{}", text(&output.stderr));
}

/// The first reading is whole, a later one is not: what was sampled is shown, and that it is not all.
#[test]
fn damage_that_comes_later_is_no_clean_end() {
    let good = "8 0 sda 1 2 3 4 5 6 7 8 0 9 10\n";
    let place = proc_with("later", good);
    let file = place.join("diskstats");
    let damage = format!("sleep 0.3; echo '8 0 sda 1' > '{}'; sleep 0.5", file.display());
    let proc = place.to_str().unwrap();
    let output = run(&["--proc", proc, "--every", "20ms", "--json", "-", "-q", "--", "sh", "-c", &damage]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let document = document(&output);
    assert_eq!((document.ending.reason, document.ending.exit_code), (EndReason::Error, Some(0)));
    assert!(document.ending.error.unwrap().contains("diskstats, line 1"));
    assert!(text(&output.stderr).contains("FAILED after"), "{}", text(&output.stderr));
    fs::remove_dir_all(&place).unwrap();
}
