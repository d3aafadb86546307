//! The bytes that the eBPF programs hand up (`struct event_head`, bpf/recording.bpf.c) become events.

use std::collections::HashMap;

use joj_analysis::recording::system_calls::captured::called::{CalledName, commands};
use joj_analysis::recording::system_calls::captured::{
    CallSeen, CapturedCall, CapturedEvent, DescriptorKind, FileIdentity, FirstPageHead, FrameHead, OpenHow,
    Sharing, ThreadEnd,
};

use crate::machine::capture::calls::numbers;

const HEAD_BYTES: usize = 128;
/// In the place of a path's length: it could not be read.
const UNREAD: u16 = u16::MAX;

/// Makes events of records. Heads of frames come before the call that wrote them.
#[derive(Debug, Default)]
pub struct Decoder {
    frames: HashMap<u32, Vec<FrameHead>>,
}

impl Decoder {
    /// The event of a record. `None` where it belongs to one that comes later.
    /// # Errors
    /// The bytes are no record: a fault of joj's.
    pub fn event(&mut self, bytes: &[u8]) -> Result<Option<CapturedEvent>, ()> {
        let (head, text) = bytes.split_at_checked(HEAD_BYTES).ok_or(())?;
        let (thread, other, time_ns) = (long(head, 88), long(head, 92), quad(head, 0));
        Ok(Some(match head[104] {
            1 => CapturedEvent::Call(Box::new(self.call(head, text).ok_or(())?)),
            2 => {
                let marks = long(head, 96);
                let [files, directory, process] = [1, 2, 4].map(|bit| marks & bit != 0);
                let sharing = Sharing { files, directory, process };
                CapturedEvent::Fork { time_ns, parent: thread, child: other, sharing }
            }
            3 => CapturedEvent::Exec { time_ns, thread, former: other },
            4 => CapturedEvent::Exit { time_ns, thread, end: end_of(long(head, 96)) },
            6 => {
                let [waited_ns, awaited] = [72, 80].map(|at| quad(head, at));
                CapturedEvent::Woken { time_ns, thread, waker: other, waited_ns, awaited }
            }
            5 => {
                let frame =
                    FrameHead { offset: quad(head, 72), page: long(head, 96), commit_pages: long(head, 64) };
                self.frames.entry(thread).or_default().push(frame);
                return Ok(None);
            }
            _ => return Err(()),
        }))
    }

    fn call(&mut self, head: &[u8], text: &[u8]) -> Option<CapturedCall> {
        let called = CalledName::from_code(head[105])?;
        let thread = long(head, 88);
        let mut call = CapturedCall {
            begin_ns: quad(head, 0),
            end_ns: quad(head, 8),
            process: long(head, 92),
            thread,
            called,
            arguments: [16, 24, 32, 40, 48, 56].map(|at| quad(head, at)),
            result: quad(head, 64).cast_signed(),
            descriptor: descriptor(head[106]),
            first_page: first_page(&head[108..122]),
            frames: self.frames.remove(&thread).unwrap_or_default(),
            ..CapturedCall::default()
        };
        if call.result < 0 {
            call.frames.clear();
        }
        let mut rest = text;
        for (path, (length, argument)) in call
            .paths
            .iter_mut()
            .zip([short(head, 100), short(head, 102)].into_iter().zip(called.path_arguments()))
        {
            if argument.is_some() && length != UNREAD {
                let (found, after) = rest.split_at_checked(usize::from(length))?;
                *path = Some(found.to_vec());
                rest = after;
            }
        }
        if called == CalledName::Openat2 {
            // Flags in the lower half, the few of resolve in the upper one.
            let how = quad(head, 80);
            let flags = numbers::open_flags(how & u64::from(u32::MAX));
            call.open_how = OpenHow { flags, resolve: how >> 32 };
        }
        call.seen = seen(head, &call);
        Some(call)
    }
}

/// By the marks BY_ITSELF and WITH_PROCESS of bpf/threads.h.
fn end_of(marks: u32) -> ThreadEnd {
    match marks {
        0 => ThreadEnd::ByOthers,
        1 => ThreadEnd::ByItself,
        _ => ThreadEnd::WithProcess,
    }
}

fn seen(head: &[u8], call: &CapturedCall) -> CallSeen {
    let (mode, value, marks) = (long(head, 96), quad(head, 72), head[107]);
    if marks & 1 == 0 || (call.called.opens() && call.result < 0) {
        return CallSeen::Nothing;
    }
    match call.called {
        called if called.opens() && call.result >= 0 => {
            let of_several = FileIdentity { inode: call.arguments[4], device: call.arguments[5] };
            let shared = (marks & 4 != 0).then_some(of_several);
            CallSeen::Opened { mode, bytes: value, is_created: marks & 2 != 0, shared }
        }
        CalledName::Fcntl if commands::LOCKS.contains(&call.arguments[1]) => CallSeen::Lock {
            kind: mode & 0xffff,
            whence: mode >> 16,
            start: value.cast_signed(),
            length: quad(head, 80).cast_signed(),
        },
        called if called.reads() || called.writes() => CallSeen::Length(value),
        _ => CallSeen::Status { mode, bytes: value },
    }
}

fn first_page(bytes: &[u8]) -> Option<FirstPageHead> {
    let [1, b0, b1, write_version, read_version, reserved_bytes, p0, p1, p2, p3, f0, f1, f2, f3] = *bytes
    else {
        return None;
    };
    let page_bytes = u32::from(u16::from_be_bytes([b0, b1]));
    Some(FirstPageHead {
        page_bytes: if page_bytes == 1 { 65_536 } else { page_bytes },
        write_version,
        read_version,
        reserved_bytes,
        pages: u32::from_be_bytes([p0, p1, p2, p3]),
        free_pages: u32::from_be_bytes([f0, f1, f2, f3]),
    })
}

/// The kind of a descriptor by its code.
pub fn descriptor(code: u8) -> DescriptorKind {
    match code {
        1 => DescriptorKind::File,
        2 => DescriptorKind::Device,
        3 => DescriptorKind::Other,
        _ => DescriptorKind::Unknown,
    }
}

fn quad(head: &[u8], at: usize) -> u64 {
    head.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_ne_bytes)
}

fn long(head: &[u8], at: usize) -> u32 {
    head.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_ne_bytes)
}

fn short(head: &[u8], at: usize) -> u16 {
    head.get(at..at + 2).and_then(|bytes| bytes.try_into().ok()).map_or(0, u16::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_becomes_a_call_with_its_paths() {
        let mut bytes = vec![0; HEAD_BYTES];
        (bytes[104], bytes[105]) = (1, CalledName::Rename.code());
        (bytes[100], bytes[102]) = (2, 3);
        bytes.extend(b"/a/bc");
        let mut decoder = Decoder::default();
        let Ok(Some(CapturedEvent::Call(call))) = decoder.event(&bytes) else { panic!("a call") };
        assert_eq!(call.paths, [Some(b"/a".to_vec()), Some(b"/bc".to_vec())]);
        bytes[100] = 200;
        assert_eq!(decoder.event(&bytes), Err(()), "longer than the record");
        assert_eq!([decoder.event(&bytes[..20]), decoder.event(&[0; HEAD_BYTES])], [Err(()), Err(())]);
    }

    #[test]
    fn heads_of_frames_are_those_of_the_next_call_of_their_thread() {
        let mut decoder = Decoder::default();
        let mut frame = vec![0; HEAD_BYTES];
        (frame[104], frame[88], frame[72], frame[96]) = (5, 9, 32, 2);
        assert_eq!(decoder.event(&frame), Ok(None));
        let mut write = vec![0; HEAD_BYTES];
        (write[104], write[105], write[88], write[106]) = (1, CalledName::Pwrite64.code(), 9, 1);
        let Ok(Some(CapturedEvent::Call(call))) = decoder.event(&write) else { panic!("a call") };
        assert_eq!(call.frames, [FrameHead { offset: 32, page: 2, commit_pages: 0 }]);
        let Ok(Some(CapturedEvent::Call(call))) = decoder.event(&write) else { panic!("a call") };
        assert!(call.frames.is_empty());
    }
}
