//! Small words that the text formats share: what a request does, device numbers, times.

use crate::trace::event::{DeviceNumber, Operation, RequestFlags};
use crate::trace::ftrace::rwbs;
use crate::trace::import::error::LineProblem;

/// What letters like `FWFSM` say; `None` where they are no such word.
pub fn operation_and_flags(letters: &str, bytes: u64) -> Option<(Operation, RequestFlags)> {
    let (mut operation, flags, is_known) = rwbs::read(letters.as_bytes(), bytes);
    is_known.then_some(())?;
    // An empty bio with PREFLUSH is how a filesystem asks for a flush: FN, FWS.
    if bytes == 0 && flags.has(RequestFlags::PREFLUSH) {
        operation = Operation::Flush;
    }
    Some((operation, flags))
}

/// `8,1`, `(8,1)` and `8:1`.
pub fn device(text: &str) -> Option<DeviceNumber> {
    let text = text.strip_prefix('(').and_then(|text| text.strip_suffix(')')).unwrap_or(text);
    let (major, minor) = text.split_once([',', ':'])?;
    DeviceNumber::new(major.parse().ok()?, minor.trim().parse().ok()?)
}

/// Nanoseconds of `12.000123` or `12.000123456`: seconds and a fraction of up to nine digits.
pub fn time_ns(text: &str) -> Option<u64> {
    let (seconds, fraction) = text.split_once('.')?;
    let all_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !all_digits(seconds) || !all_digits(fraction) || fraction.len() > 9 {
        return None;
    }
    let digits = u32::try_from(fraction.len()).ok()?;
    let nanoseconds = fraction.parse::<u64>().ok()?.checked_mul(10u64.pow(9 - digits))?;
    seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(nanoseconds)
}

/// Bytes of a number of sectors.
pub fn bytes_of(sectors: u64) -> Option<u64> {
    sectors.checked_mul(crate::trace::event::SECTOR_BYTES)
}

/// What is wrong with a part that is not what it should be.
pub fn is_no(found: &str, wanted: &'static str) -> LineProblem {
    LineProblem::IsNo { found: excerpt(found), wanted }
}

/// Shortens a line for a message.
pub fn excerpt(line: &str) -> String {
    let mut cut =
        line.chars().take(120).map(|letter| if letter.is_control() { '?' } else { letter }).collect();
    if line.chars().nth(120).is_some() {
        cut += " ..";
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_read_as_blkparse_and_the_kernel_write_them() {
        use Operation::{Discard, Flush, Other, Read, Write, WriteZeroes};
        let (sync, metadata, fua, preflush) =
            (RequestFlags::SYNC, RequestFlags::METADATA, RequestFlags::FUA, RequestFlags::PREFLUSH);
        let none = RequestFlags::default();
        for (letters, bytes, operation, flags) in [
            ("R", 512, Read, none),
            ("RAM", 512, Read, RequestFlags::READ_AHEAD.with(metadata)),
            ("WS", 512, Write, sync),
            ("FWFSM", 4096, Write, preflush.with(fua).with(sync).with(metadata)),
            ("WFS", 4096, Write, fua.with(sync)),
            ("FWS", 4096, Write, preflush.with(sync)),
            ("FWS", 0, Flush, preflush.with(sync)),
            ("FN", 0, Flush, preflush),
            ("FF", 0, Flush, preflush),
            ("F", 0, Flush, none),
            ("FS", 0, Flush, sync),
            ("D", 512, Discard, none),
            ("DE", 512, Other, none),
            ("DS", 512, Discard, sync),
            ("WZS", 512, WriteZeroes, sync),
            ("N", 0, Other, none),
            ("N", 4096, WriteZeroes, none),
            ("ZR", 0, Other, none),
        ] {
            assert_eq!(operation_and_flags(letters, bytes), Some((operation, flags)), "{letters}");
        }
        for wrong in ["", "S", "W+", "WX", "w"] {
            assert_eq!(operation_and_flags(wrong, 1), None, "{wrong}");
        }
    }

    #[test]
    fn times_and_devices_have_one_reading() {
        assert_eq!([time_ns("1.5"), time_ns("12.000123")], [Some(1_500_000_000), Some(12_000_123_000)]);
        for wrong in ["1", "1.", ".5", "-1.0", "1.0000000001", "99999999999999999.0", "1.+5"] {
            assert_eq!(time_ns(wrong), None, "{wrong}");
        }
        assert_eq!([device("8,1"), device("(8,1)"), device("8:1")], [DeviceNumber::new(8, 1); 3]);
        assert_eq!([device("8"), device("8,"), device("5000,1")], [None; 3]);
    }
}
