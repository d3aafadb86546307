//! What the device model alone answers: rates of plain requests, without a guest.

use joj_analysis::lab::report::compare::{DeviceValue, asked_of_devices};
use joj_analysis::lab::report::metric::Metric;
use joj_analysis::lab::report::paper::PaperTable;
use joj_device::description::Description;
use joj_device::request::Request;
use joj_device::workload::{Bench, MIB, random, sequential};

/// Requests of a random row, as in Fig. 13 of FAST'12.
const RANDOM_REQUESTS: u64 = 2048;
/// Bytes of a row in order, and the range of Table 3's random rows.
const ROW_MIB: u64 = 128;
/// What is written in order before a range of Fig. 13.
const FILLED_MIB: u64 = 1024;
/// No card is larger here: no row reaches beyond.
const CAPACITY_MIB: u64 = 4096;

/// Every figure that the papers' tables ask of a device.
/// # Errors
/// Where a table names a device that joj does not bring.
pub fn of(papers: &[PaperTable]) -> Result<Vec<DeviceValue>, String> {
    let mut values = Vec::new();
    for (device, metric, range_mib) in asked_of_devices(papers) {
        let description = Description::named(&device).map_err(|error| error.to_string())?;
        let Some(value) = rate(&description, metric, range_mib) else { continue };
        values.push(DeviceValue { device, metric, range_mib, value });
    }
    Ok(values)
}

/// MB/s; `None` where the figure is no device's. The rows of Table 3 are a device's one after another, as the benchmark of the
/// paper ran them; those of Fig. 13 stand behind what was written in order.
fn rate(description: &Description, metric: Metric, range_mib: Option<u64>) -> Option<f64> {
    let capacity_bytes = (CAPACITY_MIB * MIB).min(description.capacity_bytes);
    let mut bench = Bench::new(description, capacity_bytes);
    let row_bytes = (ROW_MIB * MIB).min(capacity_bytes);
    let range_bytes = (range_mib.unwrap_or(ROW_MIB) * MIB).min(capacity_bytes);
    if metric == Metric::DeviceRandomWrite && range_mib != Some(ROW_MIB) {
        bench.rate(sequential((FILLED_MIB * MIB).min(capacity_bytes), Request::write));
        return Some(bench.rate(random(RANDOM_REQUESTS, range_bytes, Request::write)));
    }
    let rows = [
        (Metric::DeviceSequentialWrite, bench.rate(sequential(row_bytes, Request::write))),
        (Metric::DeviceSequentialRead, bench.rate(sequential(row_bytes, Request::read))),
        (Metric::DeviceRandomWrite, bench.rate(random(RANDOM_REQUESTS, range_bytes, Request::write))),
        (Metric::DeviceRandomRead, bench.rate(random(RANDOM_REQUESTS, range_bytes, Request::read))),
    ];
    rows.into_iter().find(|(of, _)| *of == metric).map(|(_, rate)| rate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::papers;

    #[test]
    fn the_cards_of_table_3_have_the_papers_figures() {
        let papers = papers::all().unwrap();
        let values = of(&papers).unwrap();
        assert!(values.len() >= 32, "four rows of eight cards: {}", values.len());
        let kingston = |metric| {
            let found = values.iter().find(|value| {
                value.device == "kingston"
                    && value.metric == metric
                    && value.range_mib.is_none_or(|mib| mib == ROW_MIB)
            });
            found.unwrap().value
        };
        assert!((kingston(Metric::DeviceSequentialWrite) / 4.56 - 1.0).abs() < 0.15);
        assert!((kingston(Metric::DeviceRandomRead) / 1.94 - 1.0).abs() < 0.15);
    }
}
