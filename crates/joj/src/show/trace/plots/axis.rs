//! The sector axis of a picture: used ranges one above the other, unused ones between them left out.
//!
//! On a disk of gigabytes a database and a journal are two thin lines. Each used range gets a part of the height: half of it
//! shared out evenly, half by the square root of how many requests went there.

use joj_analysis::trace::points::Point;

/// At most so many ranges; a picture with more would be all gaps.
const SEGMENTS_MAX: usize = 7;
/// A gap is left out if it is at least this share of what is drawn,
const GAP_SHARE: f64 = 0.1;
/// and at least 1 MiB.
const GAP_SECTORS: u64 = 2048;
/// Pixels between two ranges.
const BREAK_HEIGHT: f64 = 18.0;

/// A used range and its place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Segment {
    /// The first sector that the axis shows.
    pub from: u64,
    /// The sector behind the last.
    pub to: u64,
    /// Where `to` is drawn.
    pub top: f64,
    /// Where `from` is drawn.
    pub bottom: f64,
}

/// Ranges from low to high sectors, drawn from bottom to top.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SectorAxis {
    /// At least one where there was a point.
    pub segments: Vec<Segment>,
}

impl SectorAxis {
    /// For these points, between two heights in pixels.
    pub fn new(points: &[Point], top: f64, bottom: f64) -> Self {
        let mut used: Vec<(u64, u64, u64)> = points
            .iter()
            .map(|point| (point.sector, point.end_sector.max(point.sector.saturating_add(1)), point.requests))
            .collect();
        used.sort_unstable();
        let clusters = clusters(&used);
        let roots: Vec<f64> = clusters.iter().map(|(_, _, requests)| (*requests as f64).sqrt()).collect();
        let all: f64 = roots.iter().sum();
        let count = clusters.len() as f64;
        let height = bottom - top - BREAK_HEIGHT * (count - 1.0).max(0.0);
        let mut at = bottom;
        let place = |((from, to, _), root): (&(u64, u64, u64), &f64)| {
            let share = 0.5 / count + 0.5 * root / all.max(1.0);
            let segment = Segment { from: *from, to: *to, top: at - height * share, bottom: at };
            at = segment.top - BREAK_HEIGHT;
            segment
        };
        Self { segments: clusters.iter().zip(&roots).map(place).collect() }
    }

    /// Where a sector is drawn; one in no range at the end of the nearest range below it.
    pub fn y_of(&self, sector: u64) -> f64 {
        let after = self.segments.partition_point(|segment| segment.from <= sector);
        let Some(segment) = self.segments.get(after.saturating_sub(1)) else { return 0.0 };
        let inside = sector.clamp(segment.from, segment.to) - segment.from;
        let share = inside as f64 / (segment.to - segment.from).max(1) as f64;
        segment.bottom - (segment.bottom - segment.top) * share
    }
}

/// Sorted ranges joined over all gaps but the large ones: (from, to, requests).
fn clusters(used: &[(u64, u64, u64)]) -> Vec<(u64, u64, u64)> {
    let (Some(first), Some(to)) = (used.first(), used.iter().map(|range| range.1).max()) else {
        return Vec::new();
    };
    let mut end = first.1;
    let mut gaps: Vec<(u64, u64)> = Vec::new();
    for (from, to, _) in used {
        if *from > end {
            gaps.push((from - end, *from));
        }
        end = end.max(*to);
    }
    gaps.sort_unstable_by(|one, other| other.cmp(one));
    let mut drawn = to - first.0;
    let mut breaks = Vec::new();
    for (sectors, at) in gaps.into_iter().take(SEGMENTS_MAX - 1) {
        if sectors < GAP_SECTORS || (sectors as f64) < GAP_SHARE * drawn as f64 {
            break;
        }
        drawn -= sectors;
        breaks.push(at);
    }
    let mut found: Vec<(u64, u64, u64)> = Vec::new();
    for &(from, to, requests) in used {
        match found.last_mut().filter(|_| !breaks.contains(&from)) {
            Some(last) => *last = (last.0, last.1.max(to), last.2 + requests),
            None => {
                breaks.retain(|at| *at != from);
                found.push((from, to, requests));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use joj_analysis::filesystem::class::Class;
    use joj_analysis::trace::event::{DeviceNumber, Operation};
    use joj_analysis::trace::file_type::FileType;

    fn point(sector: u64, sectors: u64) -> Point {
        Point {
            disk: DeviceNumber(1),
            time_ns: 0,
            sector,
            end_sector: sector + sectors,
            bytes: sectors * 512,
            requests: 1,
            operation: Operation::Write,
            class: Class::Data,
            file_type: FileType::Other,
        }
    }

    fn ranges(points: &[Point]) -> Vec<(u64, u64)> {
        SectorAxis::new(points, 0.0, 300.0)
            .segments
            .iter()
            .map(|segment| (segment.from, segment.to))
            .collect()
    }

    #[test]
    fn data_and_journal_far_apart_have_a_range_each() {
        let points = [point(270_456, 24), point(1_049_064, 56), point(270_800, 16), point(270_456, 8)];
        assert_eq!(ranges(&points), [(270_456, 270_816), (1_049_064, 1_049_120)]);
        let axis = SectorAxis::new(&points, 0.0, 300.0);
        assert_eq!(axis.y_of(270_456), 300.0);
        assert!(axis.y_of(1_049_120).abs() < 1e-9, "the highest sector is at the top");
        assert!(axis.y_of(270_800) > axis.y_of(1_049_064) + BREAK_HEIGHT);
        assert_eq!(axis.y_of(500_000), axis.y_of(270_816), "what is left out has no height");
    }

    #[test]
    fn what_is_spread_evenly_is_not_broken_and_breaks_are_few() {
        let even: Vec<Point> = (0..100).map(|at| point(at * 5000, 8)).collect();
        assert_eq!(ranges(&even), [(0, 495_008)]);
        let scattered: Vec<Point> = (0..40).map(|power| point(1 << power, 8)).collect();
        assert!(ranges(&scattered).len() <= SEGMENTS_MAX);
        assert!(ranges(&[]).is_empty() && SectorAxis::default().y_of(5) == 0.0);
        assert_eq!(ranges(&[Point { end_sector: u64::MAX, ..point(0, 0) }]), [(0, u64::MAX)]);
    }
}
