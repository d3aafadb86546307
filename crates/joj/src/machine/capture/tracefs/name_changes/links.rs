//! The names of a file besides the one it is shown by: hard links.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime};

/// A file's time of creation is the kernel's last tick: up to so much too early.
const TICK: Duration = Duration::from_millis(20);

/// Other names of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Links {
    names: Vec<String>,
    /// How many more there are, from before the capture: nobody lists them.
    unlisted: u64,
    /// The file is younger than the capture, and was found before the watch told of its creation.
    born: bool,
}

impl Links {
    /// Those of a file that was found in a capture that began at `started`.
    pub fn of(facts: &Metadata, started: Option<SystemTime>) -> Self {
        let created = facts.created().ok();
        let born = created.zip(started).is_some_and(|(created, started)| created + TICK >= started);
        // Each directory below a directory is a link to it. The watch tells of all names since the start.
        let unlisted = if born || facts.is_dir() { 0 } else { facts.nlink().saturating_sub(1) };
        Self { names: Vec::new(), unlisted, born }
    }

    /// How many there are.
    pub fn left(&self) -> i64 {
        i64::try_from(self.names.len() as u64 + self.unlisted).unwrap_or(i64::MAX)
    }

    fn is_empty(&self) -> bool {
        self.left() == 0
    }

    /// True where this may be one of a file's names, which is shown by that one.
    pub fn may_have(&self, shown: Option<&str>, name: &str) -> bool {
        self.unlisted > 0
            || shown.is_none_or(|shown| shown == name)
            || self.names.iter().any(|one| one == name)
    }

    /// True where the next name that the watch tells is the file's first.
    pub fn is_born(&self) -> bool {
        self.born
    }

    /// So many that nobody lists.
    pub fn unlisted(count: u64) -> Self {
        Self { unlisted: count, ..Self::default() }
    }

    /// What they are called is not known any more.
    pub fn forget(&mut self) {
        self.unlisted += std::mem::take(&mut self.names).len() as u64;
    }

    /// The file has this name, too; `shown` is the one that it is shown by.
    pub fn add(&mut self, shown: &mut Option<String>, name: String) {
        if shown.is_none() {
            self.unlisted += 1;
            *shown = Some(name);
        } else {
            self.names.push(name);
        }
    }

    /// A directory above has another name: `now` tells what a name below it became.
    pub fn follow(&mut self, now: &dyn Fn(&str) -> Option<String>) {
        for name in &mut self.names {
            *name = now(name).unwrap_or_else(|| std::mem::take(name));
        }
    }

    /// A name is gone. True where the file has another; `shown` is one that it has, or none where nobody lists those left.
    pub fn remove(&mut self, shown: &mut Option<String>, gone: &str) -> bool {
        if self.is_empty() {
            return false;
        }
        if shown.as_deref() == Some(gone) {
            *shown = self.names.pop();
            if shown.is_none() {
                self.unlisted -= 1;
            }
        } else if self.take(gone).is_none() {
            match self.unlisted.checked_sub(1) {
                Some(left) => self.unlisted = left,
                // It is the one that nobody knew.
                None => *shown = self.names.pop(),
            }
        }
        true
    }

    fn take(&mut self, name: &str) -> Option<String> {
        let place = self.names.iter().position(|one| one == name)?;
        Some(self.names.swap_remove(place))
    }

    /// The file is called `now` instead of `before`.
    pub fn rename(&mut self, shown: &mut Option<String>, before: Option<&str>, now: String) {
        if self.is_empty() || before.is_none() || shown.as_deref() == before {
            *shown = Some(now);
            return;
        }
        if before.and_then(|before| self.take(before)).is_none() {
            self.unlisted = self.unlisted.saturating_sub(1);
        }
        self.names.push(now);
        if shown.is_none() {
            *shown = self.names.pop();
            self.unlisted += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn a_file_is_gone_with_its_last_name() {
        let (mut links, mut shown) = (Links::default(), name("/a"));
        links.add(&mut shown, "/b".to_owned());
        links.add(&mut shown, "/c".to_owned());
        assert!(links.remove(&mut shown, "/b") && shown == name("/a"));
        assert!(links.remove(&mut shown, "/a") && shown == name("/c"));
        assert!(links.is_empty() && !links.remove(&mut shown, "/c"));
    }

    #[test]
    fn the_name_that_is_renamed_is_another() {
        let (mut links, mut shown) = (Links::default(), name("/a"));
        links.rename(&mut shown, Some("/elsewhere"), "/b".to_owned());
        assert_eq!(shown, name("/b"), "it has one name");
        links.add(&mut shown, "/c".to_owned());
        links.rename(&mut shown, Some("/c"), "/d".to_owned());
        assert_eq!(shown, name("/b"));
        links.rename(&mut shown, Some("/b"), "/e".to_owned());
        assert!(shown == name("/e") && links.remove(&mut shown, "/e") && shown == name("/d"));
    }

    #[test]
    fn a_name_that_nobody_listed_goes_and_the_listed_ones_stay() {
        let (mut links, mut shown) = (Links { unlisted: 1, ..Links::default() }, name("/a"));
        links.add(&mut shown, "/b".to_owned());
        assert!(links.remove(&mut shown, "/old"));
        assert!(links.remove(&mut shown, "/a") && shown == name("/b"));
        assert!(!links.remove(&mut shown, "/b"));
    }

    #[test]
    fn a_file_whose_names_nobody_lists_is_shown_by_none_until_one_is_told() {
        let (mut links, mut shown) = (Links::unlisted(2), name("/a"));
        links.rename(&mut shown, Some("/x"), "/y".to_owned());
        assert_eq!((&shown, links.left()), (&name("/a"), 2));
        assert!(links.remove(&mut shown, "/a") && shown == name("/y"));
        assert!(links.remove(&mut shown, "/y") && shown.is_none(), "one is left, and nobody knows it");
        links.add(&mut shown, "/b".to_owned());
        assert_eq!((&shown, links.left()), (&name("/b"), 1));
        assert!(links.remove(&mut shown, "/old") && shown == name("/b"));
        assert!(!links.remove(&mut shown, "/b"));
        let (mut links, mut shown) = (Links::unlisted(1), None);
        links.rename(&mut shown, Some("/x"), "/y".to_owned());
        assert_eq!((&shown, links.left()), (&name("/y"), 1));
    }
}
