//! Which symbolic links of the host were followed. No event of the kernel's tells; a probe on the function of 9p that reads one does.
//!
//! Its first argument is the link's `struct dentry`, whose place of name and parent has not changed for many versions of Linux
//! (include/linux/dcache.h). Elsewhere the names are none that exist, and nothing is kept.

use std::fs;
use std::io;
use std::path::PathBuf;

/// The tracing filesystem.
const TRACING: &str = "/sys/kernel/tracing";
const FUNCTION: &str = "v9fs_vfs_get_link_dotl";
/// Bytes from the begin of a dentry to its parent, and to its name.
const PARENT_AT: u32 = 24;
const NAME_AT: u32 = 40;
/// Names of a path that are told, from its end: an argument of a probe has 63 characters.
const NAMES_MAX: usize = 9;

/// Notes each link that is followed from now on.
#[derive(Debug)]
pub struct FollowedLinks;

impl FollowedLinks {
    /// Begins.
    /// # Errors
    /// The kernel has no such function, or no probes.
    pub fn watch() -> io::Result<FollowedLinks> {
        let mut probe = format!("p:joj_lab/followed {FUNCTION}");
        let mut dentry = "%di".to_owned();
        for number in 0..NAMES_MAX {
            probe += &format!(" n{number}=+0(+{NAME_AT}({dentry})):string");
            dentry = format!("+{PARENT_AT}({dentry})");
        }
        fs::write(format!("{TRACING}/kprobe_events"), probe)?;
        let watch = FollowedLinks;
        fs::write(format!("{TRACING}/trace"), "")?;
        fs::write(format!("{TRACING}/events/joj_lab/followed/enable"), "1")?;
        Ok(watch)
    }

    /// Those that were followed since, below the host's root, each once.
    pub fn paths(self) -> Vec<PathBuf> {
        // Of names that are no UTF-8 no file is found.
        let text = fs::read(format!("{TRACING}/trace")).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let mut paths: Vec<PathBuf> = text.lines().filter_map(path).collect();
        paths.sort();
        paths.dedup();
        paths
    }
}

impl Drop for FollowedLinks {
    fn drop(&mut self) {
        let _ = fs::write(format!("{TRACING}/events/joj_lab/followed/enable"), "0");
        let _ = fs::write(format!("{TRACING}/kprobe_events"), "-:joj_lab/followed");
    }
}

/// The path in a line of the trace: names from the last to the first, up to the root's, which is `/`.
fn path(line: &str) -> Option<PathBuf> {
    let (_, names) = line.split_once(" n0=")?;
    let mut names: Vec<&str> = names.split("\" n").map(name).collect::<Option<_>>()?;
    let root = names.iter().position(|name| *name == "/")?;
    names.truncate(root);
    Some(names.iter().rev().collect())
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
    }
}
