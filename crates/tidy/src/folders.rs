//! How many files stand side by side in a folder of a crate's sources, and what their names have in common.

use std::collections::BTreeMap;

use crate::tree::{SourceFile, Tree, Violation};

/// A folder with more files than this is several.
const FILES_MAX: usize = 12;
/// So many files with the same first word in their names are a folder that is missing.
const SAME_WORD_MAX: usize = 2;
/// They stand for the folder itself.
const OF_THE_FOLDER: [&str; 3] = ["mod.rs", "lib.rs", "main.rs"];

/// Folders with too many files, and names that ask for a folder.
pub fn crowded(tree: &Tree) -> Vec<Violation> {
    let mut folders: BTreeMap<&str, Vec<(&str, &SourceFile)>> = BTreeMap::new();
    for file in tree.files.iter().filter(|file| file.is_rust() && file.path.contains("/src/")) {
        let Some((folder, name)) = file.path.rsplit_once('/') else { continue };
        if !OF_THE_FOLDER.contains(&name) {
            folders.entry(folder).or_default().push((name.trim_end_matches(".rs"), file));
        }
    }
    let mut found = Vec::new();
    for (folder, files) in folders {
        if files.len() > FILES_MAX {
            let message =
                format!("{folder} has {} files side by side, {FILES_MAX} at most: make folders", files.len());
            found.push(Violation::new(files[0].1, 1, message));
        }
        let mut words: BTreeMap<&str, Vec<&SourceFile>> = BTreeMap::new();
        for (name, file) in &files {
            if let Some((word, _)) = name.split_once('_') {
                words.entry(word).or_default().push(file);
            }
        }
        for (word, same) in words.iter().filter(|(_, same)| same.len() > SAME_WORD_MAX) {
            let message = format!("{} files in {folder} begin with `{word}_`: make it a folder", same.len());
            found.push(Violation::new(same[0], 1, message));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(paths: &[String]) -> Vec<String> {
        let files: Vec<(&str, &str)> = paths.iter().map(|path| (path.as_str(), "//! A header.\n")).collect();
        crowded(&Tree::sample(&files)).into_iter().map(|violation| violation.message).collect()
    }

    #[test]
    fn a_folder_holds_a_dozen_files_and_its_own() {
        let of =
            |count: usize| -> Vec<String> { (0..count).map(|n| format!("crates/a/src/b/n{n}.rs")).collect() };
        let mut dozen = of(12);
        dozen.push("crates/a/src/b/mod.rs".to_owned());
        assert!(messages(&dozen).is_empty());
        assert!(messages(&of(13))[0].contains("13 files"));
        let tests: Vec<String> = (0..40).map(|n| format!("crates/a/tests/n{n}.rs")).collect();
        assert!(messages(&tests).is_empty(), "each is a program of its own");
    }

    #[test]
    fn three_names_with_one_first_word_are_a_folder() {
        let of = |names: &[&str]| -> Vec<String> {
            names.iter().map(|name| format!("crates/a/src/{name}.rs")).collect()
        };
        assert!(messages(&of(&["trace_a", "trace_b", "trace", "tracefs_c"])).is_empty());
        assert!(messages(&of(&["trace_a", "trace_b", "trace_c"]))[0].contains("`trace_`"));
    }
}
