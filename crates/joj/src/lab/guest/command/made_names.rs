//! Names that a program makes in its directory, those too that it removes again. A word that stands for a file of the host could mean
//! one of them: a check of what is recovered would then read the host's file, and find it whole in each state.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, ErrorKind};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use joj_analysis::lab::program_crash::{HostWord, WordPlace};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;

/// How many events the kernel keeps for who watches (inotify(7)), and how many it shall keep.
const EVENTS_MAX_FILE: &str = "/proc/sys/fs/inotify/max_queued_events";
const EVENTS_MAX: &str = "4000000";
/// Room for many events.
const BUFFER_BYTES: usize = 64 << 10;

/// Watches which names are made in a directory, but not in those below.
#[derive(Debug)]
pub struct MadeNames {
    watch: OwnedFd,
}

impl MadeNames {
    /// From now on.
    /// # Errors
    /// As inotify_add_watch(2).
    pub fn begin(directory: &Path) -> io::Result<MadeNames> {
        // As it is where it cannot be changed: too many events are an error at the end.
        let _ = fs::write(EVENTS_MAX_FILE, EVENTS_MAX);
        let watch = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        inotify::add_watch(&watch, directory, WatchFlags::CREATE | WatchFlags::MOVED_TO)?;
        Ok(MadeNames { watch })
    }

    /// The names that were made until now.
    /// # Errors
    /// There were more than the kernel keeps.
    pub fn end(self) -> io::Result<BTreeSet<OsString>> {
        let mut buffer = vec![MaybeUninit::uninit(); BUFFER_BYTES];
        let mut events = inotify::Reader::new(&self.watch, &mut buffer);
        let mut names = BTreeSet::new();
        loop {
            match events.next() {
                Ok(event) if event.events().contains(ReadFlags::QUEUE_OVERFLOW) => {
                    return Err(io::Error::other("the program makes too many names there"));
                }
                Ok(event) => {
                    names.extend(event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()).to_owned()));
                }
                Err(Errno::WOULDBLOCK) => return Ok(names),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// The first word that stands for a file of the host and could mean one in `data`, which has it or in which it was `made`: what to write
/// instead. When `--before` begins, `data` is empty: its words have one meaning.
pub fn ambiguous(words: &[HostWord], data: &Path, made: &BTreeSet<OsString>) -> Option<String> {
    words.iter().find_map(|HostWord { place, word, file }| {
        let place = match place {
            WordPlace::Before => return None,
            WordPlace::Check => "in --check",
            WordPlace::Program => "among PROGRAM's words",
        };
        let relative = Path::new(word.trim_start_matches("./"));
        let in_data = fs::symlink_metadata(data.join(relative));
        // What a filesystem that is damaged does not tell is there, rather than not.
        let is_missing =
            in_data.is_err_and(|error| matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory));
        (!is_missing || made.contains(relative.as_os_str())).then(|| {
            let relative = relative.display();
            format!(
                "`{word}` {place} may be two files: {file} of this machine, and /data/{relative}, which the program makes. \
                 Write /data/{relative} for the one in /data, or {file} for this machine's"
            )
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(name: &str) -> std::path::PathBuf {
        let directory = std::env::temp_dir().join(format!("joj-made-{name}-{}", std::process::id()));
        fs::create_dir_all(directory.join("below")).unwrap();
        directory
    }

    fn word(place: WordPlace, word: &str) -> HostWord {
        HostWord { place, word: word.to_owned(), file: format!("/home/me/{word}") }
    }

    #[test]
    fn a_name_that_was_made_and_removed_again_is_known() {
        let directory = directory("watch");
        fs::write(directory.join("before"), "").unwrap();
        let watch = MadeNames::begin(&directory).unwrap();
        fs::write(directory.join("below/inner"), "").unwrap();
        fs::write(directory.join("one"), "").unwrap();
        fs::rename(directory.join("one"), directory.join("two")).unwrap();
        fs::remove_file(directory.join("two")).unwrap();
        let made: Vec<OsString> = watch.end().unwrap().into_iter().collect();
        fs::remove_dir_all(&directory).unwrap();
        assert_eq!(made, ["one", "two"]);
    }

    #[test]
    fn a_word_of_the_host_s_that_data_has_or_had_too_is_told() {
        let data = directory("words");
        fs::write(data.join("below/f"), "").unwrap();
        let made = BTreeSet::from([OsString::from("gone")]);
        let told = |place, text: &str| ambiguous(&[word(place, text)], &data, &made);
        let expected = "`./below/f` in --check may be two files: /home/me/./below/f of this machine, and /data/below/f, which the \
                        program makes. Write /data/below/f for the one in /data, or /home/me/./below/f for this machine's";
        let there = told(WordPlace::Check, "./below/f");
        let of_program = told(WordPlace::Program, "gone");
        let others = [
            told(WordPlace::Check, "check.py"),
            told(WordPlace::Check, "below/f/g"),
            told(WordPlace::Before, "gone"),
        ];
        fs::remove_dir_all(&data).unwrap();
        assert_eq!(there.as_deref(), Some(expected));
        assert!(of_program.is_some_and(|told| told.starts_with("`gone` among PROGRAM's words may be")));
        assert_eq!(others, [None, None, None]);
    }
}
