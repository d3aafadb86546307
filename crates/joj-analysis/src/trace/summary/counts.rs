//! How many requests and bytes, by what they are for: the panels of the papers' figures.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::filesystem::class::{Class, Part};
use crate::trace::attribution::request::{Evidence, Request};
use crate::trace::event::{DeviceNumber, Operation, RequestFlags};
use crate::trace::file_type::FileType;
use crate::trace::histogram::{Distribution, Histogram};

/// Upper bounds of the size panel, bytes; what is larger has a bucket of its own (ATC'13, Fig. 2).
pub const SIZE_BOUNDS: [u64; 4] = [4 << 10, 16 << 10, 64 << 10, 256 << 10];

/// Requests and their bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Default)]
pub struct RequestCount {
    /// Requests, or runs of them where a table says so.
    pub requests: u64,
    pub bytes: u64,
}

impl RequestCount {
    pub(super) fn add(&mut self, bytes: u64) {
        self.requests += 1;
        self.bytes += bytes;
    }
}

/// Written and read under one heading.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Default)]
pub struct ReadAndWritten {
    /// What it is about.
    pub label: String,
    pub written: RequestCount,
    pub read: RequestCount,
}

/// The counts of a trace.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Default)]
pub struct Counts {
    pub writes: RequestCount,
    pub reads: RequestCount,
    /// Flush requests as issued.
    pub flushes: u64,
    /// Writes that were to be preceded by a flush, and writes that were to be durable, as intended.
    pub preflush_intended: u64,
    /// FUA writes as intended.
    pub fua_intended: u64,
    /// FUA writes as issued.
    pub fua_issued: u64,
    pub discards: RequestCount,
    /// Requests that failed.
    pub errors: u64,
    /// Handed over and never seen at the driver. In the other counts, too, where the disk has no request queue or the event was lost; not
    /// where the trace ended before.
    pub unissued: RequestCount,
    /// Complete, as a call that waited for them returned, or the driver had another one in their place. The trace has no event of their
    /// end, so they have no latency. In the other counts, too.
    pub untold: RequestCount,
    /// By class of most of a request's bytes, requests; by class of each byte, bytes.
    pub classes: Vec<ReadAndWritten>,
    /// By class and part, in runs.
    pub parts: Vec<ReadAndWritten>,
    /// Data by type of file, in runs.
    pub file_types: Vec<ReadAndWritten>,
    /// Writes that somebody waits for, and others.
    pub sync_writes: RequestCount,
    /// Writes that nobody waits for.
    pub buffered_writes: RequestCount,
    /// Writes that begin where the disk's last write ended.
    pub sequential_writes: RequestCount,
    /// All other writes.
    pub random_writes: RequestCount,
    /// By size of request.
    pub sizes: Vec<ReadAndWritten>,
    /// Written bytes by evidence: seen, extent, none.
    pub written_by_evidence: [u64; 3],
    /// Nanoseconds from issue to completion: reads, writes, flushes.
    pub latency_ns: [Distribution; 3],
    /// Logged blocks whose last logged copy is known.
    pub logged_again: RequestCount,
    /// Bytes of those that differ from that copy.
    pub logged_again_changed_bytes: u64,
}

impl Counts {
    /// Written bytes that were placed, of all; 1 where nothing was written.
    pub fn attributed_share(&self) -> f64 {
        let all: u64 = self.written_by_evidence.iter().sum();
        let placed = all - self.written_by_evidence[2];
        if all == 0 { 1.0 } else { placed as f64 / all as f64 }
    }
}

/// Counts requests.
#[derive(Debug, Default)]
pub struct Counter {
    counts: Counts,
    class_written: [RequestCount; Class::ALL.len()],
    class_read: [RequestCount; Class::ALL.len()],
    parts: BTreeMap<(Class, Part, bool), RequestCount>,
    file_types: BTreeMap<(FileType, bool), RequestCount>,
    sizes: [[RequestCount; SIZE_BOUNDS.len() + 1]; 2],
    latencies: [Histogram; 3],
    last_end: Vec<(DeviceNumber, u64)>,
}

impl Counter {
    /// Counts a request.
    pub fn add(&mut self, request: &Request) {
        self.counts.errors += u64::from(request.error != 0);
        if request.unissued {
            self.counts.unissued.add(request.bytes);
        }
        if request.untold {
            self.counts.untold.add(request.bytes);
        }
        if request.under_way {
            return;
        }
        match request.operation {
            Operation::Flush => self.counts.flushes += 1,
            Operation::Discard | Operation::WriteZeroes => self.counts.discards.add(request.bytes),
            Operation::Write => self.write(request),
            Operation::Read => self.counts.reads.add(request.bytes),
            Operation::Other => {}
        }
        let latency = match request.operation {
            Operation::Read => &mut self.latencies[0],
            Operation::Write => &mut self.latencies[1],
            Operation::Flush => &mut self.latencies[2],
            _ => return,
        };
        if let Some(latency_ns) = request.latency_ns() {
            latency.add(latency_ns);
        }
        if request.operation != Operation::Flush {
            self.contents(request);
        }
    }

    fn write(&mut self, request: &Request) {
        let counts = &mut self.counts;
        counts.writes.add(request.bytes);
        counts.fua_issued += u64::from(request.issued.has(RequestFlags::FUA) && !request.unissued);
        let waits = request.issued.has(RequestFlags::SYNC);
        if waits { &mut counts.sync_writes } else { &mut counts.buffered_writes }.add(request.bytes);
        let end = request.sector + request.bytes.div_ceil(512);
        let last = self.last_end.iter_mut().find(|(disk, _)| *disk == request.disk);
        let follows = last.as_ref().is_some_and(|(_, at)| *at == request.sector);
        match last {
            Some((_, at)) => *at = end,
            None => self.last_end.push((request.disk, end)),
        }
        if follows { &mut counts.sequential_writes } else { &mut counts.random_writes }.add(request.bytes);
        for run in &request.runs {
            let intended = run.intended.without(RequestFlags::CONTINUED);
            let first = intended == run.intended;
            counts.preflush_intended += u64::from(first && intended.has(RequestFlags::PREFLUSH));
            counts.fua_intended += u64::from(first && intended.has(RequestFlags::FUA));
            counts.written_by_evidence[run.evidence as usize] += run.bytes;
            if let Some(changed) = run.changed_bytes {
                counts.logged_again.add(run.bytes);
                counts.logged_again_changed_bytes += u64::from(changed);
            }
        }
    }

    /// Reads and writes alike: class, part, type of file, size.
    fn contents(&mut self, request: &Request) {
        let is_write = request.operation == Operation::Write;
        let by_class = if is_write { &mut self.class_written } else { &mut self.class_read };
        by_class[usize::from(request.class().code())].requests += 1;
        for run in &request.runs {
            by_class[usize::from(run.class.code())].bytes += run.bytes;
            self.parts.entry((run.class, run.part, is_write)).or_default().add(run.bytes);
            if run.class == Class::Data {
                self.file_types.entry((run.file_type, is_write)).or_default().add(run.bytes);
            }
        }
        let bucket =
            SIZE_BOUNDS.iter().position(|&bound| request.bytes <= bound).unwrap_or(SIZE_BOUNDS.len());
        self.sizes[usize::from(is_write)][bucket].add(request.bytes);
    }

    /// The counts so far.
    pub fn finish(mut self) -> Counts {
        let class_heading = |class: &Class| ReadAndWritten {
            label: class.text().to_owned(),
            written: self.class_written[usize::from(class.code())],
            read: self.class_read[usize::from(class.code())],
        };
        self.counts.classes = Class::ALL.iter().map(class_heading).filter(has_any).collect();
        self.counts.parts = headings(self.parts, |(class, part)| match part.text() {
            "" => class.text().to_owned(),
            part => format!("{}: {part}", class.text()),
        });
        self.counts.file_types = headings(self.file_types, |file_type| file_type.text().to_owned());
        self.counts.sizes = (0..=SIZE_BOUNDS.len())
            .map(|at| ReadAndWritten {
                label: size_label(at),
                written: self.sizes[1][at],
                read: self.sizes[0][at],
            })
            .collect();
        self.counts.latency_ns = [0, 1, 2].map(|at: usize| self.latencies[at].distribution());
        self.counts
    }
}

fn has_any(heading: &ReadAndWritten) -> bool {
    heading.written.requests + heading.read.requests + heading.written.bytes + heading.read.bytes > 0
}

/// One heading for reads and writes of the same key, in the order of keys.
fn headings<K: Ord + Copy, T: Split<Key = K>>(
    volumes: BTreeMap<T, RequestCount>,
    label: impl Fn(K) -> String,
) -> Vec<ReadAndWritten> {
    let mut found: BTreeMap<K, ReadAndWritten> = BTreeMap::new();
    for (key, volume) in volumes {
        let (key, is_write) = key.split();
        let heading = found
            .entry(key)
            .or_insert_with(|| ReadAndWritten { label: label(key), ..ReadAndWritten::default() });
        *(if is_write { &mut heading.written } else { &mut heading.read }) = volume;
    }
    found.into_values().collect()
}

/// A key with its direction behind it.
trait Split {
    type Key;
    fn split(self) -> (Self::Key, bool);
}

impl Split for (Class, Part, bool) {
    type Key = (Class, Part);
    fn split(self) -> (Self::Key, bool) {
        ((self.0, self.1), self.2)
    }
}

impl Split for (FileType, bool) {
    type Key = FileType;
    fn split(self) -> (Self::Key, bool) {
        self
    }
}

fn size_label(at: usize) -> String {
    match SIZE_BOUNDS.get(at) {
        Some(bound) => format!("<= {} KiB", bound >> 10),
        None => format!("> {} KiB", SIZE_BOUNDS[at - 1] >> 10),
    }
}

impl Evidence {
    /// Every kind, in the order of [`Counts::written_by_evidence`].
    pub const ALL: [Self; 3] = [Self::Seen, Self::Extent, Self::None];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::attribution::request::BlockRun;

    fn write(sector: u64, parts: &[(Class, u64)]) -> Request {
        let bytes = parts.iter().map(|(_, bytes)| bytes).sum();
        let run = |&(class, bytes): &(Class, u64)| BlockRun { class, bytes, ..BlockRun::default() };
        let runs = parts.iter().map(run).collect();
        Request { operation: Operation::Write, sector, bytes, runs, ..Request::default() }
    }

    #[test]
    fn a_request_counts_once_and_its_bytes_by_class() {
        let mut counter = Counter::default();
        counter.add(&write(0, &[(Class::Data, 4096), (Class::Journal, 8192)]));
        counter.add(&write(24, &[(Class::Data, 4096)]));
        let counts = counter.finish();
        let found: Vec<_> = counts
            .classes
            .iter()
            .map(|one| (one.label.as_str(), one.written.requests, one.written.bytes))
            .collect();
        assert_eq!(found, [("data", 1, 8192), ("journal", 1, 8192)]);
        assert_eq!((counts.sequential_writes.requests, counts.random_writes.requests), (1, 1));
        assert_eq!(counts.sizes.iter().map(|one| one.written.requests).collect::<Vec<_>>(), [1, 1, 0, 0, 0]);
    }

    #[test]
    fn what_nobody_placed_lowers_the_share() {
        let mut counter = Counter::default();
        let mut request = write(0, &[(Class::Data, 3 * 4096), (Class::Unattributed, 4096)]);
        request.runs[0].evidence = Evidence::Seen;
        counter.add(&request);
        assert_eq!(counter.finish().attributed_share(), 0.75);
        assert_eq!(Counts::default().attributed_share(), 1.0);
    }
}
