//! Names that the kernel makes up for what is open: `/dev/fd/3` is the file behind descriptor 3.
//!
//! ```text
//! /dev/stdin, /dev/fd/0, /proc/self/fd/0, /proc/thread-self/fd/0       descriptor 0 of who asks
//! /proc/77/fd/3, /proc/77/task/78/fd/3                                 another process's, or another thread's
//! /proc/self/cwd/a, /proc/self/root/a                                  the directory, and what is taken for /
//! ```
//!
//! A replay has other descriptors. So such a name is recorded as the one that the file has by then.
//!
//! Source: proc(5).

use super::calls::UNREADABLE;
use super::open_names::{NameHolder, OpenName};
use super::processes::{Meaning, TracedProcesses};

/// Why a call on such a name is in no recording.
const NAMELESS: &str = "a file without a name, by its descriptor's name";

/// What such a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Behind {
    Descriptor(i32),
    Directory,
    Root,
}

/// Where a name leads that the kernel makes up, as a thread sees it, or why no recording can say it; `None` of another name.
pub fn target(processes: &TracedProcesses, thread: u32, path: &str) -> Option<Result<String, &'static str>> {
    let (whose, behind) = behind(path)?;
    let thread = whose.unwrap_or(thread);
    let name = match behind {
        Behind::Root => {
            return processes
                .root(thread)
                .filter(|_| processes.knows(thread))
                .map(|root| Ok(root.to_owned()));
        }
        Behind::Directory => processes.directory(thread),
        Behind::Descriptor(number) => match processes.meaning(thread, number)? {
            Meaning::File(description) => processes.names.get(NameHolder::Description(*description)),
            Meaning::Other(why) => return Some(Err(why)),
        },
    };
    match name {
        OpenName::Path(path) => Some(Ok(path.to_owned())),
        OpenName::Gone => Some(Err(NAMELESS)),
        OpenName::Unknown => Some(Err(UNREADABLE)),
    }
}

/// Whose it is, `None` for who asks, and what.
fn behind(path: &str) -> Option<(Option<u32>, Behind)> {
    if let Some(name) = path.strip_prefix("/dev/") {
        let streams = ["stdin", "stdout", "stderr"];
        let number = match streams.into_iter().zip(0..).find(|(stream, _)| *stream == name) {
            Some((_, number)) => number,
            None => number_of(name.strip_prefix("fd/")?)?,
        };
        return Some((None, Behind::Descriptor(number)));
    }
    let (process, mut rest) = path.strip_prefix("/proc/")?.split_once('/')?;
    let mut whose = match process {
        "self" | "thread-self" => None,
        number => Some(number.parse().ok()?),
    };
    if let Some((thread, behind)) = rest.strip_prefix("task/").and_then(|rest| rest.split_once('/')) {
        (whose, rest) = (Some(thread.parse().ok()?), behind);
    }
    let behind = match rest {
        "cwd" => Behind::Directory,
        "root" => Behind::Root,
        _ => Behind::Descriptor(number_of(rest.strip_prefix("fd/")?)?),
    };
    Some((whose, behind))
}

/// A descriptor's number, as the kernel spells it.
fn number_of(text: &str) -> Option<i32> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    text.parse().ok().filter(|_| is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_descriptors_are_known() {
        let of = |number| Some((None, Behind::Descriptor(number)));
        for (path, found) in [
            ("/dev/stdout", of(1)),
            ("/dev/fd/13", of(13)),
            ("/proc/self/fd/0", of(0)),
            ("/proc/thread-self/fd/7", of(7)),
            ("/proc/77/fd/3", Some((Some(77), Behind::Descriptor(3)))),
            ("/proc/77/task/78/fd/3", Some((Some(78), Behind::Descriptor(3)))),
            ("/proc/self/cwd", Some((None, Behind::Directory))),
            ("/proc/77/root", Some((Some(77), Behind::Root))),
            ("/dev/fd", None),
            ("/dev/fd/03", None),
            ("/dev/fd/+3", None),
            ("/dev/null", None),
            ("/proc/self/fdinfo/3", None),
            ("/proc/self/fd/3/a", None),
            ("/proc/version", None),
        ] {
            assert_eq!(behind(path), found, "{path}");
        }
    }
}
