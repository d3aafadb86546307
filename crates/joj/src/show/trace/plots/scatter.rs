//! Time to the right, sectors upwards: a bubble for each request, one picture for each disk.

use std::collections::BTreeMap;

use joj_analysis::filesystem::class::Class;
use joj_analysis::filesystem::region::RegionUse;
use joj_analysis::trace::event::{DeviceNumber, Operation};
use joj_analysis::trace::header::Header;
use joj_analysis::trace::points::{Point, Points};

use crate::show::svg::{Anchor, Svg, escape, round_steps};
use crate::show::text::{count, duration, number};
use crate::show::trace::head;
use crate::show::trace::plots::axis::SectorAxis;
use crate::show::words::{counted, kib_of, plain};

const WIDTH: f64 = 920.0;
const LEFT: f64 = 92.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 58.0;
const PLOT_HEIGHT: f64 = 380.0;
const BOTTOM: f64 = 72.0;
/// Flushes are ticks above the plot.
const FLUSH_TOP: f64 = 28.0;
const FLUSH_BOTTOM: f64 = 40.0;
/// More bubbles than these have no text of their own: a page of some megabytes would be many.
const TOLD_MAX: usize = 2000;

/// A picture with its caption for each disk that was used.
pub fn pictures(points: &Points, header: &Header) -> String {
    let mut disks: Vec<DeviceNumber> = points.points.iter().map(|point| point.disk).collect();
    disks.sort_unstable();
    disks.dedup();
    let figure = |disk: &DeviceNumber| {
        let own = of_disk(*disk, points);
        format!(
            "<figure>\n{}{}</figure>\n",
            picture(*disk, &own, header),
            caption(*disk, &own, points, header)
        )
    };
    disks.iter().map(figure).collect()
}

/// The picture of the disk with the most requests.
pub fn busiest(points: &Points, header: &Header) -> Option<String> {
    let mut counts: BTreeMap<DeviceNumber, usize> = BTreeMap::new();
    points.points.iter().for_each(|point| *counts.entry(point.disk).or_default() += 1);
    let (disk, _) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    Some(picture(disk, &of_disk(disk, points), header))
}

fn of_disk(disk: DeviceNumber, points: &Points) -> Vec<Point> {
    points.points.iter().filter(|point| point.disk == disk).copied().collect()
}

fn picture(disk: DeviceNumber, own: &[Point], header: &Header) -> String {
    let placed: Vec<Point> =
        own.iter().filter(|point| point.operation != Operation::Flush).copied().collect();
    let from_ns = own.iter().map(|point| point.time_ns).min().unwrap_or(0);
    let span_ns = own.iter().map(|point| point.time_ns).max().unwrap_or(0) - from_ns;
    let bottom = TOP + PLOT_HEIGHT;
    let axis = SectorAxis::new(&placed, TOP, bottom);
    let x_of = |time_ns: u64| {
        LEFT + 8.0 + (WIDTH - RIGHT - LEFT - 16.0) * (time_ns - from_ns) as f64 / span_ns.max(1) as f64
    };
    let name = header.disk(disk).map_or_else(|| disk.to_string(), |disk| plain(&disk.name));
    let title = format!("Requests to {name}: when, where, what for");
    let mut svg = Svg::new(WIDTH, bottom + BOTTOM, &title);
    svg.text((0.0, 14.0), Anchor::Start, "title", &title);
    draw_segments(&mut svg, &axis, disk, header);
    draw_times(&mut svg, span_ns, bottom, &|offset_ns| x_of(from_ns + offset_ns));
    draw_flushes(&mut svg, own, &x_of);
    // Large ones first, so that small ones stay visible.
    let mut by_size: Vec<&Point> = placed.iter().collect();
    by_size.sort_by_key(|point| std::cmp::Reverse(point.bytes));
    for point in by_size {
        let middle = point.sector + (point.end_sector - point.sector) / 2;
        let told = (placed.len() <= TOLD_MAX).then(|| words(point, from_ns));
        svg.circle(
            (x_of(point.time_ns), axis.y_of(middle)),
            radius(point.bytes),
            &look(point),
            told.as_deref(),
        );
    }
    draw_legend(&mut svg, &placed, bottom + 48.0);
    svg.finish()
}

/// The area grows with the bytes; the smallest stays visible, the largest hides nothing.
fn radius(bytes: u64) -> f64 {
    (1.0 + 1.1 * (bytes as f64 / 4096.0).sqrt()).clamp(1.8, 16.0)
}

/// The classes of the page's style: colour, and whether it is filled.
fn look(point: &Point) -> String {
    let class = point.class.code();
    if point.operation == Operation::Write { format!("c{class}") } else { format!("c{class} hollow") }
}

fn words(point: &Point, from_ns: u64) -> String {
    let requests =
        if point.requests > 1 { format!("{} requests, ", count(point.requests)) } else { String::new() };
    format!(
        "{requests}{} {} KiB at {}, {}, {}; after {}",
        point.operation.text(),
        kib_of(point.bytes),
        count(point.sector),
        point.class.text(),
        point.file_type.text(),
        duration(point.time_ns - from_ns)
    )
}

/// The ranges with their ends, the gaps between them, and a band where the filesystem's journal lies.
fn draw_segments(svg: &mut Svg, axis: &SectorAxis, disk: DeviceNumber, header: &Header) {
    let right = WIDTH - RIGHT;
    let regions = || header.filesystems.iter().flat_map(|filesystem| &filesystem.regions);
    let journals = || regions().filter(|region| region.disk == disk && region.purpose == RegionUse::Journal);
    for (index, segment) in axis.segments.iter().enumerate() {
        for region in journals() {
            let end = region.sector.saturating_add(region.sectors);
            let (from, to) = (region.sector.max(segment.from), end.min(segment.to));
            if from < to {
                let (low, high) = (axis.y_of(from), axis.y_of(to));
                svg.area((LEFT, high), (right, low), "band");
                // Beside the range, where no bubble is.
                svg.text((right, segment.top - 4.0), Anchor::End, "tick", "the filesystem's journal");
            }
        }
        svg.area((LEFT, segment.top), (right, segment.bottom), "frame");
        svg.text((LEFT - 6.0, segment.bottom + 1.0), Anchor::End, "tick", &count(segment.from));
        svg.text((LEFT - 6.0, segment.top + 10.0), Anchor::End, "tick", &count(segment.to));
        if let Some(below) = index.checked_sub(1).and_then(|below| axis.segments.get(below)) {
            let mib = (segment.from - below.to) as f64 / 2048.0;
            let note = format!("{} MiB without a request", number(mib));
            svg.text((LEFT + 6.0, (segment.bottom + below.top) / 2.0 + 4.0), Anchor::Start, "gap", &note);
        }
    }
    svg.text((LEFT - 6.0, FLUSH_TOP + 9.0), Anchor::End, "tick", "flushes");
    svg.text((LEFT - 6.0, TOP - 1.0), Anchor::End, "tick", "sector");
}

fn draw_times(svg: &mut Svg, span_ns: u64, bottom: f64, x_of: &dyn Fn(u64) -> f64) {
    let (unit_ns, unit) = match span_ns {
        0..10_000_000 => (1_000, "us"),
        10_000_000..3_000_000_000 => (1_000_000, "ms"),
        _ => (1_000_000_000, "s"),
    };
    for step in round_steps(span_ns as f64 / f64::from(unit_ns)) {
        let offset: u64 = format!("{:.0}", step * f64::from(unit_ns)).parse().unwrap_or(0);
        if offset <= span_ns {
            svg.line((x_of(offset), TOP), (x_of(offset), bottom), "grid");
            svg.text(
                (x_of(offset), bottom + 16.0),
                Anchor::Middle,
                "tick",
                &format!("{} {unit}", number(step)),
            );
        }
    }
}

/// A tick for each flush, but one for those that a reader could not tell apart.
fn draw_flushes(svg: &mut Svg, points: &[Point], x_of: &dyn Fn(u64) -> f64) {
    let flushes = points.iter().filter(|point| point.operation == Operation::Flush);
    let mut places: Vec<f64> = flushes.map(|point| (x_of(point.time_ns) * 2.0).round() / 2.0).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    for x in places {
        svg.line((x, FLUSH_TOP), (x, FLUSH_BOTTOM), "flush");
    }
}

fn draw_legend(svg: &mut Svg, points: &[Point], y: f64) {
    let mut x = LEFT;
    for class in Class::ALL.iter().filter(|class| points.iter().any(|point| point.class == **class)) {
        svg.circle((x + 5.0, y), 5.0, &format!("c{}", class.code()), None);
        svg.text((x + 15.0, y + 4.0), Anchor::Start, "tick", class.text());
        x += 32.0 + 6.3 * class.text().len() as f64;
    }
    if points.iter().any(|point| point.operation != Operation::Write) {
        svg.circle((x + 5.0, y), 5.0, "c5 hollow", None);
        svg.text((x + 15.0, y + 4.0), Anchor::Start, "tick", "read or discarded");
        x += 130.0;
    }
    for bytes in [4 << 10, 64 << 10, 512 << 10] {
        let wide = radius(bytes);
        svg.circle((x + wide, y), wide, "size", None);
        let label = format!("{} KiB", bytes >> 10);
        svg.text((x + 2.0 * wide + 5.0, y + 4.0), Anchor::Start, "tick", &label);
        x += 2.0 * wide + 62.0;
    }
}

fn caption(disk: DeviceNumber, own: &[Point], points: &Points, header: &Header) -> String {
    let requests: u64 = own.iter().map(|point| point.requests).sum();
    let device = header.disk(disk).map_or_else(|| format!("disk {disk}"), head::device);
    let mut text = format!(
        "{} to {device}. A bubble is a request, larger with its bytes, its colour what most of them are for; a tick above is a \
         flush.",
        counted(requests, "request", "requests"),
    );
    text.push_str(" Sectors that no request went to are left out of the axis.");
    if let Some(cell) = points.merged {
        text.push_str(&format!(
            " {} points stand for them: neighbours of one kind within {} and {} KiB are one bubble.",
            count(own.len() as u64),
            duration(cell.time_ns),
            kib_of(cell.sectors.saturating_mul(512))
        ));
    }
    if points.left_out > 0 {
        text.push_str(&format!(" {} are not drawn.", counted(points.left_out, "request", "requests")));
    }
    format!("<figcaption>{}</figcaption>\n", escape(&text))
}
