//! Goal: what `--json` writes is what its schema says, and a schema says all of it.
//! Method: the built program writes real results. Each is held to the schema that it prints, and so are results with a field
//! more, a field less and a number made a string, of which none may pass.

#![allow(clippy::unwrap_used, reason = "clippy exempts test functions, not the helpers they share")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use jsonschema::Validator;
use serde_json::{Value, json};

/// Numbers and objects of a result that are made wrong: of each, so many in even steps.
const MUTATIONS: usize = 60;

fn printed(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_joj")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// What a command writes with `--json -`.
fn written(arguments: &[&str]) -> Value {
    serde_json::from_str(&printed(&[arguments, &["--json", "-"]].concat())).unwrap()
}

fn schema(name: &str) -> Value {
    serde_json::from_str(&printed(&["schema", name])).unwrap()
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

/// JSON pointers of all values that `is_one` is true of.
fn places(value: &Value, here: &str, is_one: fn(&Value) -> bool, found: &mut Vec<String>) {
    if is_one(value) {
        found.push(here.to_owned());
    }
    match value {
        Value::Object(fields) => fields.iter().for_each(|(key, below)| {
            let key = key.replace('~', "~0").replace('/', "~1");
            places(below, &format!("{here}/{key}"), is_one, found);
        }),
        Value::Array(values) => values.iter().enumerate().for_each(|(index, below)| {
            places(below, &format!("{here}/{index}"), is_one, found);
        }),
        _ => {}
    }
}

/// Some of these places, from the first to the last.
fn some_places(value: &Value, is_one: fn(&Value) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    places(value, "", is_one, &mut found);
    let step = found.len().div_ceil(MUTATIONS).max(1);
    found.into_iter().step_by(step).collect()
}

/// Says what the schema has against the result.
fn check(name: &str, validator: &Validator, result: &Value) {
    let errors: Vec<String> = validator
        .iter_errors(result)
        .take(3)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{name}: {errors:#?}");
}

/// The result passes, and does not once any of its parts is wrong. Of its first fields, `optional` alone may be left out.
fn holds(name: &str, result: &Value, optional: &[&str]) {
    let validator = jsonschema::validator_for(&schema(name)).unwrap();
    check(name, &validator, result);
    let refuses = |what: String, change: &dyn Fn(&mut Value)| {
        let mut other = result.clone();
        change(&mut other);
        assert!(!validator.is_valid(&other), "{name}: {what} passes");
    };
    for place in some_places(result, Value::is_object) {
        // Nothing that joj writes has such a field, nor a map with such a value.
        refuses(format!("another field in {place:?}"), &|other| {
            other.pointer_mut(&place).unwrap()["no such field"] = json!([[[true]]]);
        });
    }
    for place in some_places(result, Value::is_number) {
        refuses(format!("the string in {place:?}"), &|other| {
            *other.pointer_mut(&place).unwrap() = json!("7");
        });
    }
    let without = |field: &str| {
        let mut other = result.clone();
        other.as_object_mut().unwrap().remove(field);
        validator.is_valid(&other)
    };
    let left_out: BTreeSet<&str> =
        result.as_object().unwrap().keys().map(String::as_str).filter(|field| without(field)).collect();
    assert_eq!(left_out, BTreeSet::from_iter(optional.iter().copied()), "{name}");
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
