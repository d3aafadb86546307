//! The papers' tables and figures that joj brings, as data.

use joj_analysis::lab::report::paper::PaperTable;

use crate::lab::shipped::error::ShippedError;

/// The text of each, in the order of reports.
const SHIPPED: [&str; 23] = [
    include_str!("../../../../../lab/papers/atc13-fig3.toml"),
    include_str!("../../../../../lab/papers/atc13-fig4.toml"),
    include_str!("../../../../../lab/papers/atc13-fig5.toml"),
    include_str!("../../../../../lab/papers/atc13-fig6.toml"),
    include_str!("../../../../../lab/papers/atc13-fig7.toml"),
    include_str!("../../../../../lab/papers/atc13-table1.toml"),
    include_str!("../../../../../lab/papers/atc13-fig10.toml"),
    include_str!("../../../../../lab/papers/atc13-table2.toml"),
    include_str!("../../../../../lab/papers/waldio-table1.toml"),
    include_str!("../../../../../lab/papers/waldio-fig2.toml"),
    include_str!("../../../../../lab/papers/waldio-fig8.toml"),
    include_str!("../../../../../lab/papers/waldio-fig13.toml"),
    include_str!("../../../../../lab/papers/waldio-table2.toml"),
    include_str!("../../../../../lab/papers/waldio-fig15.toml"),
    include_str!("../../../../../lab/papers/fast12-table3.toml"),
    include_str!("../../../../../lab/papers/fast12-fig13-guest.toml"),
    include_str!("../../../../../lab/papers/fast12-table3-guest.toml"),
    include_str!("../../../../../lab/papers/fast12-fig4.toml"),
    include_str!("../../../../../lab/papers/fast12-fig5.toml"),
    include_str!("../../../../../lab/papers/fast12-fig7.toml"),
    include_str!("../../../../../lab/papers/fast12-fig10.toml"),
    include_str!("../../../../../lab/papers/fast12-fig12.toml"),
    include_str!("../../../../../lab/papers/fast12-fig13.toml"),
];

/// All of them.
/// # Errors
/// Where one is damaged.
pub fn all() -> Result<Vec<PaperTable>, ShippedError> {
    SHIPPED.iter().map(|text| parse(text)).collect()
}

fn parse(text: &str) -> Result<PaperTable, ShippedError> {
    let table: PaperTable = toml::from_str(text).map_err(ShippedError::Paper)?;
    match table.check() {
        Ok(()) => Ok(table),
        Err(error) => Err(ShippedError::PaperTable { name: table.name, error }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_that_joj_brings_is_sound_and_has_a_name_of_its_own() {
        let tables = all().unwrap();
        let names: std::collections::BTreeSet<&str> =
            tables.iter().map(|table| table.name.as_str()).collect();
        assert_eq!(names.len(), SHIPPED.len());
    }

    #[test]
    fn a_slip_of_the_pen_is_told_with_its_line() {
        let text = SHIPPED[0].replacen("metric = \"writes\"", "metric = \"wrties\"", 1);
        let message = parse(&text).unwrap_err().to_string();
        assert!(message.contains("line") && message.contains("wrties"), "{message}");
        let text = SHIPPED[0].replacen("{ writes = 3,", "{ write = 3,", 1);
        assert!(parse(&text).unwrap_err().to_string().contains("atc13-fig3: row \"EXT4\""));
    }
}
