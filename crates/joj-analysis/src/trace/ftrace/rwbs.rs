//! The letters in which block events say what a request does: `FWFSM` is a journal's commit block.
//!
//! ```text
//! [F preflush] [W write, R read, D discard, DE secure erase, F flush, WZ write zeroes, Z. zones, N other] [F fua] [A S M U]
//! ```
//!
//! Source: blkparse(1), "RWBS DESCRIPTION"; what newer kernels print besides was observed.

use crate::trace::event::{Operation, RequestFlags};

/// What the letters of a request of so many bytes say. The third is false where joj does not know all of them; those it passes over.
pub fn read(letters: &[u8], bytes: u64) -> (Operation, RequestFlags, bool) {
    let mut flags = RequestFlags::default();
    let mut rest = letters;
    // A flush without an operation behind it is the operation itself.
    if rest.first() == Some(&b'F') && rest.get(1).is_some_and(|next| b"WRDNZF".contains(next)) {
        flags = flags.with(RequestFlags::PREFLUSH);
        rest = &rest[1..];
    }
    let (operation, length) = match rest {
        [b'W', b'Z', ..] => (Operation::WriteZeroes, 2),
        [b'W', ..] => (Operation::Write, 1),
        [b'R', ..] => (Operation::Read, 1),
        [b'D', b'E', ..] => (Operation::Other, 2),
        [b'D', ..] => (Operation::Discard, 1),
        [b'F', ..] => (Operation::Flush, 1),
        // A zone append writes where the zone ends.
        [b'Z', b'A', ..] => (Operation::Write, 2),
        [b'Z', _, ..] => (Operation::Other, 2),
        // Linux 6.18 has no letters of its own for zeroes that the device makes. A driver's commands, which have these too, have no bytes.
        [b'N', ..] if bytes > 0 => (Operation::WriteZeroes, 1),
        [] => (Operation::Other, 0),
        _ => (Operation::Other, 1),
    };
    let mut is_known = rest.first().is_some_and(|letter| b"RWDNFZ".contains(letter));
    for letter in &rest[length..] {
        flags = flags.with(match letter {
            b'F' => RequestFlags::FUA,
            b'A' => RequestFlags::READ_AHEAD,
            b'S' => RequestFlags::SYNC,
            b'M' => RequestFlags::METADATA,
            other => {
                is_known &= *other == b'U';
                continue;
            }
        });
    }
    (operation, flags, is_known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_mean_what_they_stand_for_by_their_place() {
        let all = |flags: &[RequestFlags]| flags.iter().fold(RequestFlags(0), |sum, flag| sum.with(*flag));
        let (preflush, fua, sync) = (RequestFlags::PREFLUSH, RequestFlags::FUA, RequestFlags::SYNC);
        for (letters, operation, flags) in [
            ("W", Operation::Write, vec![]),
            ("FWFSM", Operation::Write, vec![preflush, fua, sync, RequestFlags::METADATA]),
            ("FWS", Operation::Write, vec![preflush, sync]),
            ("WFS", Operation::Write, vec![fua, sync]),
            ("FF", Operation::Flush, vec![preflush]),
            ("F", Operation::Flush, vec![]),
            ("FS", Operation::Flush, vec![sync]),
            ("RA", Operation::Read, vec![RequestFlags::READ_AHEAD]),
            ("RSM", Operation::Read, vec![sync, RequestFlags::METADATA]),
            ("DS", Operation::Discard, vec![sync]),
            ("DE", Operation::Other, vec![]),
            ("WZS", Operation::WriteZeroes, vec![sync]),
            ("ZR", Operation::Other, vec![]),
            ("N", Operation::Other, vec![]),
            ("", Operation::Other, vec![]),
        ] {
            let is_known = !letters.is_empty();
            assert_eq!(read(letters.as_bytes(), 0), (operation, all(&flags), is_known), "{letters}");
        }
        let none = RequestFlags::default();
        assert_eq!(read(b"N", 4096), (Operation::WriteZeroes, none, true));
        assert_eq!(read(b"W+", 4096), (Operation::Write, none, false));
    }
}
