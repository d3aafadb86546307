//! Whether rows stand in the paper's order.

use crate::lab::report::outcome::{ExtremeReport, Order, RowReport};
use crate::lab::report::paper::{End, Extreme};

/// Paper values less than this factor apart are equal: no paper has intervals, and 98 and 99 inserts are not an order.
const TIE: f64 = 1.05;
/// Two runs of a cell agree within this factor; what differs by less is equal.
const SAME: f64 = 1.005;

/// The orders of all columns: of the rows of each group, and of the rows of each label that several groups have.
pub fn orders(columns: &[String], rows: &[RowReport]) -> Vec<Order> {
    let mut found = Vec::new();
    for (index, column) in columns.iter().enumerate() {
        for group in unique(rows.iter().map(|row| row.group.as_str())) {
            let members = rows.iter().filter(|row| row.group == group).collect();
            found.extend(order(column, index, group, members));
        }
        for label in unique(rows.iter().map(|row| row.label.as_str())) {
            let members: Vec<&RowReport> = rows.iter().filter(|row| row.label == label).collect();
            found.extend(order(column, index, label, members));
        }
    }
    found
}

fn unique<'row>(words: impl Iterator<Item = &'row str>) -> Vec<&'row str> {
    let mut found: Vec<&str> = Vec::new();
    for word in words {
        if !found.contains(&word) {
            found.push(word);
        }
    }
    found
}

/// The order of `members`; none of fewer than two.
fn order(column: &str, index: usize, among: &str, members: Vec<&RowReport>) -> Option<Order> {
    let told = |row: &&RowReport| {
        let value = &row.values[index];
        Some((row.name.clone(), row.relative_to.clone(), value.paper?, value.here?))
    };
    let told: Vec<_> = members.iter().filter_map(told).collect();
    let (mut reversed, mut equal) = (Vec::new(), Vec::new());
    let mut compared = 0;
    for (at, one) in told.iter().enumerate() {
        for other in &told[at + 1..] {
            let (high, low) = if one.2 >= other.2 { (one, other) } else { (other, one) };
            // Multiples of different rows are no order, and a multiple is none of absolute values.
            if high.1 != low.1 || high.2 <= low.2 || high.2 < low.2 * TIE {
                continue;
            }
            compared += 1;
            let pair = || (high.0.clone(), low.0.clone());
            if high.3 < low.3 && high.3 * SAME <= low.3 {
                reversed.push(pair());
            } else if high.3 <= low.3 * SAME {
                equal.push(pair());
            }
        }
    }
    (compared > 0).then(|| Order {
        column: column.to_owned(),
        among: among.to_owned(),
        rows: told.len(),
        reversed,
        equal,
    })
}

/// Whether `extreme` holds; none where its row or all others were not measured.
pub fn extreme(extreme: &Extreme, columns: &[String], rows: &[RowReport]) -> Option<ExtremeReport> {
    let index = columns.iter().position(|column| *column == extreme.column)?;
    let here = |name: &str| rows.iter().find(|row| row.name == name)?.values[index].here;
    let own = here(&extreme.row)?;
    let others: Vec<(&String, f64)> = extreme
        .among
        .iter()
        .filter(|name| **name != extreme.row)
        .filter_map(|name| Some((name, here(name)?)))
        .collect();
    let is_beyond = |value: f64| match extreme.is {
        End::Highest => value > own,
        End::Lowest => value < own,
    };
    (!others.is_empty()).then(|| ExtremeReport {
        column: extreme.column.clone(),
        row: extreme.row.clone(),
        is: extreme.is,
        others: others.len(),
        beyond: others
            .iter()
            .filter(|(_, value)| is_beyond(*value))
            .map(|(name, _)| (*name).clone())
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::report::outcome::ValueReport;

    fn row(group: &str, label: &str, paper: f64, here: Option<f64>) -> RowReport {
        let value = ValueReport {
            paper: Some(paper),
            here,
            not_measured: None,
            ratio: None,
            cell: None,
            reason: None,
        };
        RowReport {
            group: group.to_owned(),
            label: label.to_owned(),
            name: format!("{group} {label}").trim().to_owned(),
            relative_to: None,
            note: None,
            values: vec![value],
        }
    }

    fn of(rows: &[RowReport]) -> Vec<Order> {
        orders(&["insert".to_owned()], rows)
    }

    #[test]
    fn an_order_holds_and_a_reversed_pair_is_named() {
        let mut rows = [
            row("", "DELETE", 98.0, Some(70.0)),
            row("", "PERSIST", 213.0, Some(150.0)),
            row("", "WAL", 587.0, Some(600.0)),
        ];
        let found = of(&rows);
        assert_eq!((found.len(), found[0].rows, found[0].reversed.len()), (1, 3, 0));
        rows[1].values[0].here = Some(60.0);
        assert_eq!(of(&rows)[0].reversed, [("PERSIST".to_owned(), "DELETE".to_owned())]);
    }

    #[test]
    fn paper_values_less_than_five_percent_apart_are_no_order() {
        let rows = [row("", "DELETE", 98.0, Some(2.0)), row("", "TRUNCATE", 99.0, Some(1.0))];
        assert_eq!(of(&rows), []);
        let rows = [row("", "A", 0.0, Some(2.0)), row("", "B", 0.0, Some(1.0))];
        assert_eq!(of(&rows), []);
        let rows = [row("", "A", 100.0, Some(2.0)), row("", "B", 105.0, Some(1.0))];
        assert_eq!(of(&rows)[0].reversed.len(), 1);
    }

    #[test]
    fn what_two_runs_may_differ_by_is_neither_order() {
        let of_two = |[a, b]: [(f64, f64); 2]| {
            of(&[row("", "A", a.0, Some(a.1)), row("", "B", b.0, Some(b.1))])[0].clone()
        };
        let of = |here| of_two([(200.0, here), (100.0, 1000.0)]);
        let pair = vec![("A".to_owned(), "B".to_owned())];
        for here in [996.0, 1000.0, 1004.0] {
            assert_eq!((of(here).reversed, of(here).equal), (vec![], pair.clone()), "{here}");
        }
        let zeros = of_two([(2.0, 0.0), (1.0, 0.0)]);
        assert_eq!((zeros.reversed.len(), zeros.equal.len()), (0, 1));
        assert_eq!((of(994.0).reversed, of(994.0).equal), (pair, vec![]));
        assert_eq!((of(1006.0).reversed, of(1006.0).equal), (vec![], vec![]));
    }

    #[test]
    fn what_was_not_measured_and_multiples_of_something_else_are_left_out() {
        let mut rows = [row("", "A", 1.0, Some(2.0)), row("", "B", 2.0, Some(1.0)), row("", "C", 3.0, None)];
        assert_eq!(of(&rows)[0].rows, 2);
        rows[0].relative_to = Some("C".to_owned());
        assert_eq!(of(&rows), []);
    }

    #[test]
    fn groups_are_put_in_order_too() {
        let rows = [
            row("EXT4", "base", 39.0, Some(40.0)),
            row("EXT4", "WAL", 76.0, Some(80.0)),
            row("F2FS", "base", 83.0, Some(30.0)),
        ];
        let found = of(&rows);
        let among: Vec<(&str, usize)> =
            found.iter().map(|order| (order.among.as_str(), order.reversed.len())).collect();
        assert_eq!(among, [("EXT4", 0), ("base", 1)]);
    }

    #[test]
    fn extremes_hold_or_name_who_is_beyond() {
        let rows = [
            row("", "XFS", 0.0, Some(3.0)),
            row("", "F2FS", 0.0, Some(2.0)),
            row("", "BTRFS", 0.0, Some(1.0)),
            row("", "NILFS2", 0.0, None),
        ];
        let claim = |row: &str, is: End| {
            let among = rows.iter().map(|row| row.name.clone()).collect();
            let claim = Extreme { column: "insert".to_owned(), row: row.to_owned(), is, among };
            extreme(&claim, &["insert".to_owned()], &rows)
        };
        assert_eq!(claim("BTRFS", End::Lowest).unwrap().beyond, Vec::<String>::new());
        let found = claim("F2FS", End::Highest).unwrap();
        assert_eq!((found.beyond, found.others), (vec!["XFS".to_owned()], 2));
        assert_eq!(claim("NILFS2", End::Lowest), None);
    }
}
