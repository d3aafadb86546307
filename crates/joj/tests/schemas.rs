//! Goal: what `--json` writes is what its schema says, and a schema says all of it.
//! Method: the built program writes real results. Each is held to the schema that it prints, and so are results with a field
//! more, a field less and a number made a string, of which none may pass. The tests of the lab do the same with theirs.

#![allow(clippy::unwrap_used, reason = "clippy exempts test functions, not the helpers they share")]

mod schema;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use schema::{holds, places, printed, schema};
use serde_json::Value;

/// What a command writes with `--json -`.
fn written(arguments: &[&str]) -> Value {
    serde_json::from_str(&printed(&[arguments, &["--json", "-"]].concat())).unwrap()
}

/// The names that `joj schema` lists, each with the command beside it.
fn listed() -> Vec<(String, String)> {
    let list = printed(&["schema"]);
    let split = |line: &str| line.split_once(' ').map(|(name, command)| (name.into(), command.trim().into()));
    list.lines().filter_map(split).collect()
}

/// A fresh directory of the build tree.
fn directory(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("schemas-{name}"));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

fn fixture(name: &str) -> String {
    format!("{}/../../fixtures/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn each_command_with_json_has_a_schema() {
    fn below(words: &str, found: &mut Vec<String>) {
        let help = printed(&[&words.split_whitespace().collect::<Vec<_>>()[..], &["--help"]].concat());
        if help.lines().any(|line| line.trim_start().starts_with("--json ")) {
            found.push(format!("joj {words}"));
        }
        let Some((_, listed)) = help.split_once("Commands:\n") else { return };
        let listed = listed.lines().take_while(|line| !line.is_empty());
        for line in listed.filter(|line| line.starts_with("  ") && !line.starts_with("   ")) {
            let name = line.split_whitespace().next().unwrap();
            if name != "help" {
                below(format!("{words} {name}").trim(), found);
            }
        }
    }
    let mut commands = Vec::new();
    below("", &mut commands);
    let described = listed();
    let writes =
        |listed: &str, command: &str| listed == command || listed.starts_with(&format!("{command} --"));
    let has =
        |command: &String| described.iter().any(|(_, all)| all.split(", ").any(|one| writes(one, command)));
    let without: Vec<&String> = commands.iter().filter(|command| !has(command)).collect();
    assert!(commands.len() > 9 && without.is_empty(), "without a schema: {without:?}");
}

#[test]
fn each_schema_is_sound_and_reads_well() {
    for (name, _) in listed() {
        let schema = schema(&name);
        assert!(jsonschema::meta::is_valid(&schema), "{name}");
        let version = &schema["properties"]["version"]["const"];
        assert_eq!(schema["$id"], format!("urn:joj:{name}:{version}"));
        let mut objects = Vec::new();
        places(&schema, "", |value| value["properties"].is_object(), &mut objects);
        for place in &objects {
            let object = schema.pointer(place).unwrap();
            assert!(object.get("additionalProperties").is_some(), "{name}{place} is open");
        }
        let mut texts = Vec::new();
        places(&schema, "", |value| value["description"].is_string(), &mut texts);
        for place in texts {
            let text = schema.pointer(&place).unwrap()["description"].as_str().unwrap();
            // Words of Rust: a link of rustdoc, a value that JSON has not.
            let is_rust = ["[`", "](", "`None`", "`Some`", "::"].iter().any(|word| text.contains(word));
            assert!(!is_rust, "{name}{place}: {text}");
        }
    }
}

#[test]
fn all_go_into_a_directory_as_they_are_printed() {
    let place = directory("all").join("made");
    printed(&["schema", "--all", place.to_str().unwrap()]);
    let names = listed();
    assert_eq!(fs::read_dir(&place).unwrap().count(), names.len());
    for (name, _) in names {
        let file = fs::read_to_string(place.join(format!("{name}.schema.json"))).unwrap();
        assert_eq!(file, printed(&["schema", &name]));
    }
    let unknown = Command::new(env!("CARGO_BIN_EXE_joj")).args(["schema", "benches"]).output().unwrap();
    assert!(!unknown.status.success() && String::from_utf8_lossy(&unknown.stderr).contains("joj schema"));
}

#[test]
fn bench_writes_what_its_schema_says() {
    let place = directory("bench");
    let here = place.to_str().unwrap();
    let of = |more: &[&str]| written(&[&["bench", here, "--runs", "2"], more].concat());
    let rows =
        ["--transactions", "5", "--modes", "delete,wal", "--workloads", "insert", "--builds", "bundled"];
    holds("bench", &of(&rows), &[]);
    let contended = ["--threads", "2", "--seconds", "0.2", "--builds", "bundled", "--modes", "wal"];
    holds("bench", &of(&contended), &["contended"]);
    holds("bench", &of(&["--io", "--file", "64KiB"]), &["io"]);
    for part in ["init", "alignment"] {
        let study = format!("--waldio-study={part}");
        holds("bench", &of(&[&study, "--transactions", "16"]), &["study"]);
    }
}

#[test]
fn trace_writes_what_its_schema_says() {
    let traces = fs::read_dir(fixture("traces")).unwrap().map(|entry| entry.unwrap().path());
    let traces: Vec<PathBuf> =
        traces.filter(|path| path.extension().is_some_and(|end| end == "parquet")).collect();
    assert!(!traces.is_empty());
    for trace in traces {
        let result = written(&["trace", "--steps", "--read", trace.to_str().unwrap()]);
        let own = result.get("own").map(|_| "own");
        let optional: Vec<&str> = own.into_iter().chain(["transactions"]).collect();
        holds("trace", &result, &optional);
    }
}

#[test]
fn monitor_writes_what_its_schema_says() {
    // Some quantities have no value in an interval.
    holds("monitor", &written(&["monitor", "--every", "50ms", "--for", "150ms"]), &[]);
}

#[test]
fn mobibench_writes_what_its_schema_says() {
    let place = directory("mobibench");
    let here = place.to_str().unwrap();
    let of = |options: &str| {
        written(&[&["mobibench", "-p", here], &options.split(' ').collect::<Vec<_>>()[..]].concat())
    };
    holds("mobibench", &of("-f 64 -r 4 -a 1 -y 2"), &[]);
    holds("mobibench", &of("-d 0 -n 10 -t 2"), &[]);
}

#[test]
fn device_probe_writes_what_its_schema_says() {
    let place = directory("probe");
    let small = ["--range-min", "1MiB", "--range-max", "1MiB", "--record", "4KiB", "--requests", "9"];
    let result =
        written(&[&["device", "probe", place.to_str().unwrap(), "--runs", "2"], &small[..]].concat());
    holds("device-probe", &result, &[]);
}

#[test]
fn replay_writes_what_its_schema_says() {
    let place = directory("replay");
    let here = place.to_str().unwrap();
    let fast = ["replay", "launch-twitter", here, "--order", "fast"];
    holds("replay", &written(&fast), &[]);
    holds("replay", &written(&["replay", "launch-weather", here, "--check"]), &[]);
    holds("replay-as", &written(&[&fast[..], &["--as", "wal"]].concat()), &[]);
}

#[test]
fn whatif_writes_what_its_schema_says() {
    let place = directory("whatif");
    let here = place.to_str().unwrap();
    holds("whatif", &written(&["whatif", "launch-twitter", here, "--rounds", "1"]), &[]);
}

#[test]
fn the_labs_report_is_what_its_schema_says() {
    holds("lab-report", &written(&["lab", "report", &fixture("lab/made_up_result.json")]), &[]);
}
