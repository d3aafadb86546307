//! Names under which overlayfs makes files, to rename them at once to what a program called them.
//!
//! They are in the directories `work` and `index` below its work directory: `#` and a number (ovl_tempname in the kernel's
//! fs/overlayfs/dir.c). No program has called a file so, and it is no name for us: which mounts are overlays, and where, is not asked, as
//! a container's are in a namespace of its own. A program's file with such a name has no name either.

use joj_analysis::trace::texts::{Text, Texts};

/// A name as text; none where it is overlayfs's.
pub fn kept(name: &str, texts: &mut Texts) -> Text {
    if is_working_name(name) { Text::NONE } else { texts.keep(name) }
}

/// True for a name of overlayfs's, and for one below it: directories are made so, too.
fn is_working_name(path: &str) -> bool {
    let number = |name: &str| name.strip_prefix('#').is_some_and(is_number);
    let mut parts = path.split('/').peekable();
    std::iter::from_fn(|| parts.next().map(|part| (part, parts.peek().copied())))
        .any(|(part, below)| matches!(part, "work" | "index") && below.is_some_and(number))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_overlayfs_makes_in_its_work_directory_has_no_name() {
        for path in ["/wk/work/#363", "/a/index/#1f", "/wk/work/#3/below", "work/#0/"] {
            assert!(is_working_name(path), "{path}");
        }
        for path in
            ["/wk/work/363", "/wk/work/#", "/wk/work/#x", "/wk/#363", "/wk/work/a/#1", "/wk/work/", "/", "#3"]
        {
            assert!(!is_working_name(path), "{path}");
        }
        let mut texts = Texts::default();
        assert_eq!(kept("/wk/work/#363", &mut texts), Text::NONE);
        let name = kept("/up/z", &mut texts);
        assert_eq!(texts.get(name), "/up/z");
    }
}
