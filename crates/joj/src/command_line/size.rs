//! Sizes, as options have them.

/// Bytes of a size like `8GiB`, `4KiB` or, as fio has it, `4k`.
/// # Errors
/// Where it is none.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let units = [("KiB", 10), ("MiB", 20), ("GiB", 30), ("TiB", 40), ("k", 10), ("m", 20), ("g", 30)];
    let found = units.iter().find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, 1_u64 << shift)));
    let (number, unit_bytes) = found.unwrap_or((text, 1));
    let bytes = number.trim().parse::<u64>().ok().and_then(|number| number.checked_mul(unit_bytes));
    bytes.ok_or_else(|| format!("`{text}` is no size; write it like 500MiB, 8GiB, 0"))
}

/// A size that is not longer than a process may allocate with ease.
/// # Errors
/// Where it is none, or 0, or longer.
pub fn parse_record(text: &str) -> Result<u64, String> {
    let bytes = parse_bytes(text)?;
    let is_record = (1..=64 << 20).contains(&bytes);
    if is_record { Ok(bytes) } else { Err(format!("`{text}` is no size from 1 byte to 64MiB")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(
            ["0", "512", "4KiB", "4k", "500MiB", "1g"].map(parse_bytes),
            [0, 512, 4096, 4096, 500 << 20, 1 << 30].map(Ok)
        );
        for wrong in ["", "k", "GiB", "4kb", "5MB", "-1", "1.5MiB", "99999999999TiB"] {
            assert!(parse_bytes(wrong).unwrap_err().contains("no size"), "{wrong}");
        }
        assert!(parse_record("0").is_err() && parse_record("1g").is_err() && parse_record("1m").is_ok());
    }
}
