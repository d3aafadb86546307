//! The files of the repository, read once, and what a check says about one of them.

use std::fmt;
use std::path::Path;
use std::process::Command;
use std::{fs, io};

/// One file: its path from the repository's root with `/`, and its bytes.
#[derive(Debug)]
pub struct SourceFile {
    /// Path from the repository's root.
    pub path: String,
    /// The whole content.
    pub bytes: Vec<u8>,
}

impl SourceFile {
    /// The content as text, or `None` for a binary file.
    pub fn text(&self) -> Option<&str> {
        if self.bytes.contains(&0) { None } else { std::str::from_utf8(&self.bytes).ok() }
    }

    /// True for a Rust source.
    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }
}

/// All files that are, or are about to be, part of the repository.
#[derive(Debug)]
pub struct Tree {
    /// Sorted by path.
    pub files: Vec<SourceFile>,
}

impl Tree {
    /// Reads every file below `root` that git tracks or would offer to add; without git, every file outside `target`.
    /// # Errors
    /// When a directory or file cannot be read.
    pub fn read(root: &Path) -> io::Result<Tree> {
        let mut paths = match paths_by_git(root) {
            Some(paths) => paths,
            None => paths_by_walking(root, "")?,
        };
        paths.sort();
        let mut files = Vec::new();
        for path in paths {
            // A symbolic link is its target's business; a file just deleted is still in git's index.
            let full = root.join(&path);
            if full.symlink_metadata().is_ok_and(|metadata| metadata.is_file()) {
                files.push(SourceFile { path, bytes: fs::read(full)? });
            }
        }
        Ok(Tree { files })
    }

    /// The file at `path`, if there is one.
    pub fn get(&self, path: &str) -> Option<&SourceFile> {
        self.files.iter().find(|file| file.path == path)
    }

    /// True when `path` is a file of the tree or a directory holding one.
    pub fn contains(&self, path: &str) -> bool {
        let directory = format!("{}/", path.trim_end_matches('/'));
        path.is_empty()
            || self.get(path).is_some()
            || self.files.iter().any(|file| file.path.starts_with(&directory))
    }

    /// A tree of (path, text) for the checks' own tests.
    #[cfg(test)]
    pub fn sample(files: &[(&str, &str)]) -> Tree {
        let file = |(path, text): &(&str, &str)| SourceFile { path: (*path).into(), bytes: (*text).into() };
        Tree { files: files.iter().map(file).collect() }
    }
}

fn paths_by_git(root: &Path) -> Option<Vec<String>> {
    let arguments = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let output = Command::new("git").arg("-C").arg(root).args(arguments).output().ok()?;
    if !output.status.success() {
        return None;
    }
    let names = String::from_utf8(output.stdout).ok()?;
    Some(names.split_terminator('\0').map(str::to_owned).collect())
}

fn paths_by_walking(root: &Path, below: &str) -> io::Result<Vec<String>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(root.join(below))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if below.is_empty() { name.clone() } else { format!("{below}/{name}") };
        if !entry.file_type()?.is_dir() {
            paths.push(path);
        } else if ![".git", "target", "results"].contains(&name.as_str()) {
            paths.extend(paths_by_walking(root, &path)?);
        }
    }
    Ok(paths)
}

/// One broken rule: where, and what to do about it.
#[derive(Debug, PartialEq, Eq)]
pub struct Violation {
    /// Path from the repository's root.
    pub path: String,
    /// First is 1; 0 when the whole file is meant.
    pub line: usize,
    /// What is wrong and how to mend it.
    pub message: String,
}

impl Violation {
    /// A violation in `file` at `line` (0: the whole file).
    pub fn new(file: &SourceFile, line: usize, message: impl Into<String>) -> Violation {
        Violation { path: file.path.clone(), line, message: message.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}: {}", self.path, self.line, self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walking_finds_what_git_finds() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut walked = paths_by_walking(&root, "").unwrap();
        walked.sort();
        assert!(walked.contains(&"tree.rs".to_owned()), "{walked:?}");
        if let Some(mut by_git) = paths_by_git(&root) {
            by_git.sort();
            assert_eq!(walked, by_git);
        }
    }

    #[test]
    fn a_directory_is_contained_by_its_files() {
        let tree = Tree::sample(&[("docs/testing.md", "")]);
        assert!(tree.contains("docs") && tree.contains("docs/") && tree.contains("docs/testing.md"));
        assert!(!tree.contains("doc"));
    }

    #[test]
    fn binary_files_have_no_text() {
        let tree = Tree::sample(&[("a", "x\0y")]);
        assert_eq!(tree.files[0].text(), None);
    }
}
