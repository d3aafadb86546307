//! Events by hand on one disk, and what attribution makes of them.

use joj_analysis::trace::attribution::attribute::{Attributor, Outcome};
use joj_analysis::trace::attribution::request::{Request, Sync, Transaction};
use joj_analysis::trace::event::{Backing, DeviceNumber, Event, EventKind, FileKey, Operation};
use joj_analysis::trace::file_type::FileTypes;
use joj_analysis::trace::header::{Disk, Header, MountedFilesystem};
use joj_analysis::trace::texts::Texts;

pub const DISK: DeviceNumber = DeviceNumber(7 << 20);

pub fn header(kind: &str) -> Header {
    Header {
        disks: vec![Disk { number: DISK, whole: DISK, sectors: 1 << 20, ..Disk::default() }],
        filesystems: vec![MountedFilesystem {
            device: DISK,
            kind: kind.to_owned(),
            disks: vec![DISK],
            ..MountedFilesystem::default()
        }],
        ..Header::default()
    }
}

pub fn file(device: DeviceNumber) -> FileKey {
    FileKey { device, inode: 12, generation: 1 }
}

/// A write of `sectors` sectors at `sector` of the file's page cache.
pub fn write(kind: EventKind, time_ns: u64, sector: u64, sectors: u64) -> Event {
    let queued = kind == EventKind::Queue;
    Event {
        time_ns,
        kind,
        device: DISK,
        sector,
        bytes: sectors * 512,
        operation: Operation::Write,
        thread: 5,
        process: 5,
        file: if queued { file(DISK) } else { FileKey::NONE },
        backing: if queued { Backing::File } else { Backing::Unseen },
        ..Event::default()
    }
}

#[derive(Default)]
pub struct Seen {
    pub requests: Vec<Request>,
    pub syncs: Vec<Sync>,
    pub transactions: Vec<Transaction>,
}

pub fn attributed_with(texts: &Texts, filesystem: &str, events: &[Event]) -> Seen {
    let mut seen = Seen::default();
    let mut take = |outcome: Outcome<'_>, _: &Texts| match outcome {
        Outcome::Request(request) => seen.requests.push(request.clone()),
        Outcome::Sync(sync) => seen.syncs.push(sync.clone()),
        Outcome::Transaction(transaction) => seen.transactions.push(transaction.clone()),
        Outcome::Note(..) => {}
    };
    let mut attributor = Attributor::new(&header(filesystem), FileTypes::default());
    events.iter().for_each(|event| attributor.event(event, texts, &mut take));
    attributor.finish(texts, &mut take);
    seen
}
