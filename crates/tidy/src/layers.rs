//! Inside a crate, a module uses only modules declared below it: `lib.rs` reads from top to bottom.
//!
//! The same holds for the files of a folder, in the order in which its `mod.rs` (or `folder.rs`) declares them.

use std::collections::BTreeMap;

use crate::tree::{SourceFile, Tree, Violation};
use crate::{code, paths};

/// A module's path inside its crate; empty for `lib.rs` and `main.rs`.
type ModulePath = Vec<String>;

/// Uses of a module that is declared above the module using it.
pub fn upward_uses(tree: &Tree) -> Vec<Violation> {
    let mut crates: BTreeMap<&str, Vec<Module>> = BTreeMap::new();
    for file in &tree.files {
        if let Some((name, path)) = module_path(&file.path) {
            crates.entry(name).or_default().push(Module::read(file, path));
        }
    }
    crates
        .values()
        .flat_map(|modules| modules.iter().flat_map(|module| uses_above(module, modules)))
        .collect()
}

struct Module<'tree> {
    file: &'tree SourceFile,
    path: ModulePath,
    /// Modules it declares, in order, without those for tests.
    declared: Vec<String>,
    code: String,
}

impl<'tree> Module<'tree> {
    fn read(file: &'tree SourceFile, path: ModulePath) -> Self {
        let code = code::without_unit_tests(&code::without_comments_and_strings(file.text().unwrap_or("")));
        let declared = code
            .lines()
            .filter_map(|line| {
                let mut words = line.trim().strip_suffix(';')?.split_whitespace().rev();
                let name = words.next()?;
                (words.next()? == "mod").then(|| name.to_owned())
            })
            .collect();
        Module { file, path, declared, code }
    }
}

fn uses_above(module: &Module, modules: &[Module]) -> Vec<Violation> {
    let mut found: Vec<Violation> = Vec::new();
    if !is_declared(&module.path, modules) {
        return found; // for tests only, or a program of its own
    }
    for named in paths::beginning_with(&module.code, &["crate", "self", "super"]) {
        let used = absolute(&module.path, &named.segments);
        let shared = module.path.iter().zip(&used).take_while(|(a, b)| a == b).count();
        // Its own children and itself, or items of a module around it.
        let (Some(own), Some(other)) = (module.path.get(shared), used.get(shared)) else { continue };
        let Some(parent) = modules.iter().find(|parent| parent.path == module.path[..shared]) else {
            continue;
        };
        let position = |name: &String| parent.declared.iter().position(|declared| declared == name);
        let (Some(own_at), Some(other_at)) = (position(own), position(other)) else { continue };
        if other_at < own_at {
            let list = &parent.file.path;
            let message = format!(
                "`{own}` uses `{other}`, which stands above it in {list}: turn the use round, or move it"
            );
            // One report for each pair of modules: the first use says it all.
            if found.iter().all(|violation| violation.message != message) {
                found.push(Violation::new(module.file, named.line, message));
            }
        }
    }
    found
}

/// True when every module on the way to `path` declares the next.
fn is_declared(path: &[String], modules: &[Module]) -> bool {
    (0..path.len()).all(|depth| {
        let parent = modules.iter().find(|module| module.path == path[..depth]);
        parent.is_some_and(|module| module.declared.contains(&path[depth]))
    })
}

/// `segments`, which begin with crate, self or super, as seen from the module `from`.
fn absolute(from: &[String], segments: &[String]) -> ModulePath {
    let mut path = from.to_vec();
    for segment in segments {
        match segment.as_str() {
            "crate" => path.clear(),
            "self" => {}
            "super" => drop(path.pop()),
            name => path.push(name.to_owned()),
        }
    }
    path
}

/// (crate, module path) of `crates/CRATE/src/...rs`.
fn module_path(path: &str) -> Option<(&str, ModulePath)> {
    let (name, rest) = path.strip_prefix("crates/")?.split_once("/src/")?;
    let mut segments: ModulePath = rest.strip_suffix(".rs")?.split('/').map(str::to_owned).collect();
    match segments.last().map(String::as_str) {
        Some("mod") => drop(segments.pop()),
        Some("lib" | "main") if segments.len() == 1 => drop(segments.pop()),
        _ => {}
    }
    Some((name, segments))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: (&str, &str) =
        ("crates/a/src/lib.rs", "//! A.\npub mod top;\nmod folder;\n#[cfg(test)]\nmod samples;\nmod low;\n");

    /// (file, line) of each upward use in a crate of `ROOT` and `files`.
    fn found(files: &[(&str, &str)]) -> Vec<(String, usize)> {
        let tree = Tree::sample(&[&[ROOT], files].concat());
        upward_uses(&tree).into_iter().map(|violation| (violation.path, violation.line)).collect()
    }

    #[test]
    fn a_use_of_a_module_above_is_found() {
        let at = |line| [("crates/a/src/low.rs".to_owned(), line)];
        assert_eq!(found(&[("crates/a/src/low.rs", "use crate::top::X;\n")]), at(1));
        assert_eq!(found(&[("crates/a/src/low.rs", "\nuse crate::{low, top};\n")]), at(2));
        assert_eq!(found(&[("crates/a/src/low.rs", "fn f() {\n\n crate::folder::g() }\n")]), at(3));
        assert_eq!(found(&[("crates/a/src/low.rs", "use super::top::X;\n")]), at(1));
    }

    #[test]
    fn uses_of_modules_below_are_fine() {
        assert_eq!(found(&[("crates/a/src/top.rs", "use crate::{folder, low::X};\n")]), []);
        assert_eq!(found(&[("crates/a/src/low.rs", "use crate::low::X; use crate::CONSTANT;\n")]), []);
    }

    #[test]
    fn a_folder_is_a_list_of_its_own() {
        let list = ("crates/a/src/folder/mod.rs", "mod first;\nmod second;\nuse first::X;\n");
        let at = |name: &str| [(format!("crates/a/src/folder/{name}.rs"), 1)];
        assert_eq!(found(&[list, ("crates/a/src/folder/second.rs", "use super::first::X;\n")]), at("second"));
        assert_eq!(
            found(&[list, ("crates/a/src/folder/first.rs", "use crate::folder::second; use crate::low;\n")]),
            []
        );
        assert_eq!(found(&[list, ("crates/a/src/folder/first.rs", "use crate::top;\n")]), at("first"));
    }

    #[test]
    fn tests_may_use_anything() {
        let unit_test = "#[cfg(test)]\nmod tests { use crate::top; }\n";
        assert_eq!(
            found(&[("crates/a/src/low.rs", unit_test), ("crates/a/src/samples.rs", "use crate::top;\n")]),
            []
        );
        assert_eq!(found(&[("crates/a/tests/x.rs", "use crate::top;\n")]), []);
    }
}
