//! Symbolic links, as far as they are known: where a path leads.
//!
//! ```text
//! symlink("/a/b", "/l"), open("/l/c")          /a/b/c
//! open("/l/../d")                              /a/d
//! lstat("/l")                                  /l: the link itself
//! ```
//!
//! Links that calls made are known. What was there before is asked of who captured the calls, when they are over; but not where a call
//! made or took away a name like it, because then the answer may be about something else.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::recording::paths::{absolute, bytes_of, is_pseudo, take_with_below};
use crate::recording::system_calls::path_answers::PathAnswers;

/// The kernel follows no more links in one path (MAXSYMLINKS).
const LINKS_MAX: u32 = 40;

/// What a symbolic link says that was there before; `None` where there is none.
pub type LinksBefore = PathAnswers<String>;

/// Where a path begins, and how far it may lead.
#[derive(Debug, Clone, Copy)]
pub struct PathBegin<'a> {
    /// The directory of a relative path, without links.
    pub directory: &'a str,
    /// Where absolute paths and links begin, and out of which `..` does not lead (chroot, RESOLVE_IN_ROOT).
    pub root: &'a str,
    /// A link under the last name is followed.
    pub follows: bool,
}

/// Where a path leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathEnd {
    /// Absolute, without `.`, `..` and links.
    pub path: String,
    /// It says less than the program's path: `/.`, `/..` or a last `/` stood behind a name. There the kernel wants a directory, and
    /// fails where that name has none.
    pub is_shortened: bool,
    /// It leads to a file that no path names, and why.
    pub no_path: Option<&'static str>,
}

/// Where a name leads that the kernel makes up, or why no path says it; `None` of any other name.
pub type MadeUpLinks<'a> = &'a dyn Fn(&str) -> Option<Result<String, &'static str>>;

/// The links of now.
#[derive(Debug, Default)]
pub struct KnownLinks {
    made: BTreeMap<String, String>,
    before: LinksBefore,
    /// Last names of paths that calls made or took away.
    changed: HashSet<Vec<u8>>,
    asked: HashMap<String, Option<String>>,
}

impl KnownLinks {
    /// Who knows of links that were there before, and the last names of paths that calls made or took away.
    pub fn ask(&mut self, before: LinksBefore, changed: HashSet<Vec<u8>>) {
        (self.before, self.changed) = (before, changed);
    }

    /// Where a path leads. `made_up`: where names lead that the kernel makes up for what is open.
    pub fn resolve(&mut self, begin: PathBegin<'_>, path: &str, made_up: MadeUpLinks<'_>) -> PathEnd {
        let root = begin.root.trim_end_matches('/');
        let directory = begin.directory.trim_end_matches('/');
        let mut at = if path.starts_with('/') { root } else { directory }.to_owned();
        let mut left: Vec<String> = path.rsplit('/').map(str::to_owned).collect();
        let mut links = 0;
        let (mut is_behind_a_name, mut is_shortened) = (false, false);
        while let Some(part) = left.pop() {
            match part.as_str() {
                // A slash too many asks for nothing but at the end.
                "" if !left.is_empty() => continue,
                "" | "." => {
                    is_shortened |= is_behind_a_name;
                    continue;
                }
                ".." => {
                    is_shortened |= is_behind_a_name;
                    if at != root {
                        at.truncate(at.rfind('/').unwrap_or(0));
                    }
                    continue;
                }
                _ => {}
            }
            at.push('/');
            at.push_str(&part);
            is_behind_a_name = true;
            // A slash behind a link asks for what it leads to.
            if (!begin.follows && left.is_empty()) || links == LINKS_MAX {
                continue;
            }
            match at.strip_prefix(root).and_then(made_up) {
                Some(Ok(target)) => {
                    links += 1;
                    is_behind_a_name = false;
                    target.trim_end_matches('/').clone_into(&mut at);
                    continue;
                }
                Some(Err(why)) => return PathEnd { path: at, is_shortened, no_path: Some(why) },
                None if at.strip_prefix(root) == Some("/dev/fd") => {
                    at = format!("{root}/proc/self/fd");
                    continue;
                }
                None if is_pseudo(&at) => continue,
                None => {}
            }
            if let Some(target) = self.target(&at) {
                links += 1;
                // The link is there, so what it is in is a directory.
                is_behind_a_name = false;
                if target.starts_with('/') {
                    root.clone_into(&mut at);
                } else {
                    at.truncate(at.rfind('/').unwrap_or(0));
                }
                left.extend(target.rsplit('/').map(str::to_owned));
            }
        }
        let path = if at.is_empty() { "/".to_owned() } else { at };
        PathEnd { path, is_shortened, no_path: None }
    }

    /// What the link says under a path without links.
    fn target(&mut self, path: &str) -> Option<String> {
        if let Some(made) = self.made.get(path) {
            return Some(made.clone());
        }
        if let Some(known) = self.asked.get(path) {
            return known.clone();
        }
        let name = path.rsplit('/').next().unwrap_or_default();
        let is_changed = self.changed.contains(&*bytes_of(name));
        let found = if is_changed { None } else { self.before.of(path).filter(|target| !target.is_empty()) };
        self.asked.insert(path.to_owned(), found.clone());
        found
    }

    /// A call made a link.
    pub fn made(&mut self, path: &str, target: &str) {
        self.made.insert(path.to_owned(), target.to_owned());
    }

    /// What was taken to stand below `from` stands below `to`, and always did.
    pub fn stands_at(&mut self, from: &str, to: &str) {
        let moved = take_with_below(&mut self.made, from);
        self.made
            .extend(moved.into_iter().map(|(rest, target)| (absolute(to, &format!("./{rest}")), target)));
    }

    /// A file has another name, too: a link may.
    pub fn linked(&mut self, path: &str, second: &str) {
        if let Some(target) = self.made.get(path).cloned() {
            self.made.insert(second.to_owned(), target);
        }
    }

    /// A link, or a directory with links in it, was renamed.
    pub fn renamed(&mut self, from: &str, to: &str, is_exchange: bool) {
        if self.made.is_empty() || from == to {
            return;
        }
        let [moved, other] = [from, to].map(|path| take_with_below(&mut self.made, path));
        self.made.extend(moved.into_iter().map(|(rest, target)| (format!("{to}{rest}"), target)));
        if is_exchange {
            self.made.extend(other.into_iter().map(|(rest, target)| (format!("{from}{rest}"), target)));
        }
    }

    /// A name was taken away.
    pub fn gone(&mut self, path: &str) {
        self.made.remove(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_where_the_kernel_goes() {
        let mut links = KnownLinks::default();
        let before = |path: &str| match path {
            "/lib" | "/changed" => Some("usr/lib".to_owned()),
            _ => None,
        };
        links.ask(LinksBefore::new(before), HashSet::from([b"changed".to_vec()]));
        links.made("/w/link", "../real/deep");
        links.made("/w/whole", "/real");
        links.made("/w/round", "round");
        let begin = PathBegin { directory: "/w", root: "/", follows: true };
        let itself = PathBegin { follows: false, ..begin };
        let root = PathBegin { root: "/w", ..begin };
        let outside = PathBegin { root: "/v/r", ..begin };
        let cases = [
            (begin, "link/x", "/real/deep/x"),
            (begin, "link/../x", "/real/x"),
            (begin, "link", "/real/deep"),
            (itself, "link", "/w/link"),
            (itself, "link/", "/real/deep"),
            (itself, "link/y", "/real/deep/y"),
            (begin, "/lib/z", "/usr/lib/z"),
            (begin, "/changed/z", "/changed/z"),
            (begin, "./a//b/.", "/w/a/b"),
            (begin, "../../..", "/"),
            (begin, "round/x", "/w/round/x"),
            (root, "/a", "/w/a"),
            (outside, "../../..", "/"),
            (outside, "/../a", "/v/r/a"),
            (outside, "whole/a", "/v/r/real/a"),
            (root, "../../a", "/w/a"),
            (root, "whole/a", "/w/real/a"),
            (root, "link/a", "/w/real/deep/a"),
        ];
        for (begin, path, wanted) in cases {
            assert_eq!(links.resolve(begin, path, &|_| None).path, wanted, "{path} {begin:?}");
        }
        let made_up = |path: &str| match path {
            "/proc/self/fd/3" => Some(Ok("/w/link/x".to_owned())),
            "/proc/self/cwd" => Some(Ok("/".to_owned())),
            "/proc/self/fd/4" => Some(Err("it has no name")),
            _ => None,
        };
        links.made("/w/three", "/dev/fd/3");
        for (begin, path, wanted) in [
            (begin, "/dev/fd/3", "/w/link/x"),
            (begin, "three/..", "/w/link"),
            (itself, "/dev/fd/3", "/proc/self/fd/3"),
            (begin, "/proc/self/cwd/a", "/a"),
            (root, "/proc/self/fd/3", "/w/link/x"),
            (begin, "/dev/fd/5", "/proc/self/fd/5"),
        ] {
            assert_eq!(links.resolve(begin, path, &made_up).path, wanted, "{path} {begin:?}");
        }
        assert_eq!(links.resolve(begin, "/dev/fd/4", &made_up).no_path, Some("it has no name"));
        links.renamed("/w", "/v", false);
        assert_eq!(
            ["link", "/v/link"].map(|path| links.resolve(begin, path, &|_| None).path),
            ["/w/link", "/real/deep"]
        );
        links.linked("/v/link", "/v/second");
        links.gone("/v/link");
        let found = ["/v/link", "/v/second"].map(|path| links.resolve(begin, path, &|_| None).path);
        assert_eq!(found, ["/v/link", "/real/deep"]);
    }
    #[test]
    fn a_path_that_asks_for_a_directory_on_its_way_is_shortened() {
        let mut links = KnownLinks::default();
        links.made("/w/up", "../real");
        links.made("/w/slash", "real/");
        links.made("/w/round", "a/../b");
        let begin = PathBegin { directory: "/w", root: "/", follows: true };
        for path in ["a/../b", "a/./b", "a/", "a//", "a/.", "a/..", "up/a/../b", "slash", "round", "up/"] {
            assert!(links.resolve(begin, path, &|_| None).is_shortened, "{path}");
        }
        for path in ["a", "a//b", "./a", "../a", "../../a", ".", "..", "/", "//a", "up/a", "slash/a", "/./a"]
        {
            assert!(!links.resolve(begin, path, &|_| None).is_shortened, "{path}");
        }
        let itself = PathBegin { follows: false, ..begin };
        let mut is_shortened = |path| links.resolve(itself, path, &|_| None).is_shortened;
        assert!(is_shortened("up/") && !is_shortened("up"));
    }
}
