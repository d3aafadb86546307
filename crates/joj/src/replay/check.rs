//! The files at the end of a replay, compared with those that the recording implies.

use joj_analysis::recording::file_tree::{Entries, TreeEntry};

/// A sentence for each difference of names, kinds and sizes.
pub fn differences(implied: &Entries, found: &Entries) -> Vec<String> {
    let mut told = Vec::new();
    for (path, wanted) in implied {
        match (wanted, found.get(path)) {
            (_, None) => told.push(format!("{path} is missing: the recording leaves {}", words(wanted))),
            // A link may point elsewhere: its target is below the replay's directory.
            (TreeEntry::Symlink(_), Some(TreeEntry::Symlink(_))) => {}
            (wanted, Some(there)) if wanted != there => {
                told.push(format!("{path} is {}: the recording leaves {}", words(there), words(wanted)));
            }
            _ => {}
        }
    }
    let more = found.iter().filter(|(path, _)| !implied.contains_key(*path));
    told.extend(
        more.map(|(path, there)| format!("{path} is {}: the recording leaves nothing there", words(there))),
    );
    told
}

fn words(entry: &TreeEntry) -> String {
    match entry {
        TreeEntry::Directory => "a directory".to_owned(),
        TreeEntry::File(bytes) => format!("a file of {bytes} bytes"),
        TreeEntry::Symlink(_) => "a symbolic link".to_owned(),
        TreeEntry::HardLink(first) => format!("another name of {first}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_difference_is_told() {
        let of = |entries: &[(&str, TreeEntry)]| -> Entries {
            entries.iter().map(|(path, entry)| ((*path).to_owned(), entry.clone())).collect()
        };
        let (file, link) = (TreeEntry::File, |to: &str| TreeEntry::Symlink(to.to_owned()));
        let implied =
            of(&[("/a", TreeEntry::Directory), ("/a/b", file(1)), ("/a/c", file(2)), ("/l", link("x"))]);
        assert!(differences(&implied, &implied).is_empty());
        let found =
            of(&[("/a", TreeEntry::Directory), ("/a/b", file(3)), ("/d", file(0)), ("/l", link("y"))]);
        assert_eq!(
            differences(&implied, &found),
            [
                "/a/b is a file of 3 bytes: the recording leaves a file of 1 bytes",
                "/a/c is missing: the recording leaves a file of 2 bytes",
                "/d is a file of 0 bytes: the recording leaves nothing there",
            ]
        );
    }
}
