//! Calls that no row replays, although the disk may have worked for them: all rows have their time as think time.

use std::collections::BTreeMap;

use crate::recording::Recording;
use crate::recording::system_calls::calls::{DEVICE, NO_FILE};

/// Those that read, write or sync files in other ways than the calls that are replayed.
const ON_FILES: [&str; 7] =
    ["copy_file_range", "io_submit", "io_uring_enter", "io_uring_setup", "msync", "sendfile", "splice"];

/// How many such calls the recording left out, by the call.
pub fn left_out(recording: &Recording) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    for (what, calls) in recording.header.recording.iter().flat_map(|facts| &facts.not_replayed) {
        let (call, why) = what.split_once(": ").unwrap_or((what, ""));
        if ON_FILES.contains(&call) && ![DEVICE, NO_FILE].contains(&why) {
            *found.entry(call.to_owned()).or_default() += calls;
        }
    }
    found
}

/// True where syncs may have been in a queue of the kernel's: no call of their own asked for them.
pub fn syncs_in_a_queue(recording: &Recording) -> bool {
    left_out(recording).keys().any(|call| call.starts_with("io_"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::header::RecordingFacts;

    fn with(not_replayed: &[(&str, u64)]) -> Recording {
        let not_replayed = not_replayed.iter().map(|(what, calls)| ((*what).to_owned(), *calls)).collect();
        let mut recording = Recording::default();
        recording.header.recording = Some(RecordingFacts { not_replayed, ..RecordingFacts::default() });
        recording
    }

    #[test]
    fn what_is_on_files_counts_whatever_the_reason_and_what_is_on_sockets_does_not() {
        let unseen = "io_submit: reads and writes through it are not seen";
        let socket = format!("sendfile: {NO_FILE}");
        let device = format!("splice: {DEVICE}");
        let recording = with(&[
            (unseen, 3),
            ("io_submit", 4),
            ("msync", 2),
            (&socket, 5),
            (&device, 6),
            ("mmap: reads through it are not seen", 7),
        ]);
        let expected = [("io_submit".to_owned(), 7), ("msync".to_owned(), 2)];
        assert_eq!(left_out(&recording), expected.into());
    }
}
