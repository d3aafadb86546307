//! Whether the file that stands for a folder opens with what is in it.

use crate::code::{is_identifier, without_comments_and_strings};
use crate::tree::{Tree, Violation};

/// A folder with fewer modules than this is seen at a glance.
const MODULES_MIN: usize = 3;
/// Files that stand for their folder.
const OF_THE_FOLDER: [&str; 3] = ["mod.rs", "lib.rs", "main.rs"];

/// Folders whose head leaves out one of their modules: whoever looks for it there does not find it.
pub fn incomplete(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in tree.files.iter().filter(|file| file.path.contains("/src/")) {
        let name = file.path.rsplit('/').next().unwrap_or_default();
        let Some(text) = file.text().filter(|_| OF_THE_FOLDER.contains(&name)) else { continue };
        let code = without_comments_and_strings(text);
        let modules: Vec<(usize, &str)> =
            modules_of(&code).filter(|(_, module)| *module != "tests").collect();
        if modules.len() < MODULES_MIN {
            continue;
        }
        let head: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("//!")).collect();
        let head = head.join("\n");
        for (line, module) in modules {
            if !names(&head, module) && !names(&head, &module.replace('_', " ")) {
                let message = format!("the head does not name `{module}`: say in a line what it does");
                found.push(Violation::new(file, line, message));
            }
        }
    }
    found
}

/// Each module that `code` declares to be in a file of its own, with its line (first is 1).
fn modules_of(code: &str) -> impl Iterator<Item = (usize, &str)> {
    code.lines().enumerate().filter_map(|(index, line)| {
        let (before, name) = line.trim_end().strip_suffix(';')?.rsplit_once("mod ")?;
        let is_declared = before.is_empty() || before.starts_with("pub") && before.ends_with(' ');
        (is_declared && name.chars().all(is_identifier)).then_some((index + 1, name))
    })
}

/// True where `words` stand in `text`, and not as a part of a longer word.
fn names(text: &str, words: &str) -> bool {
    text.match_indices(words).any(|(at, _)| {
        !text[..at].ends_with(is_identifier) && !text[at + words.len()..].starts_with(is_identifier)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(path: &str, text: &str) -> Vec<String> {
        let found = incomplete(&Tree::sample(&[(path, text)]));
        found.into_iter().map(|violation| violation.to_string()).collect()
    }

    #[test]
    fn each_of_three_modules_is_named_in_the_head() {
        let modules = "pub mod disk;\nmod sync_turn;\npub(in crate::a) mod page;\n#[cfg(test)]\nmod tests;\n";
        let of = |head: &str| messages("crates/a/src/b/mod.rs", &format!("//! {head}\n\n{modules}"));
        assert!(of("disk, sync_turn, page").is_empty());
        assert!(of("The `disk`.\n//!\n//! page   a page;  sync turn   who syncs").is_empty(), "in two words");
        let missing = of("disk, page");
        assert_eq!(missing.len(), 1);
        assert!(missing[0].starts_with("crates/a/src/b/mod.rs:4: "), "{missing:?}");
        assert!(missing[0].contains("`sync_turn`"), "{missing:?}");
        assert_eq!(of("disks, sync_turns, pages").len(), 3, "a longer word is another one");
        assert_eq!(of("B.\n// disk, sync_turn, page").len(), 3, "a comment is no head");
    }

    #[test]
    fn two_modules_and_other_files_need_no_list() {
        assert!(
            messages("crates/a/src/b/mod.rs", "//! B.\nmod c;\nmod d;\n// mod e;\nmod tests;\n").is_empty()
        );
        let three = "//! B.\nmod c;\nmod d;\nmod e;\n";
        assert_eq!(messages("crates/a/src/lib.rs", three).len(), 3);
        assert!(messages("crates/a/src/b.rs", three).is_empty());
        assert!(messages("crates/a/tests/real/mod.rs", three).is_empty());
    }
}
