//! The letters in which block events say what a request does: `FWFSM` is a journal's commit block.
//!
//! ```text
//! [F preflush] [W write, R read, D discard, DE secure erase, F flush, WZ write zeroes, Z. zones, N other] [F fua] [A S M U]
//! ```
//!
//! Source: blkparse(1), "RWBS DESCRIPTION"; what newer kernels print besides was observed.

use crate::trace::event::{Operation, RequestFlags};

/// What the letters say. Unknown ones are passed over.
pub fn read(letters: &[u8]) -> (Operation, RequestFlags) {
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
        [] => (Operation::Other, 0),
        _ => (Operation::Other, 1),
    };
    for letter in &rest[length..] {
        flags = flags.with(match letter {
            b'F' => RequestFlags::FUA,
            b'A' => RequestFlags::READ_AHEAD,
            b'S' => RequestFlags::SYNC,
            b'M' => RequestFlags::METADATA,
            _ => continue,
        });
    }
    (operation, flags)
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
            assert_eq!(read(letters.as_bytes()), (operation, all(&flags)), "{letters}");
        }
    }
}
