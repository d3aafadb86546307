//! A filesystem in a loop device and what one piece of work made it do, for the tests of the capture with eBPF.
//!
//! ```text
//! blocks   each request of a write is captured, with its file
//! calls    syncs and SQLite's locks are captured, with theirs
//! cost     a measurement: what a capture costs a commit
//! ```

mod blocks;
mod calls;
mod cost;

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use joj_analysis::trace::event::{Backing, Event, EventKind, Operation, RequestFlags};
use joj_analysis::trace::texts::Texts;

use crate::machine::capture::error::{BpfError, CaptureError};
use crate::machine::capture::selection::Selection;
use crate::machine::capture::spool::Spool;
use crate::machine::capture::start::Capture;
use crate::machine::files::test_volume::TestVolume;

/// Runs a command; its output, or `None` where it is missing or fails.
fn run(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        println!("{program} {arguments:?}: {said}");
        return None;
    }
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// A filesystem of its own; `None`, with the reason printed, where this machine cannot have one.
fn volume(kind: &str, mebibytes: u64) -> Option<TestVolume> {
    let made = TestVolume::create(kind, mebibytes);
    made.inspect_err(|reason| println!("skipped: no loop device with {kind} here: {reason}")).ok()
}

/// What `work` made the disk do, in order.
fn captured(mounted: &TestVolume, work: impl FnOnce()) -> Option<(Vec<Event>, Texts)> {
    let selection = Selection { devices: vec![mounted.disk()], log_contents: true, ..Selection::default() };
    let mut capture = match Capture::bpf(&selection, Spool::new(&std::env::temp_dir(), 0)) {
        Ok(capture) => capture,
        Err(reason) => {
            let unbuilt = matches!(reason, CaptureError::Bpf(BpfError::NotBuilt(_)));
            assert!(!may_trace() || unbuilt, "{reason}");
            println!("skipped: {reason}");
            return None;
        }
    };
    let mut events = Vec::new();
    work();
    let mut keep = |event: &Event, _: &Texts| events.push(*event);
    capture.poll(Duration::from_millis(20), &mut keep).expect("a readable ring");
    let lost = capture.stop().expect("a readable ring");
    let texts = capture.drain(&mut |_| ControlFlow::Continue(()), &mut keep).expect("records");
    assert_eq!(lost, 0);
    // Calls are captured wherever they come from, those of tests beside this one too.
    let thread = u32::try_from(rustix::thread::gettid().as_raw_nonzero().get()).expect("a thread's number");
    events.retain(
        |event| if is_call(event.kind) { event.thread == thread } else { !is_elsewhere(event, mounted) },
    );
    assert!(events.is_sorted_by_key(|event| event.time_ns));
    for event in &events {
        println!("{event:?} {} {}", texts.get(event.command), texts.get(event.name));
    }
    Some((events, texts))
}

/// What a thread's own call says.
fn is_call(kind: EventKind) -> bool {
    use EventKind::{DurableWrite, Lock, SyncBegin, SyncEnd, Truncated};
    matches!(kind, SyncBegin | SyncEnd | DurableWrite | Lock | Truncated)
}

/// A file of another disk's filesystem; a number without a major part is one of Btrfs's own.
fn is_elsewhere(event: &Event, mounted: &TestVolume) -> bool {
    let device = event.file.device;
    device.0 >> 20 != 0 && device != mounted.disk()
}

/// Root on a kernel with BTF: there a capture must work.
fn may_trace() -> bool {
    Path::new("/sys/kernel/btf/vmlinux").exists() && run("id", &["-u"]).as_deref() == Some("0")
}

fn writes(events: &[Event], backing: Backing) -> Vec<&Event> {
    let is_write = |event: &&Event| event.kind == EventKind::Queue && event.operation == Operation::Write;
    events.iter().filter(is_write).filter(|event| event.backing == backing).collect()
}

fn of_kind(events: &[Event], kind: EventKind) -> Vec<&Event> {
    events.iter().filter(|event| event.kind == kind).collect()
}

/// Writes 4 KiB at `offset` of a file that is there.
fn write_and_sync(path: &Path, offset: u64) {
    let file = OpenOptions::new().write(true).open(path).expect("the file");
    file.write_all_at(&[7; 4096], offset).expect("room");
    file.sync_all().expect("a sync");
}

/// A file of 64 KiB that is on disk, with everything about it.
fn settled_file(mounted: &TestVolume, name: &str) -> PathBuf {
    let path = mounted.path().join(name);
    File::create(&path).expect("a file").write_all(&[1; 65536]).expect("room");
    sync(mounted);
    path
}

/// Everything of this filesystem is on disk. A `sync` would mean those of other tests, too, whose captures would show it.
fn sync(mounted: &TestVolume) {
    let directory = File::open(mounted.path()).expect("the volume");
    rustix::fs::syncfs(&directory).expect("a sync");
}

/// What somebody awaited is issued and completed: by sectors, as requests are merged and split. Writeback by others may still be under
/// way when the capture ends. One completion of several may be missing, as some kernels run no eBPF program while a certain process is on the
/// processor; `no_request_is_missing_beside_the_kernels_own_counters` wants all.
fn assert_completed(events: &[Event]) {
    let ends = of_kind(events, EventKind::SyncEnd);
    let until_ns = ends.last().map_or(u64::MAX, |end| end.time_ns);
    let is_awaited =
        |run: &Event| run.bytes > 0 && run.flags.has(RequestFlags::SYNC) && run.time_ns < until_ns;
    let awaited: Vec<_> =
        of_kind(events, EventKind::Queue).into_iter().filter(|run| is_awaited(run)).collect();
    assert!(!awaited.is_empty(), "nothing was awaited");
    for (kind, missing_max) in [(EventKind::Issue, 0), (EventKind::Complete, usize::from(awaited.len() > 1))]
    {
        let missing: Vec<_> = awaited.iter().filter(|run| !is_covered(events, run, kind)).collect();
        assert!(missing.len() <= missing_max, "were queued, but no {}: {missing:?}", kind.text());
    }
    assert!(of_kind(events, EventKind::Complete).iter().all(|event| event.detail == 0));
}

/// True where later events of a kind have all sectors of a run.
fn is_covered(events: &[Event], run: &Event, kind: EventKind) -> bool {
    let later = || of_kind(events, kind).into_iter().filter(|event| event.time_ns >= run.time_ns);
    let mut reached = run.sector;
    while reached < run.end_sector() {
        match later().find(|event| event.sector <= reached && reached < event.end_sector()) {
            Some(event) => reached = event.end_sector(),
            None => return false,
        }
    }
    true
}
