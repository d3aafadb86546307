//! A result against the schema that joj prints: it passes, and does not with a field more, a field less or a number made a string.

#![allow(dead_code, reason = "each test program uses a part")]
#![allow(clippy::unwrap_used, reason = "clippy exempts test functions, not the helpers they share")]

use std::collections::BTreeSet;
use std::process::Command;

use jsonschema::Validator;
use serde_json::{Value, json};

/// Numbers and objects of a result that are made wrong: of each, so many in even steps.
const MUTATIONS: usize = 60;

/// What joj prints.
pub fn printed(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_joj")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The schema of this name.
pub fn schema(name: &str) -> Value {
    serde_json::from_str(&printed(&["schema", name])).unwrap()
}

/// JSON pointers of all values that `is_one` is true of.
pub fn places(value: &Value, here: &str, is_one: fn(&Value) -> bool, found: &mut Vec<String>) {
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
pub fn holds(name: &str, result: &Value, optional: &[&str]) {
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

/// The same with the text of a result.
pub fn holds_of_text(name: &str, text: &[u8], optional: &[&str]) {
    holds(name, &serde_json::from_slice(text).unwrap(), optional);
}
