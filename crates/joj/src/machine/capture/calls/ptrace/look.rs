//! A call at its begin and at its end, with the memory behind its arguments. Of buffers only SQLite's numbers are taken.

use std::collections::HashMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use joj_analysis::recording::flags::{O_CREAT, O_EXCL, RESOLVE_IN_ROOT};
use joj_analysis::recording::system_calls::captured::called::{BehindPointer, CalledName, commands};
use joj_analysis::recording::system_calls::captured::{
    CallSeen, CapturedCall, DescriptorKind, FileIdentity, FirstPageHead, FrameHead, LOG_HEADER_BYTES,
    OpenHow, descriptor_number, frame_heads, log_page_bytes,
};

use super::request::{Tid, read_memory};
use crate::machine::capture::calls::{held, numbers};

const AT_FDCWD: i32 = -100;
const PATH_BYTES_MAX: usize = 4096;
/// The kernel takes no more buffers with one call (UIO_MAXIOV).
const BUFFERS_MAX: u64 = 1024;
/// The smallest write that can hold the numbers of a frame's head.
const FRAME_NUMBERS_BYTES: u64 = 8;
/// SQLite reads and writes no smaller piece of page 1 that begins with its header.
const FIRST_PAGE_BYTES: u64 = 100;

/// What is known beside the calls.
#[derive(Debug, Default)]
pub struct Looker {
    /// Bytes of a page, by the device and inode of a SQLite log.
    logs: HashMap<(u64, u64), Option<u32>>,
    /// Writes to such logs whose frames' heads are in other places.
    pub frames_unseen: u64,
}

/// The kind of a thread's descriptor.
pub fn descriptor_kind(thread: Tid, number: u64) -> DescriptorKind {
    let number = descriptor_number(number);
    match fs::metadata(descriptor_path(thread, number)) {
        Ok(status) => DescriptorKind::of_mode(status.mode()),
        Err(_) => DescriptorKind::Unknown,
    }
}

fn descriptor_path(thread: Tid, number: i32) -> PathBuf {
    PathBuf::from(format!("/proc/{thread}/fd/{number}"))
}

/// `clone`'s flags of a call that makes a thread or process.
pub fn clone_flags(thread: Tid, number: u64, arguments: &[u64; 6]) -> u64 {
    match libc::c_long::try_from(number) {
        Ok(libc::SYS_clone) => arguments[0],
        Ok(libc::SYS_clone3) => quad(thread, arguments[0]).unwrap_or(0),
        _ => 0,
    }
}

/// What the begin of an open says of the file: true where it was there, `None` where that does not matter.
pub fn was_there(thread: Tid, call: &CapturedCall) -> Option<bool> {
    let (path, flags, directory) = match call.called {
        CalledName::Creat => (0, u64::from(O_CREAT), None),
        CalledName::Open => (0, call.arguments[1], None),
        CalledName::Openat => (1, call.arguments[2], Some(call.arguments[0])),
        CalledName::Openat2 => (1, open_how(thread, call)?.flags, Some(call.arguments[0])),
        _ => return None,
    };
    let has = |flag: u32| flags & u64::from(flag) != 0;
    if !has(O_CREAT) || has(O_EXCL) {
        return Some(!has(O_CREAT));
    }
    let path = text(thread, call.arguments[path])?;
    let path = Path::new(std::ffi::OsStr::from_bytes(&path)).to_owned();
    let number = directory.map_or(AT_FDCWD, descriptor_number);
    let is_in_root =
        call.called == CalledName::Openat2 && open_how(thread, call)?.resolve & RESOLVE_IN_ROOT != 0;
    let path = match path.strip_prefix("/") {
        Ok(below) if is_in_root => below.to_owned(),
        _ => path,
    };
    let whole = if let Ok(below) = path.strip_prefix("/") {
        PathBuf::from(format!("/proc/{thread}/root")).join(below)
    } else if number == AT_FDCWD {
        PathBuf::from(format!("/proc/{thread}/cwd")).join(path)
    } else {
        descriptor_path(thread, number).join(path)
    };
    Some(fs::metadata(whole).is_ok())
}

impl Looker {
    /// Fills in what is seen when a call is over. `was_there`: what [`was_there`] said.
    pub fn at_end(&mut self, thread: Tid, call: &mut CapturedCall, was_there: Option<bool>) {
        for (path, index) in call.paths.iter_mut().zip(call.called.path_arguments()) {
            *path = index.and_then(|index| text(thread, call.arguments[index]));
        }
        if call.called == CalledName::Openat2
            && let Some(how) = open_how(thread, call)
        {
            call.open_how = OpenHow { flags: numbers::open_flags(how.flags), ..how };
        }
        call.seen = seen(thread, call, was_there);
        let moved = u64::try_from(call.result).unwrap_or(0);
        if call.descriptor == DescriptorKind::File
            && (call.called.reads() || call.called.writes())
            && moved >= FRAME_NUMBERS_BYTES
        {
            self.sqlite(thread, call, moved);
        }
    }

    /// SQLite's numbers in what a read or write moved.
    fn sqlite(&mut self, thread: Tid, call: &mut CapturedCall, moved: u64) {
        let mut head = [0; FirstPageHead::BYTES];
        let length = usize::try_from(moved).unwrap_or(usize::MAX).min(head.len());
        if !peek(thread, call, 0, &mut head[..length]) {
            return;
        }
        let (first_page, log) = (FirstPageHead::of(&head[..length]), log_page_bytes(&head[..length]));
        if first_page.is_some() && moved >= FIRST_PAGE_BYTES && offset(thread, call, moved) == Some(0) {
            call.first_page = first_page;
        }
        if !call.called.writes() {
            return;
        }
        let written = descriptor_path(thread, descriptor_number(call.arguments[0]));
        let Some(file) = log_of(&written) else { return };
        let Some(begin) = offset(thread, call, moved) else { return };
        if begin == 0 && moved >= LOG_HEADER_BYTES {
            self.logs.insert(file, log);
        }
        let known = self.logs.entry(file);
        let page_bytes = *known.or_insert_with(|| held::page_bytes_of_log(&written));
        let Some(page_bytes) = page_bytes else {
            // Another layout; but zeros are room for frames.
            self.frames_unseen += u64::from(begin >= LOG_HEADER_BYTES && head[..8] != [0; 8]);
            return;
        };
        for at in frame_heads(begin, begin + moved, page_bytes) {
            let mut numbers = [0; 8];
            if peek(thread, call, at - begin, &mut numbers) {
                let [a, b, c, d, e, f, g, h] = numbers;
                let (page, commit_pages) =
                    (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]));
                // Zeros are room that is prepared for later frames.
                if page != 0 {
                    call.frames.push(FrameHead { offset: at, page, commit_pages });
                }
            }
        }
    }
}

/// Device and inode of an open file that is called as a log is, or was before it was removed.
fn log_of(descriptor: &Path) -> Option<(u64, u64)> {
    let path = fs::read_link(descriptor).ok()?;
    let path = path.as_os_str().as_bytes();
    let name = path.strip_suffix(b" (deleted)").unwrap_or(path);
    let open = fs::metadata(descriptor).ok().filter(|_| name.ends_with(b"-wal"))?;
    Some((open.dev(), open.ino()))
}

/// Where in the file the bytes began that a call moved.
fn offset(thread: Tid, call: &CapturedCall, moved: u64) -> Option<u64> {
    if let Some(index) = call.called.offset_argument()
        && call.arguments[index] != u64::MAX
    {
        return Some(call.arguments[index]);
    }
    let number = descriptor_number(call.arguments[0]);
    let told = fs::read_to_string(format!("/proc/{thread}/fdinfo/{number}")).ok()?;
    let position = told.lines().find_map(|line| line.strip_prefix("pos:"))?;
    position.trim().parse::<u64>().ok()?.checked_sub(moved)
}

/// Bytes of what a call moved, from `at` on; false where they cannot be read.
fn peek(thread: Tid, call: &CapturedCall, at: u64, room: &mut [u8]) -> bool {
    if call.called.behind_pointer() != BehindPointer::Vector {
        return read_memory(thread, call.arguments[1].wrapping_add(at), room) == room.len();
    }
    let (mut skip, mut filled) = (at, 0);
    for (base, length) in buffers(thread, call) {
        if skip >= length {
            skip -= length;
            continue;
        }
        let part = usize::try_from(length - skip).unwrap_or(usize::MAX).min(room.len() - filled);
        let wanted = &mut room[filled..filled + part];
        if read_memory(thread, base.wrapping_add(skip), wanted) != part {
            return false;
        }
        (skip, filled) = (0, filled + part);
        if filled == room.len() {
            return true;
        }
    }
    false
}

/// Where the buffers of a vectored call are, and how long.
fn buffers(thread: Tid, call: &CapturedCall) -> Vec<(u64, u64)> {
    let count = call.arguments[2].min(BUFFERS_MAX);
    let mut bytes = vec![0; usize::try_from(count * 16).unwrap_or(0)];
    let read = read_memory(thread, call.arguments[1], &mut bytes);
    let word = |chunk: &[u8]| chunk.first_chunk().map_or(0, |chunk| u64::from_ne_bytes(*chunk));
    bytes[..read].chunks_exact(16).map(|one| (word(one), word(&one[8..]))).collect()
}

fn seen(thread: Tid, call: &CapturedCall, was_there: Option<bool>) -> CallSeen {
    if call.called.opens() {
        if call.result >= 0 {
            let number = i32::try_from(call.result).unwrap_or(-1);
            if let Ok(status) = fs::metadata(descriptor_path(thread, number)) {
                let is_created = was_there == Some(false);
                let of_several = FileIdentity { inode: status.ino(), device: status.dev() };
                let shared = (status.is_file() && status.nlink() > 1).then_some(of_several);
                return CallSeen::Opened { mode: status.mode(), bytes: status.len(), is_created, shared };
            }
        }
        return CallSeen::Nothing;
    }
    match call.called.behind_pointer() {
        BehindPointer::Vector => {
            CallSeen::Length(buffers(thread, call).iter().map(|(_, length)| length).sum())
        }
        BehindPointer::Status(index) if call.result == 0 => {
            status(thread, call.arguments[usize::from(index)], numbers::STATUS_PLACES, u32::MAX)
        }
        BehindPointer::StatusX(index) if call.result == 0 => {
            status(thread, call.arguments[usize::from(index)], numbers::STATUS_X_PLACES, 0xffff)
        }
        BehindPointer::Lock if commands::LOCKS.contains(&call.arguments[1]) => {
            lock(thread, call.arguments[2])
        }
        BehindPointer::Address => {
            let mut begin = [0; 4];
            match read_memory(thread, call.arguments[1], &mut begin[..3]) {
                3 => CallSeen::Status { mode: u32::from_ne_bytes(begin), bytes: 0 },
                _ => CallSeen::Nothing,
            }
        }
        _ => CallSeen::Nothing,
    }
}

/// `struct open_how`: flags, mode and resolve (64 bits each).
fn open_how(thread: Tid, call: &CapturedCall) -> Option<OpenHow> {
    let at = call.arguments[2];
    Some(OpenHow { flags: quad(thread, at)?, resolve: quad(thread, at.wrapping_add(16))? })
}

fn status(thread: Tid, address: u64, (mode_at, bytes_at): (u64, u64), mask: u32) -> CallSeen {
    let mut mode = [0; 4];
    let is_read = read_memory(thread, address.wrapping_add(mode_at), &mut mode) == mode.len();
    match quad(thread, address.wrapping_add(bytes_at)) {
        Some(bytes) if is_read => CallSeen::Status { mode: u32::from_ne_bytes(mode) & mask, bytes },
        _ => CallSeen::Nothing,
    }
}

/// `struct flock`: type and whence (16 bits each), start and length (64 each).
fn lock(thread: Tid, address: u64) -> CallSeen {
    let mut bytes = [0; 24];
    if read_memory(thread, address, &mut bytes) != bytes.len() {
        return CallSeen::Nothing;
    }
    let word = |at: usize| bytes[at..].first_chunk().map_or(0, |chunk| i64::from_ne_bytes(*chunk));
    CallSeen::Lock {
        kind: u32::from(u16::from_ne_bytes([bytes[0], bytes[1]])),
        whence: u32::from(u16::from_ne_bytes([bytes[2], bytes[3]])),
        start: word(8),
        length: word(16),
    }
}

fn quad(thread: Tid, address: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    (read_memory(thread, address, &mut bytes) == bytes.len()).then(|| u64::from_ne_bytes(bytes))
}

/// A text that ends with a zero, as the kernel takes paths.
fn text(thread: Tid, address: u64) -> Option<Vec<u8>> {
    let mut found: Vec<u8> = Vec::new();
    while address != 0 && found.len() < PATH_BYTES_MAX {
        let at = address.wrapping_add(found.len() as u64);
        // Not across the end of a page: the next one may not be there.
        let mut room = vec![0; usize::try_from(256 - at % 256).unwrap_or(256)];
        let read = read_memory(thread, at, &mut room);
        let part = &room[..read];
        match part.iter().position(|byte| *byte == 0) {
            Some(end) => {
                found.extend_from_slice(&part[..end]);
                return Some(found);
            }
            None if read == 0 => return None,
            None => found.extend_from_slice(part),
        }
    }
    None
}
