//! What the device model alone answers: rates of plain requests, without a guest.

use std::collections::BTreeMap;

use joj_analysis::lab::report::compare::{DeviceValue, asked_of_devices};
use joj_analysis::lab::report::metric::Metric;
use joj_analysis::lab::report::paper::PaperTable;
use joj_device::assembly::Assembly;
use joj_device::description::DescriptionError;
use joj_device::workload::{Table3, fig_13, table_3};

/// Every figure that the papers' tables ask of a device.
/// # Errors
/// Where a table names a device that joj does not bring.
pub fn of(papers: &[PaperTable]) -> Result<Vec<DeviceValue>, DescriptionError> {
    let mut tables: BTreeMap<String, Table3> = BTreeMap::new();
    let mut values = Vec::new();
    for (device, metric, range_mib) in asked_of_devices(papers) {
        let assembly = Assembly::named(&device)?;
        let value = match (metric, range_mib) {
            (Metric::DeviceRandomWrite, Some(range_mib)) => fig_13(&assembly, range_mib),
            _ => row(tables.entry(device.clone()).or_insert_with(|| table_3(&assembly)), metric),
        };
        values.extend(value.map(|value| DeviceValue { device, metric, range_mib, value }));
    }
    Ok(values)
}

/// The row of the table that the metric names; `None` where it is no device's.
fn row(table: &Table3, metric: Metric) -> Option<f64> {
    match metric {
        Metric::DeviceSequentialWrite => Some(table.sequential_write),
        Metric::DeviceSequentialRead => Some(table.sequential_read),
        Metric::DeviceRandomWrite => Some(table.random_write),
        Metric::DeviceRandomRead => Some(table.random_read),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::shipped::papers;

    #[test]
    fn the_cards_of_table_3_have_the_papers_figures() {
        let papers = papers::all().unwrap();
        let values = of(&papers).unwrap();
        let of_table = values.iter().filter(|value| value.range_mib.is_none()).count();
        assert_eq!(
            (of_table, values.len()),
            (4 * 8, 4 * 8 + 12 * (8 + 3)),
            "rows of Table 3 by cards, and ranges of Fig. 13 by cards and pairs of them"
        );
        let kingston = |metric| {
            let found = values.iter().find(|value| {
                value.device == "kingston" && value.metric == metric && value.range_mib.is_none()
            });
            found.unwrap().value
        };
        assert!((kingston(Metric::DeviceSequentialWrite) / 4.56 - 1.0).abs() < 0.15);
        assert!((kingston(Metric::DeviceRandomRead) / 1.94 - 1.0).abs() < 0.15);
    }
}
