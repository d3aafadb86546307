//! Which symbolic links of the host were followed, and which names were looked for. No event of the kernel's tells; probes on the functions
//! of 9p that read a link and look for a name do. What the kernel remembers it does not look for again.
//!
//! An argument of theirs is the `struct dentry`, whose place of name and parent has not changed for many versions of Linux
//! (include/linux/dcache.h). Elsewhere the names are none that exist, and nothing is kept.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// The tracing filesystem.
const TRACING: &str = "/sys/kernel/tracing";
/// Probes: their names, the functions, and the register with the dentry.
const FOLLOWED: [&str; 3] = ["followed", "v9fs_vfs_get_link_dotl", "%di"];
const LOOKED_FOR: [&str; 3] = ["looked_for", "v9fs_vfs_lookup", "%si"];
/// For what they note, for each processor: a program in Python looks for thousands of names.
const BUFFER_KIB: &str = "16384";
/// The kernel's own.
const BUFFER_KIB_USUAL: &str = "1408";
const GROUP: &str = "joj_lab";
/// Bytes from the begin of a dentry to its parent, and to its name.
const PARENT_AT: u32 = 24;
const NAME_AT: u32 = 40;
/// Names of a path that are told, from its end: an argument of a probe has 63 characters.
const NAMES_MAX: usize = 9;

/// Notes each link that is followed and each name that is looked for, from now on.
#[derive(Debug)]
pub struct HostNames;

/// What was noted: paths below the host's root, each once, of at most [`NAMES_MAX`] names.
#[derive(Debug, Default)]
pub struct NotedNames {
    /// Links that were followed.
    pub followed: BTreeSet<PathBuf>,
    /// What was looked for, and was there or not.
    pub looked_for: BTreeSet<PathBuf>,
}

impl HostNames {
    /// Begins.
    /// # Errors
    /// The kernel has no such function, or no probes.
    pub fn watch() -> io::Result<HostNames> {
        let write = |file: &str, text: &str| fs::write(format!("{TRACING}/{file}"), text);
        for [event, function, register] in [FOLLOWED, LOOKED_FOR] {
            let mut probe = format!("p:{GROUP}/{event} {function}");
            let mut dentry = register.to_owned();
            for number in 0..NAMES_MAX {
                probe += &format!(" n{number}=+0(+{NAME_AT}({dentry})):string");
                dentry = format!("+{PARENT_AT}({dentry})");
            }
            OpenOptions::new()
                .append(true)
                .open(format!("{TRACING}/kprobe_events"))?
                .write_all(probe.as_bytes())?;
        }
        let watch = HostNames;
        write("buffer_size_kb", BUFFER_KIB)?;
        write("trace", "")?;
        write(&format!("events/{GROUP}/enable"), "1")?;
        Ok(watch)
    }

    /// What was noted since.
    pub fn noted(self) -> NotedNames {
        let mut noted = NotedNames::default();
        // A byte a letter: names may be any bytes.
        let bytes = fs::read(format!("{TRACING}/trace")).unwrap_or_default();
        let text: String = bytes.into_iter().map(char::from).collect();
        for line in text.split('\n') {
            let is_link = line.contains(&format!(" {}: ", FOLLOWED[0]));
            let paths = if is_link { &mut noted.followed } else { &mut noted.looked_for };
            paths.extend(path(line));
        }
        noted
    }
}

impl Drop for HostNames {
    fn drop(&mut self) {
        let _ = fs::write(format!("{TRACING}/events/{GROUP}/enable"), "0");
        for event in [FOLLOWED[0], LOOKED_FOR[0]] {
            let events = OpenOptions::new().append(true).open(format!("{TRACING}/kprobe_events"));
            let _ = events.and_then(|mut file| file.write_all(format!("-:{GROUP}/{event}").as_bytes()));
        }
        let _ = fs::write(format!("{TRACING}/buffer_size_kb"), BUFFER_KIB_USUAL);
    }
}

/// The path in a line of the trace: names from the last to the first, up to the root's, which is `/`.
fn path(line: &str) -> Option<PathBuf> {
    let (_, names) = line.split_once(" n0=")?;
    let mut names: Vec<&str> = names.split("\" n").map(name).collect::<Option<_>>()?;
    let root = names.iter().position(|name| *name == "/")?;
    names.truncate(root);
    let bytes = |name: &&str| name.chars().filter_map(|letter| u8::try_from(letter).ok()).collect();
    Some(names.iter().rev().map(|name| OsString::from_vec(bytes(name))).collect())
}

/// What stands in the quotes of `1="name"`, the first without its number.
fn name(word: &str) -> Option<&str> {
    Some(word.split_once('"')?.1.trim_end_matches('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_trace_has_a_path_from_its_end_to_the_root() {
        let line = r#"  sh-120 [000] ...1. 12.5: followed: (v9fs_vfs_get_link_dotl+0x0/0x80 [9p]) n0="sh" n1="bin" n2="usr" n3="/" n4="/""#;
        assert_eq!(path(line), Some(PathBuf::from("usr/bin/sh")));
        let spaced = r#" followed: (x) n0="a b" n1="/" n2="/""#;
        assert_eq!(path(spaced), Some(PathBuf::from("a b")));
        assert_eq!(path(r#" followed: (x) n0="deep" n1="er""#), None, "its begin is not told");
        assert_eq!(path("# tracer: nop"), None);
        let odd = path(" looked_for: (x) n0=\"\u{ff}\" n1=\"/\"");
        assert_eq!(odd, Some(PathBuf::from(OsString::from_vec(vec![0xff]))), "a name is bytes");
    }
}
