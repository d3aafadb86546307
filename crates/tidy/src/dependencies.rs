//! Who may use whom: the crates' dependency table, and the crates that may not touch the machine.

use crate::tree::{SourceFile, Tree, Violation};
use crate::{code, paths};

/// A crate, what it may depend on, and what its tests may besides. A crate that is missing here is a violation too.
const TABLE: [(&str, &[&str], &[&str]); 6] = [
    ("blockio", &["rustix", "libc"], &[]),
    (
        "joj",
        &[
            "blockio",
            "bytes",
            "clap",
            "clap_complete",
            "clap_mangen",
            "cpio",
            "fnv",
            "io-uring",
            "joj-analysis",
            "joj-device",
            "libbpf-rs",
            "libc",
            "libloading",
            "libsqlite3-sys",
            "parquet",
            "rustc-hash",
            "rustix",
            "schemars",
            "serde",
            "serde_json",
            "thiserror",
            "toml",
        ],
        &["jsonschema"],
    ),
    // waldio only in tests: what waldio promises is written down here once more, and must stay the same.
    ("joj-analysis", &["fnv", "schemars", "serde", "serde_json", "thiserror"], &["waldio"]),
    ("joj-device", &["blockio", "joj-analysis", "rustix", "serde", "thiserror", "toml"], &[]),
    ("tidy", &[], &[]),
    // libsqlite3-sys only in tests: it refuses SQLite below 3.45, which Debian 12 has.
    // shuttle only with the feature `model`, for one test.
    ("waldio", &["blockio", "rustix", "shuttle"], &["blockio", "libsqlite3-sys", "rustix"]),
];

/// Crates that get bytes and give numbers, and the words that would let them do anything else.
const PURE: [&str; 1] = ["joj-analysis"];
const MACHINE: [&str; 7] = ["env", "fs", "net", "os", "process", "thread", "time"];

/// Dependencies of a crate that the table does not allow.
pub fn outside_the_table(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in &tree.files {
        let Some(name) = crate_of_manifest(&file.path) else { continue };
        let Some((_, allowed, in_tests)) = TABLE.iter().find(|(entry, ..)| *entry == name) else {
            found.push(Violation::new(
                file,
                0,
                format!("crate `{name}` is not in the table of dependencies.rs"),
            ));
            continue;
        };
        for (line, kind, dependency) in dependencies(file) {
            let listed =
                allowed.contains(&dependency) || (kind == Kind::Test && in_tests.contains(&dependency));
            if !listed {
                let message = format!(
                    "`{name}` may not use `{dependency}` (the table of crates/tidy/src/dependencies.rs)"
                );
                found.push(Violation::new(file, line, message));
            }
        }
    }
    found
}

/// Files, clocks, threads, processes and sockets in a crate that must only compute.
pub fn machine_access_in_pure_crates(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in tree.files.iter().filter(|file| file.is_rust()) {
        let Some(name) = PURE.iter().find(|name| file.path.starts_with(&format!("crates/{name}/src/")))
        else {
            continue;
        };
        let code = code::without_comments_and_strings(file.text().unwrap_or(""));
        for named in paths::beginning_with(&code::without_unit_tests(&code), &["std"]) {
            // Duration is a number, not a clock.
            let is_duration = named.segments.get(1..3).is_some_and(|path| path == ["time", "Duration"]);
            if MACHINE.contains(&named.segments.get(1).map_or("", String::as_str)) && !is_duration {
                let path = named.segments[..2].join("::");
                let message = format!("`{name}` may not use `{path}`: let joj read, and hand it the bytes");
                found.push(Violation::new(file, named.line, message));
            }
        }
    }
    found
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Build,
    Test,
}

/// `crates/NAME/Cargo.toml` gives NAME.
fn crate_of_manifest(path: &str) -> Option<&str> {
    let name = path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")?;
    if name.contains('/') { None } else { Some(name) }
}

/// (line, kind, name) of each dependency of a manifest.
fn dependencies(manifest: &SourceFile) -> Vec<(usize, Kind, &str)> {
    let mut found = Vec::new();
    let mut section = None;
    for (index, line) in manifest.text().unwrap_or("").lines().enumerate() {
        let line = line.trim();
        if let Some(header) = line.strip_prefix('[') {
            let header = header.trim_end_matches(']');
            section = section_kind(header);
            // [dependencies.name] is an entry of its own.
            if let Some((_, name)) = header.rsplit_once("dependencies.") {
                found.push((index + 1, section.unwrap_or(Kind::Build), name));
                section = None;
            }
        } else if let (Some(kind), false) = (section, line.is_empty() || line.starts_with('#')) {
            found.push((index + 1, kind, dependency_name(line)));
        }
    }
    found
}

fn section_kind(header: &str) -> Option<Kind> {
    let header =
        header.rsplit_once("dependencies.").map_or(header, |(before, _)| &header[..before.len() + 12]);
    match header {
        _ if header.ends_with("dev-dependencies") => Some(Kind::Test),
        _ if header.ends_with("dependencies") && !header.starts_with("workspace") => Some(Kind::Build),
        _ => None,
    }
}

/// The package behind `name = {..}`, `name.workspace = true` or `alias = { package = "name" }`.
fn dependency_name(line: &str) -> &str {
    if let Some((_, after)) = line.split_once("package = \"") {
        return after.split('"').next().unwrap_or(after);
    }
    line.split(['.', '=', ' ']).next().unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(check: fn(&Tree) -> Vec<Violation>, path: &str, text: &str) -> Vec<usize> {
        check(&Tree::sample(&[(path, text)])).iter().map(|violation| violation.line).collect()
    }

    #[test]
    fn every_way_to_write_a_forbidden_dependency_is_found() {
        for entry in [
            "[dependencies]\njoj = \"1\"",
            "[dependencies]\njoj.workspace = true",
            "[dependencies]\nx = { package = \"joj\" }",
            "\n[dependencies.joj]\npath = \"..\"",
            "[target.'cfg(unix)'.dependencies]\njoj = \"1\"",
            "[build-dependencies]\njoj = \"1\"",
            "[dev-dependencies]\njoj = \"1\"",
            "[dependencies]\nlibsqlite3-sys = \"1\"",
        ] {
            assert_eq!(lines(outside_the_table, "crates/waldio/Cargo.toml", entry), [2], "{entry}");
        }
    }

    #[test]
    fn what_the_table_allows_is_allowed() {
        let text = "[package]\nname = \"x\"\n[dependencies]\n# why\nblockio.workspace = true\n\n[dev-dependencies]\n\
                    libsqlite3-sys.workspace = true\n[lints]\nworkspace = true\n";
        assert_eq!(lines(outside_the_table, "crates/waldio/Cargo.toml", text), [0; 0]);
    }

    #[test]
    fn a_new_crate_must_enter_the_table() {
        assert_eq!(lines(outside_the_table, "crates/new/Cargo.toml", ""), [0]);
        assert_eq!(lines(outside_the_table, "Cargo.toml", "[workspace.dependencies]\nx = \"1\"\n"), [0; 0]);
    }

    #[test]
    fn a_pure_crate_has_no_clock_and_no_file() {
        let text = "//! A.\nuse std::{fmt,\n fs};\nfn a() { std::time::Instant::now() }\nuse std::time::Duration;\n\
                    #[cfg(test)]\nmod tests { use std::fs; }\n";
        assert_eq!(lines(machine_access_in_pure_crates, "crates/joj-analysis/src/a.rs", text), [2, 4]);
        assert_eq!(lines(machine_access_in_pure_crates, "crates/joj/src/a.rs", text), [0; 0]);
    }
}
