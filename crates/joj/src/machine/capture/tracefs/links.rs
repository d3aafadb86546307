//! The names of a file besides the one it is shown by: hard links.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime};

/// A file's time of creation is the kernel's last tick: up to so much too early.
const TICK: Duration = Duration::from_millis(20);

/// Another name of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Link {
    name: String,
    /// The watch saw it go. When that was is not known yet.
    going: bool,
}

/// Other names of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Links {
    names: Vec<Link>,
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

    /// True where the next name that the watch tells is the file's first.
    pub fn is_born(&self) -> bool {
        self.born
    }

    /// The file has this name, too.
    pub fn add(&mut self, name: String) {
        self.names.push(Link { name, going: false });
    }

    /// A directory above has another name: `now` tells what a name below it became.
    pub fn follow(&mut self, now: &dyn Fn(&str) -> Option<String>) {
        for link in &mut self.names {
            link.name = now(&link.name).unwrap_or_else(|| std::mem::take(&mut link.name));
        }
    }

    /// The watch saw a name go.
    pub fn note_going(&mut self, name: &str) {
        self.names.iter_mut().filter(|link| link.name == name).for_each(|link| link.going = true);
    }

    /// A name is gone. True where the file has another; `shown` is one that it has, or had where nobody lists those left.
    pub fn remove(&mut self, shown: &mut Option<String>, gone: &str) -> bool {
        if self.is_empty() {
            return false;
        }
        if shown.as_deref() == Some(gone) {
            match self.take(|link| !link.going) {
                Some(left) => *shown = Some(left.name),
                // The watch merges equal changes, so that removals may be out of order: one that goes, too, went first.
                None if self.names.pop().is_some() => {}
                None => self.unlisted -= 1,
            }
        } else if self.take(|link| link.name == gone).is_none() {
            match self.unlisted.checked_sub(1) {
                Some(left) => self.unlisted = left,
                // It went before the one that is shown, as which it counted.
                None => *shown = self.names.pop().map(|link| link.name),
            }
        }
        true
    }

    fn take(&mut self, is_it: impl Fn(&Link) -> bool) -> Option<Link> {
        let place = self.names.iter().position(is_it)?;
        Some(self.names.swap_remove(place))
    }

    /// The file is called `now` instead of `before`.
    pub fn rename(&mut self, shown: &mut Option<String>, before: Option<&str>, now: String) {
        if self.is_empty() || before.is_none() || shown.as_deref() == before {
            *shown = Some(now);
            return;
        }
        match self.names.iter_mut().find(|link| Some(link.name.as_str()) == before) {
            Some(link) => link.name = now,
            None => {
                self.unlisted = self.unlisted.saturating_sub(1);
                self.names.push(Link { name: now, going: false });
            }
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
        links.add("/b".to_owned());
        links.add("/c".to_owned());
        assert!(links.remove(&mut shown, "/b") && shown == name("/a"));
        assert!(links.remove(&mut shown, "/a") && shown == name("/c"));
        assert!(links.is_empty() && !links.remove(&mut shown, "/c"));
    }

    #[test]
    fn the_name_that_is_renamed_is_another() {
        let (mut links, mut shown) = (Links::default(), name("/a"));
        links.rename(&mut shown, Some("/elsewhere"), "/b".to_owned());
        assert_eq!(shown, name("/b"), "it has one name");
        links.add("/c".to_owned());
        links.rename(&mut shown, Some("/c"), "/d".to_owned());
        assert_eq!(shown, name("/b"));
        links.rename(&mut shown, Some("/b"), "/e".to_owned());
        assert!(shown == name("/e") && links.remove(&mut shown, "/e") && shown == name("/d"));
    }

    #[test]
    fn removals_may_be_told_out_of_order() {
        let (mut links, mut shown) = (Links::default(), name("/a"));
        links.add("/b".to_owned());
        links.note_going("/b");
        assert!(links.remove(&mut shown, "/a") && shown == name("/a"), "/b went first");
        assert!(!links.remove(&mut shown, "/b"));
    }

    #[test]
    fn a_name_that_nobody_listed_goes_and_the_listed_ones_stay() {
        let (mut links, mut shown) = (Links { unlisted: 1, ..Links::default() }, name("/a"));
        links.add("/b".to_owned());
        assert!(links.remove(&mut shown, "/old"));
        assert!(links.remove(&mut shown, "/a") && shown == name("/b"));
        assert!(!links.remove(&mut shown, "/b"));
    }

    #[test]
    fn names_that_nobody_lists_keep_the_file() {
        let (mut links, mut shown) = (Links { unlisted: 2, ..Links::default() }, name("/a"));
        links.rename(&mut shown, Some("/x"), "/y".to_owned());
        assert_eq!((&shown, links.unlisted), (&name("/a"), 1));
        assert!(links.remove(&mut shown, "/a") && shown == name("/y"));
        assert!(links.remove(&mut shown, "/y") && shown == name("/y"), "one is left, and had this name");
        assert!(!links.remove(&mut shown, "/z"));
    }
}
