//! What `joj device probe` measured, as tables: one for each size of a record.

use joj_analysis::bench::io::job::{IoJob, size};
use joj_analysis::bench::io::probe::{JOBS, ProbeDocument};
use joj_analysis::bench::io::row::IoRow;

use crate::show::bench::table::place_line;
use crate::show::sheet::Sheet;
use crate::show::text::{duration, number};

const LEGEND: &str = "
MB/s are 1,000,000 bytes a second: medians of the runs, whose intervals are in the JSON (`--json FILE`). p50, p99 = a random record's
time, of all runs. A run of writes ends with a sync, which its rate counts.
";

/// The whole result.
pub fn render(document: &ProbeDocument) -> String {
    let (plan, first) = (&document.plan, document.cells.first());
    let way = first.map_or("", |cell| cell.key.way.title());
    let mut text = format!(
        "\n{}\n{way}; {} runs of {} s or {} random records at most, {:.0} s in all\n",
        place_line(&document.environment),
        plan.runs,
        plan.seconds,
        plan.requests_max,
        plan.elapsed_s
    );
    for record_bytes in &plan.record_bytes {
        text.push_str(&sheet(document, *record_bytes).text());
    }
    text.push_str(LEGEND);
    document.notes.iter().for_each(|note| text.push_str(&format!("NOTE: {note}.\n")));
    text
}

fn sheet(document: &ProbeDocument, record_bytes: u64) -> Sheet {
    let title = format!("records of {}: MB/s over ranges of the file", size(record_bytes));
    let head = [
        "",
        "seq write",
        "seq read",
        "rand write",
        "rand read",
        "write p50",
        "write p99",
        "read p50",
        "read p99",
    ];
    let mut sheet = Sheet::new(&title, &head);
    for range_bytes in &document.plan.range_bytes {
        let cell = |job: IoJob| {
            let wanted = |cell: &&IoRow| {
                (cell.key.job, cell.key.record_bytes, cell.key.file_bytes)
                    == (job, record_bytes, *range_bytes)
            };
            document.cells.iter().find(wanted)
        };
        let mut line = vec![size(*range_bytes)];
        line.extend(JOBS.map(|job| rate(cell(job))));
        for job in [IoJob::RandWrite, IoJob::RandRead] {
            let found = cell(job).filter(|cell| cell.bytes_per_s.is_some()).map(|cell| cell.latency);
            let times = found.map(|latency| [duration(latency.p50_ns), duration(latency.p99_ns)]);
            line.extend(times.unwrap_or_else(|| ["-".to_owned(), "-".to_owned()]));
        }
        sheet.line(line);
    }
    let refused = document.cells.iter().filter(|cell| cell.key.record_bytes == record_bytes);
    sheet.notes.extend(refused.filter_map(|cell| cell.refused.clone()).take(1));
    sheet
}

/// MB/s; a slow card's second digit is the third behind the point.
fn rate(cell: Option<&IoRow>) -> String {
    let speed = cell.and_then(|cell| cell.bytes_per_s).map(|speed| speed.median / 1e6);
    speed.map_or_else(|| "-".to_owned(), |rate| if rate < 0.1 { format!("{rate:.4}") } else { number(rate) })
}
