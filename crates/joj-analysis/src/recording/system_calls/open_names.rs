//! The names of what is open, and of the directories in which processes are: they follow the files through renames.
//!
//! ```text
//! open("/a") = 3, chdir("/a/b"), rename("/a", "/c")     3 is /c, and the process is in /c/b
//! rmdir("/c")                                           3 has no name any more
//! ```

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::recording::paths::{absolute, below};

/// What has a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NameHolder {
    /// An open file description.
    Description(u32),
    /// The directory of one process, or of several that share it.
    Directory(usize),
    /// The directory that those processes take for `/` (chroot); unknown where they have all.
    Root(usize),
}

/// What is known of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenName<'a> {
    /// Nothing.
    Unknown,
    /// The file has none any more.
    Gone,
    /// An absolute path.
    Path(&'a str),
}

/// The names of now.
#[derive(Debug, Default)]
pub struct OpenNames {
    /// `None`: it has none any more.
    names: HashMap<NameHolder, Option<String>>,
    holders: BTreeMap<String, BTreeSet<NameHolder>>,
}

impl OpenNames {
    /// It has this name from now on.
    pub fn put(&mut self, holder: NameHolder, path: &str) {
        self.take_away(holder);
        self.holders.entry(path.to_owned()).or_default().insert(holder);
        self.names.insert(holder, Some(path.to_owned()));
    }

    /// What was taken to stand below `from` stands below `to`, an absolute path, and always did.
    pub fn stands_at(&mut self, from: &str, to: &str) {
        for (holder, rest) in self.below(from) {
            self.put(holder, &absolute(to, &format!("./{rest}")));
        }
    }

    /// Its name.
    pub fn get(&self, holder: NameHolder) -> OpenName<'_> {
        match self.names.get(&holder) {
            None => OpenName::Unknown,
            Some(None) => OpenName::Gone,
            Some(Some(path)) => OpenName::Path(path),
        }
    }

    /// It has the name that another one has.
    pub fn copy(&mut self, from: NameHolder, to: NameHolder) {
        match self.names.get(&from).cloned() {
            Some(Some(path)) => self.put(to, &path),
            Some(None) => drop(self.names.insert(to, None)),
            None => {}
        }
    }

    /// It has none any more.
    pub fn lose(&mut self, holder: NameHolder) {
        self.take_away(holder);
        self.names.insert(holder, None);
    }

    /// Nobody asks for it any more.
    pub fn forget(&mut self, holder: NameHolder) {
        self.take_away(holder);
        self.names.remove(&holder);
    }

    /// A file, or a directory with what is in it, was renamed. What had the new name before is gone, or has the old one.
    pub fn renamed(&mut self, from: &str, to: &str, is_exchange: bool) {
        if from == to {
            return;
        }
        let moved = self.below(from);
        if is_exchange {
            for (holder, rest) in self.below(to) {
                self.put(holder, &format!("{from}{rest}"));
            }
        } else {
            self.gone(to);
        }
        for (holder, rest) in moved {
            self.put(holder, &format!("{to}{rest}"));
        }
    }

    /// A name was taken away.
    pub fn gone(&mut self, path: &str) {
        for (holder, _) in self.below(path) {
            self.lose(holder);
        }
    }

    /// What has this name or one below it, with what follows the path.
    fn below(&self, path: &str) -> Vec<(NameHolder, String)> {
        let all = self.holders.get_key_value(path).into_iter().chain(below(&self.holders, path));
        all.flat_map(|(name, holders)| holders.iter().map(|holder| (*holder, name[path.len()..].to_owned())))
            .collect()
    }

    fn take_away(&mut self, holder: NameHolder) {
        let Some(Some(path)) = self.names.get(&holder) else { return };
        if let Some(holders) = self.holders.get_mut(path) {
            holders.remove(&holder);
            if holders.is_empty() {
                self.holders.remove(path);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_renames_and_go_with_the_file() {
        let mut names = OpenNames::default();
        let [one, two, three] = [1, 2, 3].map(NameHolder::Description);
        names.put(one, "/a/b");
        names.put(two, "/ab");
        names.put(three, "/c");
        names.renamed("/a", "/d", false);
        assert_eq!([names.get(one), names.get(two)], [OpenName::Path("/d/b"), OpenName::Path("/ab")]);
        names.renamed("/d", "/c", true);
        assert_eq!([names.get(one), names.get(three)], [OpenName::Path("/c/b"), OpenName::Path("/d")]);
        names.renamed("/c/b", "/d", false);
        assert_eq!([names.get(one), names.get(three)], [OpenName::Path("/d"), OpenName::Gone]);
        names.gone("/d");
        names.copy(one, two);
        assert_eq!([names.get(one), names.get(two)], [OpenName::Gone; 2]);
        names.forget(one);
        assert_eq!(names.get(one), OpenName::Unknown);
    }
}
