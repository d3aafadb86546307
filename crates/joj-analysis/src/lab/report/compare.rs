//! Each value of the papers beside the lab's.

use crate::bench::key::JournalMode;
use crate::lab::cell::{Cell, Store};
use crate::lab::report::facts::CellFacts;
use crate::lab::report::metric::Metric;
use crate::lab::report::order;
use crate::lab::report::outcome::{
    Cause, ColumnReport, REPORT_FORMAT, REPORT_VERSION, Report, ReportSource, RowReport, TableReport,
    Unserved, ValueReport,
};
use crate::lab::report::paper::{Column, PaperRow, PaperTable};
use crate::lab::report::reason::{KnownValue, reason};
use crate::lab::result::{CellOutcome, LabResult};

/// A figure that the device model gives without a guest.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceValue {
    pub device: String,
    /// Which figure: one for which [`Metric::is_of_device`] holds.
    pub metric: Metric,
    /// The range of random requests, in MiB.
    pub range_mib: Option<u64>,
    /// The figure, in the metric's unit.
    pub value: f64,
}

/// What `papers` ask of the device model: device, figure, range in MiB; each once.
pub fn asked_of_devices(papers: &[PaperTable]) -> Vec<(String, Metric, Option<u64>)> {
    let mut asked = Vec::new();
    for paper in papers {
        for row in paper.row.iter().filter(|row| row.absent.is_none()) {
            for column in paper.column.iter().filter(|column| column.metric.is_of_device()) {
                let Some(device) = paper.selector(row, column).device else { continue };
                let question = (device, column.metric, column.range_mib);
                if !asked.contains(&question) {
                    asked.push(question);
                }
            }
        }
    }
    asked
}

/// What `results` and `devices` say about `papers`, which are sound (`PaperTable::check`). Where several cells answer to a value,
/// the first that was measured counts, in the order of `results`.
pub fn compare(papers: &[PaperTable], results: &[LabResult], devices: &[DeviceValue]) -> Report {
    let source =
        |result: &LabResult| ReportSource { title: result.title.clone(), machine: result.machine.clone() };
    let mut report = Report {
        format: REPORT_FORMAT.to_owned(),
        version: REPORT_VERSION,
        sources: results.iter().map(source).collect(),
        tables: Vec::new(),
        unserved: Vec::new(),
    };
    for paper in papers {
        let table = Looking { paper, results, devices }.table();
        if table.rows.iter().flat_map(|row| &row.values).any(|value| value.here.is_some()) {
            report.tables.push(table);
        } else {
            report.unserved.push(Unserved {
                name: table.name,
                paper: table.paper,
                title: table.title,
                plan: table.plan,
            });
        }
    }
    report
}

/// Who decides what is written in a cell.
fn writer(cell: &Cell) -> Cause {
    match (cell.task.workload(), cell.mode) {
        _ if cell.store == Store::Lsmvbt || cell.task.frames().is_some() => Cause::Model,
        (None, _) => Cause::Kernel,
        (Some(_), JournalMode::Waldio | JournalMode::Bounded) => Cause::Waldio,
        (Some(_), _) => Cause::Software,
    }
}

/// A table and where its values are looked for.
struct Looking<'a> {
    paper: &'a PaperTable,
    results: &'a [LabResult],
    devices: &'a [DeviceValue],
}

/// A value, with the cell that it comes from where it is not the device model's.
struct Found<'a> {
    value: f64,
    cell: Option<(&'a Cell, CellFacts)>,
}

impl<'a> Looking<'a> {
    fn table(&self) -> TableReport {
        let paper = self.paper;
        let column = |column: &Column| ColumnReport {
            label: column.label.clone(),
            unit: column.metric.unit().to_owned(),
            of_device: column.metric.is_of_device(),
        };
        let rows: Vec<RowReport> = paper.row.iter().map(|row| self.row(row)).collect();
        let labels: Vec<String> = paper.column.iter().map(|column| column.label.clone()).collect();
        let orders = order::orders(&labels, &rows);
        let extremes = paper.extreme.iter().filter_map(|extreme| order::extreme(extreme, &labels, &rows));
        TableReport {
            name: paper.name.clone(),
            title: paper.title.clone(),
            paper: paper.paper.clone(),
            plan: paper.plan.clone(),
            notes: paper.notes.clone(),
            factor: paper.factor,
            columns: paper.column.iter().map(column).collect(),
            extremes: extremes.collect(),
            orders,
            rows,
        }
    }

    fn row(&self, row: &PaperRow) -> RowReport {
        RowReport {
            group: row.group.clone(),
            label: row.label.clone(),
            name: row.name(),
            relative_to: row.relative_to.clone(),
            note: row.note.clone(),
            values: self.paper.column.iter().map(|column| self.value(row, column)).collect(),
        }
    }

    fn value(&self, row: &PaperRow, column: &Column) -> ValueReport {
        let paper = row.paper.get(&column.label).copied();
        let mut report =
            ValueReport { paper, here: None, not_measured: None, ratio: None, cell: None, reason: None };
        let found = match self.found(row, column) {
            Ok(found) => found,
            Err(why) => return ValueReport { not_measured: Some(why), ..report },
        };
        report.cell = found.cell.as_ref().map(|(cell, _)| cell.to_string());
        let base = match &row.relative_to {
            None => None,
            Some(name) => match self.base(name, column) {
                Ok(base) => Some(base),
                Err(why) => return ValueReport { not_measured: Some(format!("{name}: {why}")), ..report },
            },
        };
        let here = base.as_ref().map_or(found.value, |base| found.value / base.value);
        report.here = Some(here);
        // A paper's zero has no multiples.
        report.ratio = paper.filter(|paper| *paper > 0.0).map(|paper| here / paper);
        let is_off = match (paper, report.ratio) {
            (Some(_), Some(ratio)) => ratio > self.paper.factor || ratio < 1.0 / self.paper.factor,
            (Some(_), None) => here > 0.0,
            (None, _) => false,
        };
        if let Some((cell, facts)) = found.cell.as_ref().filter(|_| is_off) {
            let ratio = report.ratio.unwrap_or(f64::INFINITY);
            report.reason = reason(&KnownValue {
                ratio: if column.metric.is_time() { 1.0 / ratio } else { ratio },
                is_speed: column.metric.is_speed(),
                is_counted: column.metric == Metric::MbPer1000,
                writer: writer(cell),
                facts,
                base: base.as_ref().and_then(|base| Some(&base.cell.as_ref()?.1)),
                written: row.written.get(&column.label).copied(),
            });
        }
        report
    }

    fn base(&self, name: &str, column: &Column) -> Result<Found<'a>, String> {
        let row = self.paper.row.iter().find(|row| row.name() == name).ok_or("there is no such row")?;
        let found = self.found(row, column)?;
        if found.value > 0.0 { Ok(found) } else { Err("it is 0".to_owned()) }
    }

    /// The value in the cell of `row` and `column`, or why there is none.
    fn found(&self, row: &PaperRow, column: &Column) -> Result<Found<'a>, String> {
        if let Some(absent) = &row.absent {
            return Err(absent.clone());
        }
        let selector = self.paper.selector(row, column);
        if column.metric.is_of_device() {
            let is_it = |value: &&DeviceValue| {
                Some(&value.device) == selector.device.as_ref()
                    && value.metric == column.metric
                    && value.range_mib == column.range_mib
            };
            let found = self.devices.iter().find(is_it).ok_or("the device model was not asked")?;
            return Ok(Found { value: found.value, cell: None });
        }
        let cells = self.results.iter().flat_map(|result| &result.cells);
        let mut failure = None;
        for found in cells.filter(|found| selector.matches(&found.cell)) {
            let value = match &found.outcome {
                CellOutcome::Failed(reason) => Err(format!("its cell FAILED: {reason}")),
                CellOutcome::Measured(measured) => {
                    let facts = CellFacts::of(&found.cell, measured);
                    let value = column.metric.of(&facts).map_err(str::to_owned);
                    value.map(|value| Found { value, cell: Some((&found.cell, facts)) })
                }
            };
            match value {
                Ok(found) => return Ok(found),
                Err(why) => failure = failure.or(Some(why)),
            }
        }
        Err(failure.unwrap_or_else(|| "no result has its cell".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::report::facts::sample;
    use crate::lab::result::CellResult;

    /// Rows WAL (587), DELETE (98), WAL as a multiple of DELETE (6), and one that is absent.
    fn paper() -> PaperTable {
        let text = serde_json::json!({
            "format": "joj-lab-paper", "version": 2, "name": "made-up", "title": "Made up", "paper": "none",
            "plan": "p", "cell": {"filesystem": "ext4"},
            "column": [{"label": "insert", "metric": "transactions_per_s", "cell": {"task": "insert"}}],
            "row": [
                {"label": "WAL", "cell": {"mode": "wal"}, "paper": {"insert": 587}, "written": {"insert": {"kib": 28}}},
                {"label": "DELETE", "cell": {"mode": "delete"}, "paper": {"insert": 98}},
                {"label": "LS-MVBT", "absent": "never published", "paper": {"insert": 1083}},
                {"group": "multiple", "label": "WAL", "cell": {"mode": "wal"}, "paper": {"insert": 6},
                 "relative_to": "DELETE"},
            ],
        });
        serde_json::from_value(text).unwrap()
    }

    fn of(cells: Vec<CellResult>) -> Report {
        compare(&[paper()], &[sample::result(cells)], &[])
    }

    #[test]
    fn values_stand_beside_the_papers_with_their_ratio() {
        let report = of(vec![sample::at(JournalMode::Delete, 100), sample::at(JournalMode::Wal, 500)]);
        let table = &report.tables[0];
        let values: Vec<(Option<f64>, Option<f64>)> =
            table.rows.iter().map(|row| (row.values[0].paper, row.values[0].here)).collect();
        assert_eq!(
            values,
            [
                (Some(587.0), Some(500.0)),
                (Some(98.0), Some(100.0)),
                (Some(1083.0), None),
                (Some(6.0), Some(5.0))
            ]
        );
        assert_eq!(table.rows[0].values[0].ratio, Some(500.0 / 587.0));
        assert_eq!(table.rows[0].values[0].cell.as_deref(), Some("ext4 ram, insert WAL, fdatasync"));
        assert_eq!(table.rows[2].values[0].not_measured.as_deref(), Some("never published"));
        assert!(table.rows.iter().all(|row| row.values[0].reason.is_none()), "all are within 1.25");
        assert_eq!((table.orders.len(), table.orders[0].reversed.len()), (1, 0));
    }

    #[test]
    fn what_is_off_by_more_than_the_factor_has_a_reason_from_its_cell() {
        let report = of(vec![sample::at(JournalMode::Delete, 100), sample::at(JournalMode::Wal, 250)]);
        let rows = &report.tables[0].rows;
        let wal = rows[0].values[0].reason.as_ref().unwrap();
        assert_eq!(wal.cause, Cause::Software, "{wal:?}");
        assert!(rows[1].values[0].reason.is_none());
        let multiple = rows[3].values[0].reason.as_ref().unwrap();
        assert_eq!(multiple.cause, Cause::Quotient, "{multiple:?}");
    }

    #[test]
    fn a_time_is_longer_where_more_is_written() {
        let mut paper = paper();
        paper.column[0].metric = Metric::Seconds;
        paper.row.truncate(1);
        paper.row[0].paper.insert("insert".to_owned(), 0.001);
        let report = compare(&[paper], &[sample::result(vec![sample::at(JournalMode::Wal, 500)])], &[]);
        let value = &report.tables[0].rows[0].values[0];
        assert_eq!((value.here, value.ratio), (Some(0.002), Some(2.0)));
        assert_eq!(value.reason.as_ref().unwrap().cause, Cause::Software, "32 KiB, not 28: {value:?}");
    }

    #[test]
    fn who_writes_depends_on_the_cell() {
        use crate::lab::cell::Task;
        let raw = Cell { task: Task::Append, ..sample::cell(JournalMode::Off) };
        let model = Cell { store: Store::Lsmvbt, ..sample::cell(JournalMode::Off) };
        let frames = Cell { task: Task::FramesPage, ..sample::cell(JournalMode::Off) };
        let causes = [raw, sample::cell(JournalMode::Wal), sample::cell(JournalMode::Waldio), model, frames]
            .map(|cell| writer(&cell));
        assert_eq!(causes, [Cause::Kernel, Cause::Software, Cause::Waldio, Cause::Model, Cause::Model]);
    }

    #[test]
    fn a_row_without_its_cell_is_not_measured_and_says_why() {
        let mut failed = sample::at(JournalMode::Wal, 1);
        failed.outcome = CellOutcome::Failed("no room".to_owned());
        let why = |report: &Report, row: usize| {
            let value = &report.tables[0].rows[row].values[0];
            (value.here.is_none(), value.not_measured.clone().unwrap_or_default())
        };
        let report = of(vec![failed.clone(), sample::at(JournalMode::Delete, 100)]);
        assert_eq!(why(&report, 0), (true, "its cell FAILED: no room".to_owned()));
        let report = of(vec![sample::at(JournalMode::Wal, 100)]);
        assert_eq!(why(&report, 1), (true, "no result has its cell".to_owned()));
        assert_eq!(why(&report, 3), (true, "DELETE: no result has its cell".to_owned()));
        // A second result has what failed in the first.
        let again = sample::result(vec![sample::at(JournalMode::Wal, 500)]);
        let report = compare(&[paper()], &[sample::result(vec![failed]), again], &[]);
        assert_eq!(report.tables[0].rows[0].values[0].here, Some(500.0));
    }

    #[test]
    fn a_table_of_which_nothing_was_measured_is_named_with_its_plan() {
        let report = of(Vec::new());
        assert_eq!((report.tables.len(), report.unserved[0].plan.as_deref()), (0, Some("p")));
    }

    #[test]
    fn a_zero_of_the_paper_has_no_ratio_but_a_reason_where_the_lab_has_more() {
        let mut paper = paper();
        paper.column[0].metric = Metric::KibJoj;
        paper.row.truncate(1);
        paper.row[0].paper.insert("insert".to_owned(), 0.0);
        let report = compare(&[paper], &[sample::result(vec![sample::at(JournalMode::Wal, 500)])], &[]);
        let value = &report.tables[0].rows[0].values[0];
        assert_eq!((value.here, value.ratio), (Some(16.0), None));
        assert!(value.reason.is_some());
    }

    #[test]
    fn the_device_model_answers_for_its_columns() {
        let mut paper = paper();
        paper.column[0].metric = Metric::DeviceRandomWrite;
        paper.column[0].range_mib = Some(32);
        paper.row.truncate(1);
        paper.row[0].cell.device = Some("kingston".to_owned());
        let value = |range_mib| DeviceValue {
            device: "kingston".to_owned(),
            metric: Metric::DeviceRandomWrite,
            range_mib,
            value: 0.5,
        };
        let papers = [paper];
        let question = ("kingston".to_owned(), Metric::DeviceRandomWrite, Some(32));
        assert_eq!(asked_of_devices(&[papers[0].clone(), papers[0].clone()]), [question]);
        assert!(compare(&papers, &[], &[value(Some(16))]).tables.is_empty());
        let report = compare(&papers, &[], &[value(Some(32))]);
        assert_eq!(report.tables[0].rows[0].values[0].here, Some(0.5));
    }
}
