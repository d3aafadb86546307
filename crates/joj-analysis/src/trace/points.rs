//! The points of the time x LBA picture, in memory that does not grow with the trace.
//!
//! As long as all requests fit, each is a point. Then neighbours alike in disk, operation, class and type of file that lie in one
//! cell of time x sectors become one point, and cells grow until half of the room is free again: a point says how many
//! requests it stands for, and the whole says how large the cells are.

use serde::Serialize;

use crate::filesystem::class::Class;
use crate::trace::attribution::attribute::Outcome;
use crate::trace::attribution::request::{Request, Sync};
use crate::trace::event::{DeviceNumber, Operation, SECTOR_BYTES};
use crate::trace::file_type::FileType;

/// So many points are kept of a trace, all disks together.
pub const POINTS_MAX: usize = 20_000;
/// So many sync calls, or neighbours of them, are kept for the picture of R over time.
const RATIOS_MAX: usize = 2_000;
/// The first cells cut time and sectors of the trace so far into so many pieces.
const FIRST_CELLS: u64 = 4096;

/// One or more requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    pub disk: DeviceNumber,
    /// Nanoseconds of the trace's clock: when the first of them went to the driver.
    pub time_ns: u64,
    /// The lowest sector; 0 for a flush.
    pub sector: u64,
    /// The sector behind the last.
    pub end_sector: u64,
    /// Their bytes, in all.
    pub bytes: u64,
    pub requests: u64,
    pub operation: Operation,
    /// What most of their bytes are for.
    pub class: Class,
    /// The type of the file that most of their bytes belong to.
    pub file_type: FileType,
}

/// A cell in which requests were merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PointCell {
    /// How long a cell is, in nanoseconds.
    pub time_ns: u64,
    /// How many sectors a cell covers.
    pub sectors: u64,
}

/// The journal block ratio of a sync call that wrote, or of neighbours.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    /// When the first of them was called.
    pub time_ns: u64,
    /// Journal bytes of journal and data bytes; the mean, where there are several.
    pub ratio: f64,
    pub calls: u64,
}

/// What there is to draw of a trace.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Points {
    /// In order of time where nothing was merged; else roughly so.
    pub points: Vec<Point>,
    /// How many requests they stand for.
    pub requests: u64,
    /// Cells in which requests were merged; `None`: each request is a point.
    pub merged: Option<PointCell>,
    /// Requests that no point stands for: a trace of more disks and kinds than there is room for.
    pub left_out: u64,
    /// R over time.
    pub ratios: Vec<Ratio>,
}

/// Collects points.
#[derive(Debug)]
pub struct PointCollector {
    found: Points,
    /// The cells' bits, once there are cells.
    bits: Option<Bits>,
    points_max: usize,
    ratios_max: usize,
    /// So many neighbouring calls make one ratio.
    calls_each: u64,
}

impl Default for PointCollector {
    fn default() -> Self {
        Self::with_room(POINTS_MAX, RATIOS_MAX)
    }
}

impl PointCollector {
    fn with_room(points_max: usize, ratios_max: usize) -> Self {
        Self { found: Points::default(), bits: None, points_max, ratios_max, calls_each: 1 }
    }

    /// Something is complete.
    pub fn outcome(&mut self, outcome: &Outcome<'_>) {
        match outcome {
            Outcome::Request(request) if !request.under_way => self.request(request),
            Outcome::Sync(sync) => self.sync(sync),
            Outcome::Request(_) | Outcome::Transaction(_) | Outcome::Note(..) => {}
        }
    }

    fn request(&mut self, request: &Request) {
        if self.found.points.len() >= self.points_max {
            self.make_room();
        }
        let largest = request.runs.iter().max_by_key(|run| run.bytes);
        let length = request.bytes.div_ceil(SECTOR_BYTES);
        self.found.requests += 1;
        self.found.points.push(Point {
            disk: request.disk,
            time_ns: request.issued_ns,
            sector: request.sector,
            end_sector: request.sector.saturating_add(length),
            bytes: request.bytes,
            requests: 1,
            operation: request.operation,
            class: request.class(),
            file_type: largest.map(|run| run.file_type).unwrap_or_default(),
        });
    }

    /// Merges until half of the room is free.
    fn make_room(&mut self) {
        let mut bits = self.bits.unwrap_or_else(|| first_bits(&self.found.points));
        let target = self.points_max / 2;
        loop {
            merge(&mut self.found.points, bits);
            self.bits = Some(bits);
            if self.found.points.len() <= target {
                return;
            }
            if bits == (BITS_MAX, BITS_MAX) {
                break;
            }
            bits = ((bits.0 + 1).min(BITS_MAX), (bits.1 + 1).min(BITS_MAX));
        }
        // More disks and kinds than room: what has the fewest requests is left out, and said to be.
        self.found.points.sort_by_key(|point| std::cmp::Reverse(point.requests));
        let cut: u64 = self.found.points[target..].iter().map(|point| point.requests).sum();
        self.found.points.truncate(target);
        self.found.left_out += cut;
    }

    fn sync(&mut self, sync: &Sync) {
        let Some(ratio) = journal_ratio(sync) else { return };
        let ratios = &mut self.found.ratios;
        match ratios.last_mut().filter(|last| last.calls < self.calls_each) {
            Some(last) => *last = mean(last, &Ratio { time_ns: sync.begun_ns, ratio, calls: 1 }),
            None => ratios.push(Ratio { time_ns: sync.begun_ns, ratio, calls: 1 }),
        }
        if ratios.len() > self.ratios_max {
            *ratios = ratios
                .chunks(2)
                .map(|pair| pair.iter().skip(1).fold(pair[0], |sum, next| mean(&sum, next)))
                .collect();
            self.calls_each = self.calls_each.saturating_mul(2);
        }
    }

    /// What there is to draw.
    pub fn finish(mut self) -> Points {
        if let Some(bits) = self.bits {
            // What came since the last merge would look denser than the rest.
            merge(&mut self.found.points, bits);
            self.found.merged = Some(PointCell { time_ns: 1 << bits.0, sectors: 1 << bits.1 });
        }
        self.found
    }
}

/// R of a call that wrote data or journal.
fn journal_ratio(sync: &Sync) -> Option<f64> {
    let [data, journal] = [Class::Data, Class::Journal].map(|class| sync.bytes[usize::from(class.code())]);
    (data + journal > 0).then(|| journal as f64 / (data + journal) as f64)
}

/// The mean of both, each weighted by its calls.
fn mean(first: &Ratio, next: &Ratio) -> Ratio {
    let calls = first.calls + next.calls;
    let sum = first.ratio * first.calls as f64 + next.ratio * next.calls as f64;
    Ratio { time_ns: first.time_ns.min(next.time_ns), ratio: sum / calls as f64, calls }
}

/// Cells of powers of two: to find one is a shift, of a hundred million requests no division.
type Bits = (u32, u32);
const BITS_MAX: u32 = 63;

fn first_bits(points: &[Point]) -> Bits {
    let bits = |of: fn(&Point) -> u64| {
        let lowest = points.iter().map(of).min().unwrap_or(0);
        let highest = points.iter().map(of).max().unwrap_or(0);
        ((highest - lowest) / FIRST_CELLS).max(1).ilog2()
    };
    (bits(|point| point.time_ns), bits(|point| point.sector))
}

/// Makes one of those that are alike in one cell; afterwards they are in order of cells.
fn merge(points: &mut Vec<Point>, (time_bits, sector_bits): Bits) {
    let key = |point: &Point| {
        let kind = (point.disk, point.operation, point.class, point.file_type);
        (point.time_ns >> time_bits, point.sector >> sector_bits, kind)
    };
    // Sorted rather than hashed: most are in order already, and no trace can be made to collide.
    points.sort_unstable_by_key(key);
    points.dedup_by(|next, kept| {
        let is_alike = key(next) == key(kept);
        if is_alike {
            kept.time_ns = kept.time_ns.min(next.time_ns);
            kept.sector = kept.sector.min(next.sector);
            kept.end_sector = kept.end_sector.max(next.end_sector);
            kept.bytes = kept.bytes.saturating_add(next.bytes);
            kept.requests += next.requests;
        }
        is_alike
    });
}

#[cfg(test)]
mod tests {
    use super::super::event::FileKey;
    use super::super::texts::Text;
    use super::*;
    use crate::trace::attribution::request::{BlockRun, SyncId};

    fn request(time_ns: u64, sector: u64, class: Class) -> Request {
        Request {
            issued_ns: time_ns,
            sector,
            bytes: 4096,
            operation: Operation::Write,
            runs: vec![BlockRun { sector, bytes: 4096, class, ..BlockRun::default() }],
            ..Request::default()
        }
    }

    fn collected(room: usize, requests: impl Iterator<Item = Request>) -> Points {
        let mut collector = PointCollector::with_room(room, 4);
        requests.for_each(|request| collector.outcome(&Outcome::Request(&request)));
        collector.finish()
    }

    #[test]
    fn what_fits_is_kept_as_it_was() {
        let found = collected(10, (0..10).map(|at| request(at * 100, at * 8, Class::Data)));
        assert_eq!((found.points.len(), found.merged, found.requests), (10, None, 10));
        let last = found.points[9];
        assert_eq!((last.time_ns, last.sector, last.end_sector, last.requests), (900, 72, 80, 1));
    }

    #[test]
    fn more_than_fit_are_merged_and_none_is_lost() {
        let class = |at: u64| if at.is_multiple_of(2) { Class::Data } else { Class::Journal };
        let many = (0..10_000).map(|at| request(at * 1000, (at % 2) * 1_000_000 + at, class(at)));
        let found = collected(100, many);
        assert!(found.points.len() <= 100 && found.merged.is_some(), "{}", found.points.len());
        let sum = |of: fn(&Point) -> u64| found.points.iter().map(of).sum::<u64>();
        assert_eq!((sum(|point| point.requests), sum(|point| point.bytes)), (10_000, 10_000 * 4096));
        let journal = found.points.iter().filter(|point| point.class == Class::Journal);
        assert_eq!(journal.map(|point| point.requests).sum::<u64>(), 5_000, "classes stay apart");
        assert_eq!((found.requests, found.left_out), (10_000, 0));
        let cell = found.merged.expect("cells");
        let mut columns: Vec<u64> = found.points.iter().map(|point| point.time_ns / cell.time_ns).collect();
        columns.dedup();
        let in_order = columns.is_sorted();
        assert!(in_order && found.points.len() <= 4 * columns.len(), "the end is as coarse as the begin");
    }

    #[test]
    fn more_disks_than_room_are_left_out_and_counted() {
        let on_disks =
            (1..=64).map(|disk| Request { disk: DeviceNumber(disk), ..request(5, 8, Class::Data) });
        let found = collected(10, on_disks);
        let drawn: u64 = found.points.iter().map(|point| point.requests).sum();
        assert_eq!((found.requests, drawn + found.left_out), (64, 64));
        assert!(found.points.len() <= 10 && found.left_out > 0);
    }

    #[test]
    fn times_and_sectors_at_their_ends_do_not_overflow() {
        let ends = [0, u64::MAX].into_iter().cycle().take(50);
        let found = collected(8, ends.map(|end| request(end, end, Class::Data)));
        assert_eq!(found.points.iter().map(|point| point.requests).sum::<u64>(), 50);
    }

    fn sync(begun_ns: u64, data: u64, journal: u64) -> Sync {
        let mut bytes = [0; Class::ALL.len()];
        bytes[usize::from(Class::Data.code())] = data;
        bytes[usize::from(Class::Journal.code())] = journal;
        Sync {
            id: SyncId(0),
            call: Text::NONE,
            file: FileKey::NONE,
            name: Text::NONE,
            file_type: FileType::Other,
            thread: 1,
            process: 1,
            command: Text::NONE,
            begun_ns,
            ended_ns: None,
            result: 0,
            bytes,
            control_bytes: 0,
            flush_ns: 0,
            requests: 0,
            writes: 0,
            flushes: 0,
            last_completed_ns: 0,
            transaction: None,
        }
    }

    #[test]
    fn ratios_of_neighbouring_calls_become_their_mean() {
        let mut collector = PointCollector::with_room(10, 4);
        for at in 0..16 {
            collector.outcome(&Outcome::Sync(&sync(at, 4096, if at % 2 == 0 { 4096 } else { 0 })));
        }
        collector.outcome(&Outcome::Sync(&sync(99, 0, 0)));
        let ratios = collector.finish().ratios;
        assert_eq!(ratios.iter().map(|ratio| ratio.calls).sum::<u64>(), 16, "{ratios:?}");
        assert!(ratios.len() <= 5 && ratios.iter().all(|ratio| ratio.calls == 1 || ratio.ratio == 0.25));
    }
}
