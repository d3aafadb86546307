//! The names of what is open, and of the directories in which processes are: they follow the files through renames.
//!
//! ```text
//! open("/a") = 3, chdir("/a/b"), rename("/a", "/c")     3 is /c, and the process is in /c/b
//! rmdir("/c")                                           3 has no name any more
//! open("/d") = 4, link("/d", "/e"), unlink("/d")        4 is /e
//! ```

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::recording::paths::{absolute, below, take_with_below};

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
    /// Names that calls gave to files that had one, and those, with a number for each file.
    linked: BTreeMap<String, usize>,
    /// How many such files there were.
    files: usize,
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
        let place = |rest: &str| absolute(to, &format!("./{rest}"));
        for (holder, rest) in self.below(from) {
            self.put(holder, &place(&rest));
        }
        let linked = take_with_below(&mut self.linked, from);
        self.linked.extend(linked.into_iter().map(|(rest, file)| (place(&rest), file)));
    }

    /// A file has another name, too.
    pub fn linked(&mut self, path: &str, second: &str) {
        self.files += 1;
        let file = *self.linked.entry(path.to_owned()).or_insert(self.files);
        self.linked.insert(second.to_owned(), file);
    }

    /// A file that is open gets a name.
    pub fn named(&mut self, holder: NameHolder, second: &str) {
        match self.names.get(&holder).cloned().flatten() {
            Some(path) => self.linked(&path, second),
            None => self.put(holder, second),
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
        let is_one = self.linked.get(from).is_some_and(|file| self.linked.get(to) == Some(file));
        // Nothing happens to two names of one file (rename(2)).
        if from == to || is_one {
            return;
        }
        let moved = self.below(from);
        let linked = take_with_below(&mut self.linked, from);
        if is_exchange {
            for (holder, rest) in self.below(to) {
                self.put(holder, &format!("{from}{rest}"));
            }
            let other = take_with_below(&mut self.linked, to);
            self.linked.extend(other.into_iter().map(|(rest, file)| (format!("{from}{rest}"), file)));
        } else {
            self.gone(to);
        }
        for (holder, rest) in moved {
            self.put(holder, &format!("{to}{rest}"));
        }
        self.linked.extend(linked.into_iter().map(|(rest, file)| (format!("{to}{rest}"), file)));
    }

    /// A name was taken away. What is open under it has another one, if a call made one.
    pub fn gone(&mut self, path: &str) {
        let gone: HashMap<String, usize> = take_with_below(&mut self.linked, path).into_iter().collect();
        for (holder, rest) in self.below(path) {
            let other = gone.get(&rest).and_then(|file| self.linked.iter().find(|(_, other)| *other == file));
            let other = other.map(|(name, _)| name.clone());
            match other {
                Some(name) => self.put(holder, &name),
                None => self.lose(holder),
            }
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
        names.put(one, "/e");
        names.linked("/e", "/f/g");
        names.renamed("/e", "/f/g", false);
        assert_eq!(names.get(one), OpenName::Path("/e"), "two names of one file");
        names.renamed("/f", "/h", false);
        names.gone("/e");
        assert_eq!(names.get(one), OpenName::Path("/h/g"));
        names.named(two, "/i");
        names.named(two, "/j");
        names.gone("/i");
        assert_eq!(names.get(two), OpenName::Path("/j"));
        names.forget(one);
        assert_eq!(names.get(one), OpenName::Unknown);
    }
}
