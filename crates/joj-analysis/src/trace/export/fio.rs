//! What filesystems and programs asked of the disks, as fio replays it: an iolog of version 3, with its flushes.
//!
//! `fio --name=replay --read_iolog=FILE --replay_redirect=/dev/DISK`; it writes to the disk. A trace made by blktrace loses the write
//! of a request that flushes and writes, which is a journal's commit (fio issue 1978); here
//!
//! ```text
//! PREFLUSH + write   datasync, write
//! write + FUA        write, datasync
//! flush              datasync
//! ```
//!
//! Times are microseconds from the start. Bios are replayed, not the requests that the scheduler merged of them.

use std::collections::BTreeSet;
use std::io::{self, Write};

use crate::trace::event::{DeviceNumber, Event, EventKind, Operation, RequestFlags, SECTOR_BYTES};
use crate::trace::export::Exporter;
use crate::trace::header::Header;
use crate::trace::texts::Texts;

/// Writes an iolog.
#[derive(Debug)]
pub struct Iolog {
    /// (number of a disk or partition, the whole disk, the whole disk's path)
    disks: Vec<(DeviceNumber, DeviceNumber, String)>,
    started_ns: u64,
    last_us: u64,
    opened: BTreeSet<DeviceNumber>,
    waiting: Option<Bio>,
}

/// A bio whose runs are not all there yet.
#[derive(Debug)]
struct Bio {
    time_ns: u64,
    device: DeviceNumber,
    sector: u64,
    bytes: u64,
    operation: Operation,
    flags: RequestFlags,
}

impl Iolog {
    /// Begins one.
    /// # Errors
    /// Those of `out`.
    pub fn new(header: &Header, out: &mut dyn Write) -> io::Result<Self> {
        writeln!(out, "fio version 3 iolog")?;
        let path = |whole: DeviceNumber| match header.disk(whole) {
            // An importer knows no name.
            Some(disk) if !disk.name.is_empty() && !disk.name.contains(':') => format!("/dev/{}", disk.name),
            _ => format!("/dev/block/{whole}"),
        };
        let disks = header.disks.iter().map(|disk| (disk.number, disk.whole, path(disk.whole))).collect();
        Ok(Self { disks, started_ns: header.started_ns, last_us: 0, opened: BTreeSet::new(), waiting: None })
    }
}

impl Exporter for Iolog {
    /// Takes an event; only `Queue` is replayed.
    fn event(&mut self, event: &Event, _texts: &Texts, out: &mut dyn Write) -> io::Result<()> {
        if event.kind != EventKind::Queue {
            return Ok(());
        }
        let bio = Bio {
            time_ns: event.time_ns,
            device: event.device,
            sector: event.sector,
            bytes: event.bytes,
            operation: event.operation,
            flags: event.flags,
        };
        if let (true, Some(waiting)) = (bio.flags.has(RequestFlags::CONTINUED), &mut self.waiting)
            && waiting.device == bio.device
            && waiting.sector.checked_add(waiting.bytes / SECTOR_BYTES) == Some(bio.sector)
            && let Some(bytes) = waiting.bytes.checked_add(bio.bytes)
        {
            waiting.bytes = bytes;
            return Ok(());
        }
        self.finish(out)?;
        self.waiting = Some(bio);
        Ok(())
    }

    fn finish(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let Some(bio) = self.waiting.take() else { return Ok(()) };
        let known = self.disks.iter().find(|(number, ..)| *number == bio.device);
        let (whole, path) = known.map_or_else(
            || (bio.device, format!("/dev/block/{}", bio.device)),
            |(_, whole, path)| (*whole, path.clone()),
        );
        // fio refuses times that go back.
        self.last_us = self.last_us.max(bio.time_ns.saturating_sub(self.started_ns) / 1_000);
        let time_us = self.last_us;
        if self.opened.insert(whole) {
            writeln!(out, "{time_us} {path} add\n{time_us} {path} open")?;
        }
        if bio.flags.has(RequestFlags::PREFLUSH) || bio.operation == Operation::Flush {
            writeln!(out, "{time_us} {path} datasync 0 0")?;
        }
        let action = match bio.operation {
            Operation::Read => Some("read"),
            Operation::Write => Some("write"),
            // fio knows no write-zeroes; neither moves the bytes.
            Operation::Discard | Operation::WriteZeroes => Some("trim"),
            Operation::Flush | Operation::Other => None,
        };
        if let (Some(action), 1..) = (action, bio.bytes) {
            let offset = bio.sector.saturating_mul(SECTOR_BYTES);
            writeln!(out, "{time_us} {path} {action} {offset} {}", bio.bytes)?;
        }
        if bio.flags.has(RequestFlags::FUA) {
            writeln!(out, "{time_us} {path} datasync 0 0")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::header::Disk;

    #[test]
    fn flushes_stand_where_they_were_asked_for() {
        let [whole, part] = [(8, 0), (8, 1)].map(|(major, minor)| DeviceNumber::new(major, minor).unwrap());
        let disk = |number| Disk { number, whole, name: "sda".to_owned(), ..Disk::default() };
        let header = Header { disks: vec![disk(whole), disk(part)], started_ns: 1_000, ..Header::default() };
        let write = Event {
            device: part,
            operation: Operation::Write,
            bytes: 4096,
            time_ns: 2_000,
            ..Event::default()
        };
        let (commit, mut out) = (RequestFlags::PREFLUSH.with(RequestFlags::FUA), Vec::new());
        let mut iolog = Iolog::new(&header, &mut out).unwrap();
        for event in [
            Event { sector: 8, flags: commit, ..write },
            Event { sector: 16, flags: commit.with(RequestFlags::CONTINUED), time_ns: 2_500, ..write },
            Event { kind: EventKind::Issue, ..write },
            Event {
                operation: Operation::Flush,
                bytes: 0,
                flags: RequestFlags::PREFLUSH,
                time_ns: 9_000,
                ..write
            },
            Event { operation: Operation::Discard, sector: 64, time_ns: 8_000, ..write },
            Event { operation: Operation::Read, bytes: 512, device: DeviceNumber(5), ..write },
        ] {
            iolog.event(&event, &Texts::default(), &mut out).unwrap();
        }
        iolog.finish(&mut out).unwrap();
        let wanted = "fio version 3 iolog\n1 /dev/sda add\n1 /dev/sda open\n1 /dev/sda datasync 0 0\n\
                      1 /dev/sda write 4096 8192\n1 /dev/sda datasync 0 0\n8 /dev/sda datasync 0 0\n\
                      8 /dev/sda trim 32768 4096\n8 /dev/block/0:5 add\n8 /dev/block/0:5 open\n8 /dev/block/0:5 read 0 512\n";
        assert_eq!(String::from_utf8(out).unwrap(), wanted);
    }
}
