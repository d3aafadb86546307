//! Samples as comma-separated values (RFC 4180): a row for each sample, a column for each quantity.

use joj_analysis::monitor::document::{MonitorDocument, Series, rounded};

/// The whole file. What has no value is an empty field.
pub fn render(document: &MonitorDocument) -> String {
    let mut text = String::from("at_ms,span_ms");
    for series in &document.quantities {
        text.push(',');
        text.push_str(&quoted(&title(series)));
    }
    text.push_str("\r\n");
    let columns = [&document.at_ms, &document.span_ms];
    let columns: Vec<&[f64]> = columns
        .into_iter()
        .chain(document.quantities.iter().map(|series| &series.values))
        .map(|numbers| numbers.0.as_slice())
        .collect();
    for row in 0..document.samples() {
        for (index, column) in columns.iter().enumerate() {
            let value = rounded(column[row]);
            let comma = if index == 0 { "" } else { "," };
            text.push_str(&if value.is_nan() { comma.to_owned() } else { format!("{comma}{value}") });
        }
        text.push_str("\r\n");
    }
    text
}

/// `disk vda writes [1/s]`.
fn title(series: &Series) -> String {
    let Series { kind, name, quantity, unit, .. } = series;
    let space = if name.is_empty() { "" } else { " " };
    format!("{}{space}{name} {quantity} [{unit}]", kind.word())
}

fn quoted(field: &str) -> String {
    if field.contains(['"', ',', '\n']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_commas_stay_one_field() {
        assert_eq!(
            quoted("interrupt 16 usb1, i801 interrupts [1/s]"),
            "\"interrupt 16 usb1, i801 interrupts [1/s]\""
        );
        assert_eq!(quoted("a \"b\""), "\"a \"\"b\"\"\"");
        assert_eq!(quoted("disk vda busy [%]"), "disk vda busy [%]");
    }
}
