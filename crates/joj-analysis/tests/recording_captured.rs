//! Goal: captured calls become the rows of a recording, whatever order they come in.
//! Method: events made by hand, and what must come of them.

use joj_analysis::recording::Recording;
use joj_analysis::recording::call::{CallKind, RecordedCall};
use joj_analysis::recording::file_tree::{FileTree, TreeEntry};
use joj_analysis::recording::flags::O_TMPFILE;
use joj_analysis::recording::system_calls::captured::called::CalledName;
use joj_analysis::recording::system_calls::captured::capture::{CallCapture, HeldDescriptor};
use joj_analysis::recording::system_calls::captured::presence::FilesNow;
use joj_analysis::recording::system_calls::captured::{
    CallSeen, CapturedCall, CapturedEvent, DescriptorKind, FileIdentity, FirstPageHead, FrameHead, Sharing,
    frame_heads, log_page_bytes,
};
use joj_analysis::recording::system_calls::links::LinksBefore;
use joj_analysis::trace::header::Source;

const AT_FDCWD: u64 = -100_i64 as u64;

fn call(thread: u32, times: (u64, u64), called: CalledName, arguments: &[u64], result: i64) -> CapturedCall {
    let mut call = CapturedCall {
        begin_ns: times.0,
        end_ns: times.1,
        thread,
        called,
        result,
        descriptor: DescriptorKind::File,
        ..CapturedCall::default()
    };
    call.arguments[..arguments.len()].copy_from_slice(arguments);
    call
}

fn open(
    thread: u32,
    times: (u64, u64),
    path: &str,
    result: i64,
    bytes: u64,
    is_created: bool,
) -> CapturedCall {
    CapturedCall {
        paths: [Some(path.as_bytes().to_vec()), None],
        seen: CallSeen::Opened { mode: 0o100_644, bytes, is_created, shared: None },
        ..call(thread, times, CalledName::Openat, &[AT_FDCWD, 0, 2], result)
    }
}

fn two(time: u64, called: CalledName, from: &str, to: &str) -> CapturedCall {
    let paths = [from, to].map(|path| Some(path.as_bytes().to_vec()));
    CapturedCall { paths, ..call(1, (time, time), called, &[], 0) }
}

fn recorded(calls: Vec<CapturedCall>) -> Recording {
    let mut capture = CallCapture::new(0);
    capture.thread(1, None, Some("/home"));
    calls.into_iter().for_each(|call| capture.push(CapturedEvent::Call(Box::new(call))));
    capture.finish(Source::Ptrace, LinksBefore::default())
}

fn of_kind(recording: &Recording, kind: CallKind) -> Vec<&RecordedCall> {
    recording.calls.iter().filter(|call| call.kind == kind).collect()
}

fn present(recording: &Recording) -> Vec<(&str, u64)> {
    let rows = of_kind(recording, CallKind::Present);
    rows.into_iter().map(|row| (recording.texts.get(row.path), row.bytes)).collect()
}

#[test]
fn a_number_that_another_thread_gets_before_a_close_returns_is_the_new_files() {
    let mut capture = CallCapture::new(0);
    capture.thread(1, None, Some("/home"));
    let all = Sharing { files: true, directory: true, process: true };
    capture.push(CapturedEvent::Fork { time_ns: 0, parent: 1, child: 2, sharing: all });
    let mut calls = vec![
        open(1, (1, 2), "a", 3, 10, false),
        // The number is free at 11, and the other thread's at 13; the close returns at 20.
        call(1, (10, 20), CalledName::Close, &[3], 0),
        open(2, (11, 13), "b", 3, 20, false),
        call(2, (15, 16), CalledName::Pwrite64, &[3, 0, 7, 5], 7),
    ];
    calls.reverse();
    calls.into_iter().for_each(|call| capture.push(CapturedEvent::Call(Box::new(call))));
    let recording = capture.finish(Source::Bpf, LinksBefore::default());
    let (opens, writes) = (of_kind(&recording, CallKind::Open), of_kind(&recording, CallKind::Pwrite));
    assert_eq!((writes[0].description, writes[0].process), (opens[1].description, 1));
    assert_eq!(of_kind(&recording, CallKind::Close)[0].description, opens[0].description);
    assert_eq!(present(&recording), [("/home/a", 10), ("/home/b", 20)]);
}

#[test]
fn what_was_there_has_the_name_that_it_had_before() {
    let recording = recorded(vec![
        two(1, CalledName::Rename, "/d", "/e"),
        open(1, (2, 2), "/e/old", 3, 5, false),
        open(1, (3, 3), "/e/new", 4, 0, true),
        two(4, CalledName::Rename, "/e/new", "/f"),
        open(1, (5, 5), "/f", 5, 9, false),
        open(1, (6, 6), "/gone", -2, 0, false),
        open(1, (7, 7), "/gone", 6, 3, false),
        two(8, CalledName::Rename, "/x", "/f"),
        open(1, (9, 9), "/f", 7, 77, false),
    ]);
    // What was missing came back without a call: nothing in the recording makes it.
    assert_eq!(present(&recording), [("/d/old", 5), ("/x", 77)]);
}

#[test]
fn what_a_call_made_is_known_below_a_directory_that_is_renamed() {
    let one = |time: u64, called: CalledName, path: &str| CapturedCall {
        paths: [Some(path.as_bytes().to_vec()), None],
        ..call(1, (time, time), called, &[], 0)
    };
    let exchanged = |time: u64, from: &str, to: &str| CapturedCall {
        arguments: [AT_FDCWD, 0, AT_FDCWD, 0, 2, 0],
        ..two(time, CalledName::Renameat2, from, to)
    };
    let recording = recorded(vec![
        // Made, renamed with the directory above twice, and found.
        one(1, CalledName::Mkdir, "/tmp/new"),
        one(2, CalledName::Mkdir, "/tmp/new/deep"),
        open(1, (3, 3), "/tmp/new/deep/f", 3, 0, true),
        two(4, CalledName::Rename, "/tmp/new", "/tmp/final"),
        two(5, CalledName::Rename, "/tmp", "/var"),
        open(1, (6, 6), "/var/final/deep/f", 4, 6, false),
        // The same name again is another file's, and was not there either.
        one(7, CalledName::Mkdir, "/tmp"),
        open(1, (8, 8), "/tmp/f", 5, 0, true),
        two(9, CalledName::Rename, "/tmp", "/var/inner"),
        open(1, (10, 10), "/var/inner/f", 6, 4, false),
        // Was there: two renames later it has its first name.
        two(11, CalledName::Rename, "/old/a", "/old/b"),
        two(12, CalledName::Rename, "/old", "/older"),
        open(1, (13, 13), "/older/b", 7, 70, false),
        open(1, (14, 14), "/older/c", 8, 80, false),
        // Two directories change places, and what is in them.
        open(1, (15, 15), "/left/made", 9, 0, true),
        exchanged(16, "/left", "/right"),
        open(1, (17, 17), "/right/made", 10, 1, false),
        open(1, (18, 18), "/left/made", 11, 90, false),
    ]);
    assert_eq!(present(&recording), [("/old/a", 70), ("/old/c", 80), ("/right/made", 90)]);
}

#[test]
fn a_file_that_was_there_is_found_by_a_name_that_a_link_gave_it() {
    let unlink =
        CapturedCall { paths: [Some(b"/old".to_vec()), None], ..call(1, (2, 2), CalledName::Unlink, &[], 0) };
    let recording = recorded(vec![
        two(1, CalledName::Link, "/old", "/new"),
        unlink,
        open(1, (3, 3), "/new", 3, 800, false),
        // Made, and seen before: nothing new.
        open(1, (4, 4), "/made", 4, 0, true),
        two(5, CalledName::Link, "/made", "/also"),
        open(1, (6, 6), "/also", 5, 5, false),
        open(1, (7, 7), "/seen", 6, 7, false),
        two(8, CalledName::Link, "/seen", "/again"),
        open(1, (9, 9), "/again", 7, 7, false),
    ]);
    assert_eq!(present(&recording), [("/old", 800), ("/seen", 7)]);
}

#[test]
fn what_the_program_has_twice_is_open_until_the_last_close() {
    let mut capture = CallCapture::new(0);
    capture.thread(1, None, Some("/"));
    let one = HeldDescriptor { number: 1, known: "/out".to_owned(), mode: 0o100_644, ..Default::default() };
    capture.held(1, &one);
    capture.held(1, &HeldDescriptor { number: 2, same_as: Some((1, 1)), ..one });
    let close = |time, number| call(1, (time, time), CalledName::Close, &[number], 0);
    let write = call(1, (3, 3), CalledName::Write, &[1, 0, 5], 5);
    for one in [close(1, 2), write, close(4, 1)] {
        capture.push(CapturedEvent::Call(Box::new(one)));
    }
    let recording = capture.finish(Source::Ptrace, LinksBefore::default());
    let closes = of_kind(&recording, CallKind::Close);
    let flags: Vec<u32> = closes.iter().map(|close| close.flags).collect();
    assert_eq!(flags, [RecordedCall::STAYS_OPEN, 0], "a replay opens it once");
}

#[test]
fn a_tree_begins_with_what_was_there_and_guesses_nothing_of_it() {
    let recording = recorded(vec![
        open(1, (1, 1), "/a", 3, 4096, false),
        call(1, (2, 2), CalledName::Pread64, &[3, 0, 100, 50_000], 100),
        call(1, (3, 3), CalledName::Pwrite64, &[3, 0, 10, 9000], 10),
    ]);
    let mut tree = FileTree::default();
    for call in &recording.calls {
        tree.apply(call, &recording.texts);
    }
    assert_eq!(tree.before().get("/a"), Some(&TreeEntry::File(4096)));
    assert_eq!(tree.after().get("/a"), Some(&TreeEntry::File(9010)));
}

#[test]
fn an_ioctl_on_a_file_is_told_by_what_it_does() {
    let ioctl = |request: u64, result: i64| call(1, (1, 1), CalledName::Ioctl, &[3, request], result);
    let recording = recorded(vec![
        ioctl(0x4004_9409, 0),
        ioctl(0xc018_9436, 0),
        // As a C library hands up an `int` whose highest bit is set.
        ioctl(0xffff_ffff_c018_9436, 0),
        ioctl(0x4004_9409, -95),
        ioctl(0x4008_6602, 0),
        ioctl(0x5451, 0),
    ]);
    let facts = recording.header.recording.expect("facts");
    let told: Vec<String> =
        facts.not_replayed.iter().map(|(what, calls)| format!("{calls} {what}")).collect();
    assert_eq!(
        told,
        [
            "1 ioctl",
            "1 ioctl: it failed",
            "1 ioctl: it may change a file or its attributes",
            "3 ioctl: it shares blocks of two files",
        ]
    );
}

#[test]
fn what_is_no_file_is_counted_and_restarted_calls_are_told() {
    let pipe =
        CapturedCall { descriptor: DescriptorKind::Other, ..call(1, (1, 1), CalledName::Dup2, &[9, 1], 1) };
    let mut capture = CallCapture::new(0);
    capture.thread(1, None, Some("/"));
    let read = CapturedCall { descriptor: DescriptorKind::Other, ..CapturedCall::default() };
    capture.counted_calls(&read, 41);
    capture.counted_calls(&CapturedCall { called: CalledName::IoUringEnter, ..read }, 7);
    capture.push(CapturedEvent::Call(Box::new(pipe)));
    capture.push(CapturedEvent::Call(Box::new(call(1, (2, 9), CalledName::Read, &[5, 0, 1], -512))));
    let facts = capture.finish(Source::Ptrace, LinksBefore::default()).header.recording.expect("facts");
    let told: Vec<String> =
        facts.not_replayed.iter().map(|(what, calls)| format!("{calls} {what}")).collect();
    assert_eq!(
        told,
        [
            "1 dup2: a pipe, a socket or the like",
            "7 io_uring_enter: reads and writes through it are not seen",
            "41 read: a pipe, a socket or the like",
            "1 read: a signal interrupted it, and it began again",
        ]
    );
}

#[test]
fn held_descriptors_stand_where_they_stood_and_share_what_they_shared() {
    let mut capture = CallCapture::new(0);
    capture.thread(1, None, Some("/"));
    capture.thread(5, None, Some("/"));
    let page = FirstPageHead {
        page_bytes: 4096,
        pages: 7,
        free_pages: 2,
        write_version: 2,
        ..FirstPageHead::default()
    };
    let held = HeldDescriptor {
        number: 3,
        known: "/a.db".to_owned(),
        nameless_below: None,
        mode: 0o100_644,
        flags: 2,
        position: 50,
        bytes: 28_672,
        first_page: Some(page),
        same_as: None,
    };
    capture.held(1, &held);
    capture.held(5, &HeldDescriptor { number: 4, same_as: Some((1, 3)), ..held.clone() });
    capture.held(1, &HeldDescriptor { number: 0, known: "/dev/null".to_owned(), mode: 0o020_000, ..held });
    capture.push(CapturedEvent::Call(Box::new(call(5, (1, 1), CalledName::Write, &[4, 0, 9], 9))));
    let recording = capture.finish(Source::Bpf, LinksBefore::default());
    let kinds: Vec<CallKind> = recording.calls.iter().map(|call| call.kind).collect();
    assert_eq!(kinds, [CallKind::Present, CallKind::FirstPage, CallKind::Held, CallKind::Write]);
    let [file, page, held, write] = recording.calls[..] else { panic!("four rows") };
    assert_eq!((recording.texts.get(file.path), file.bytes, held.offset), ("/a.db", 28_672, 50));
    assert_eq!((page.offset, page.bytes, page.result, page.flags), (4096, 7, 2, 0x0200));
    assert_eq!(write.description, held.description);
}

/// The kernel says `/d/gone (deleted)` of it. A file may really be called so.
#[test]
fn what_has_no_name_any_more_gets_none_and_no_name_below_it() {
    let mut capture = CallCapture::new(0);
    capture.thread(1, None, None);
    let held = |number, known: &str, mode| HeldDescriptor {
        number,
        known: known.to_owned(),
        mode,
        flags: 2,
        bytes: 9,
        ..HeldDescriptor::default()
    };
    let nameless = |held: HeldDescriptor| HeldDescriptor { nameless_below: Some("/d".to_owned()), ..held };
    capture.held(1, &held(3, "/d/named (deleted)", 0o100_644));
    capture.held(1, &nameless(held(4, "/d/gone (deleted)", 0o100_644)));
    capture.held(1, &nameless(held(5, "/d/sub (deleted)", 0o040_755)));
    capture.held(1, &nameless(held(6, "/memfd:x (deleted)", 0o100_644)));
    for number in [4, 6] {
        capture.push(CapturedEvent::Call(Box::new(call(1, (1, 1), CalledName::Write, &[number, 0, 7], 7))));
    }
    for directory in [5, AT_FDCWD] {
        let mut made = open(1, (2, 2), "f", 7, 0, true);
        made.arguments[0] = directory;
        capture.push(CapturedEvent::Call(Box::new(made)));
    }
    let recording = capture.finish(Source::Bpf, LinksBefore::default());
    let told: Vec<_> = recording
        .calls
        .iter()
        .map(|call| (call.kind, recording.texts.get(call.path), call.bytes, call.flags))
        .collect();
    let wanted = [
        (CallKind::Present, "/d/named (deleted)", 9, 0o100_000),
        (CallKind::Held, "/d/named (deleted)", 0, 2),
        (CallKind::Held, "/d", 9, 2 | O_TMPFILE),
        (CallKind::Write, "", 7, 0),
    ];
    assert_eq!(told, wanted);
    assert_eq!(recording.calls[3].description, recording.calls[2].description);
    let mut tree = FileTree::default();
    for call in &recording.calls {
        tree.apply(call, &recording.texts);
    }
    let names: Vec<String> = tree.after().into_keys().collect();
    assert_eq!(names, ["/d", "/d/named (deleted)"], "nothing else has a name");
    let facts = recording.header.recording.expect("facts");
    let counted: Vec<_> = facts.not_replayed.iter().map(|(why, calls)| (why.as_str(), *calls)).collect();
    let wanted = [
        ("openat: a name in a directory that is gone", 2),
        ("write: a descriptor whose opening was not seen", 1),
    ];
    assert_eq!(counted, wanted);
}

#[test]
fn locks_and_heads_of_frames_have_rows() {
    let lock = |whence, start, length| CapturedCall {
        seen: CallSeen::Lock { kind: 1, whence, start, length },
        ..call(1, (2, 2), CalledName::Fcntl, &[3, 6], 0)
    };
    let head = FrameHead { offset: 32, page: 3, commit_pages: 9 };
    let write =
        CapturedCall { frames: vec![head], ..call(1, (3, 3), CalledName::Pwrite64, &[3, 0, 4120, 32], 4120) };
    let recording =
        recorded(vec![open(1, (1, 1), "/a-wal", 3, 0, true), lock(0, 100, -20), lock(2, 0, 1), write]);
    let rows = of_kind(&recording, CallKind::Lock);
    assert_eq!(rows.iter().map(|row| (row.offset, row.bytes, row.flags)).collect::<Vec<_>>(), [(80, 20, 1)]);
    let frame = of_kind(&recording, CallKind::LogFrame)[0];
    assert_eq!((frame.offset, frame.bytes, frame.flags), (32, 3, 9));
    assert_eq!(frame.description, of_kind(&recording, CallKind::Pwrite)[0].description);
}

#[test]
fn heads_of_frames_are_where_the_format_says() {
    let heads = |begin, end| frame_heads(begin, end, 4096).collect::<Vec<_>>();
    assert_eq!(heads(0, 32), [0; 0]);
    assert_eq!(heads(0, 32 + 4120 + 8), [32, 4152]);
    assert_eq!(heads(33, 9000), [4152, 8272]);
    assert_eq!(heads(4152, 4152 + 24), [4152]);
    assert_eq!(heads(4152, 4152 + 7), [0; 0]);
    let mut header = [0x37, 0x7f, 6, 0x83, 0, 0x2d, 0xe2, 0x18, 0, 0, 0x10, 0];
    assert_eq!(log_page_bytes(&header), Some(4096));
    header[7] = 0;
    assert_eq!([log_page_bytes(&header), log_page_bytes(&header[..11])], [None, None], "another layout");
}

/// Two names of one file, of which a call links one on and takes it away.
#[test]
fn what_a_link_named_is_one_with_the_other_names_that_were_there() {
    let one = |time: u64, called: CalledName, path: &str, arguments: &[u64], seen: CallSeen| CapturedCall {
        paths: [Some(path.as_bytes().to_vec()), None],
        seen,
        ..call(1, (time, time), called, arguments, 0)
    };
    let stat =
        |time, path| one(time, CalledName::Lstat, path, &[], CallSeen::Status { mode: 0o100_644, bytes: 6 });
    let unlink = |time| one(time, CalledName::Unlink, "/h", &[], CallSeen::default());
    for asks in 0..3 {
        let mut calls = vec![stat(1, "/a"), two(3, CalledName::Link, "/h", "/e"), unlink(5)];
        // Nobody asks for the one that goes; before it is linked; behind that.
        if asks > 0 {
            calls.push(stat(2 * asks, "/h"));
        }
        let mut capture = CallCapture::new(0);
        capture.thread(1, None, Some("/home"));
        calls.into_iter().for_each(|call| capture.push(CapturedEvent::Call(Box::new(call))));
        let file = FileIdentity { inode: 7, device: 1 };
        capture.ask_for_files(FilesNow::new(move |path| (path != "/h").then_some((0o100_644, 6, file))));
        let recording = capture.finish(Source::Ptrace, LinksBefore::default());
        let rows = of_kind(&recording, CallKind::Present);
        let names: Vec<[&str; 2]> = rows
            .iter()
            .map(|row| [row.path, row.second_path].map(|path| recording.texts.get(path)))
            .collect();
        assert_eq!(names, [["/a", ""], ["/h", "/a"]], "asks {asks}");
    }
}

/// A rename of one of its names to another does nothing, also where calls made both.
#[test]
fn a_rename_to_a_name_that_a_call_linked_does_nothing() {
    let recording = recorded(vec![
        open(1, (1, 1), "/g", 3, 0, true),
        two(2, CalledName::Link, "/g", "/b"),
        two(3, CalledName::Rename, "/b", "/g"),
        open(1, (4, 4), "/b", 4, 0, false),
    ]);
    assert_eq!(present(&recording), []);
}
