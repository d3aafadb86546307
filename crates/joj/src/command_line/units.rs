//! Sizes and times, as options have them.

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

/// Seconds of a run.
/// # Errors
/// Where it is none, or too short or too long.
pub fn parse_seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.05..=600.0).contains(seconds));
    seconds.ok_or_else(|| format!("`{text}` is no time from 0.05 to 600 seconds"))
}

/// Nanoseconds of a time like `2ms` or `500us`.
/// # Errors
/// Where it is none, or too short or too long.
pub fn parse_delay(text: &str) -> Result<u64, String> {
    let in_ms = text.strip_suffix("ms").map(|number| (number, 1_000_000));
    let (number, unit_ns) =
        in_ms.or(text.strip_suffix("us").map(|number| (number, 1_000))).unwrap_or((text, 0));
    let time_ns = number.parse().ok().and_then(|number: u64| number.checked_mul(unit_ns));
    time_ns
        .filter(|time_ns| (10_000..=1_000_000_000).contains(time_ns))
        .ok_or_else(|| format!("`{text}` is no time from 10us to 1000ms; write it like 2ms or 500us"))
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

    #[test]
    fn times_have_a_unit_and_bounds() {
        assert_eq!([parse_delay("2ms"), parse_delay("500us")], [Ok(2_000_000), Ok(500_000)]);
        for wrong in ["2", "ms", "0ms", "5us", "2s", "1.5ms", "1001ms", "-1ms"] {
            assert!(parse_delay(wrong).is_err(), "{wrong}");
        }
        assert!(parse_seconds("0.2").is_ok() && parse_seconds("0").is_err() && parse_seconds("nan").is_err());
    }
}
