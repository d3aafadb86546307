//! A MobiGen script as Mobibench's own replayer reads it (`mobibench -g`), to compare with figures that others published.
//!
//! One map of descriptors for all threads, in which the first that fits is taken. Every open whose name was lost makes a new, empty
//! file, those that failed too. Files that the script names are not there, so their opens fail. Calls on descriptors that the map
//! does not have are skipped.
//!
//! Source: shell/mobibench.c of ESOS-Lab/Mobibench, `do_script` and `get_new_fd`.

use crate::recording::Recording;
use crate::recording::call::{CallKind, RecordedCall};
use crate::recording::flags::{ENOENT, O_ACCMODE, O_CREAT, O_RDONLY, O_RDWR, O_TRUNC};
use crate::trace::header::Source;

/// Where Mobibench makes its files.
pub const DIRECTORY: &str = "/mobigen_temp";
/// `access` is asked with 0777, which no kernel takes.
const EINVAL: i64 = 22;

/// Mobibench's reading of a recording.
#[derive(Debug)]
pub struct MobibenchReading {
    /// What it issues.
    pub recording: Recording,
    /// Calls that it skips, because its map has no such descriptor.
    pub skipped: u64,
    /// Files that it makes.
    pub files: u64,
}

/// Reads a recording as Mobibench does; `None` where it was not made of a MobiGen script.
pub fn read(recording: &Recording) -> Option<MobibenchReading> {
    if recording.header.source != Source::Mobigen {
        return None;
    }
    let mut reading = MobibenchReading { recording: recording.clone(), skipped: 0, files: 0 };
    let mut map: Vec<(i32, u32)> = Vec::new();
    let mut descriptions = 0;
    let mut calls = Vec::new();
    for call in &recording.calls {
        let mut call = *call;
        let known = map.iter().position(|(descriptor, _)| *descriptor == call.descriptor);
        match call.kind {
            CallKind::Held => continue,
            CallKind::Open => {
                let is_made = call.flags & RecordedCall::LOST_NAME != 0 && call.flags & O_ACCMODE != O_RDONLY;
                call.flags =
                    if call.flags & O_ACCMODE == O_RDONLY { O_RDONLY } else { O_RDWR | O_CREAT | O_TRUNC };
                if is_made {
                    descriptions += 1;
                    reading.files += 1;
                    let name = format!("{DIRECTORY}/temp_{}_{}.dat", call.thread, reading.files);
                    call.path = reading.recording.texts.keep(&name);
                    map.push((call.descriptor, descriptions));
                    (call.description, call.result) = (descriptions, i64::from(descriptions));
                } else {
                    (call.description, call.result) = (0, -ENOENT);
                }
            }
            CallKind::Access => (call.flags, call.result) = (0o777, -EINVAL),
            CallKind::Stat | CallKind::Lstat | CallKind::Unlink => call.result = -ENOENT,
            _ => match known {
                Some(place) => {
                    call.description = map[place].1;
                    if call.kind == CallKind::Close {
                        map.remove(place);
                    }
                }
                None => {
                    reading.skipped += 1;
                    continue;
                }
            },
        }
        calls.push(call);
    }
    reading.recording.calls = calls;
    Some(reading)
}
