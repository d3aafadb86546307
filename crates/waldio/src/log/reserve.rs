//! How far ahead of the frames the log file must exist. Arithmetic only.
//!
//!   first commit  nothing: its own sync makes the file as long as it is
//!   second        32 KiB, in its own sync
//!   then          four times what is used, each time half of the file is used; from half the working size on,
//!                 all of it
//!   past it       1 MiB steps when 64 KiB are left: a default checkpoint cycle (1,000 frames of 4,120 bytes) ends
//!                 74,272 bytes before 4 MiB, so the usual log never grows past its working size
//!
//! A database that is opened, written once and closed thus never pays for a large log.

/// What a log is given with its second commit, in bytes.
pub const FIRST_BYTES: u64 = 32 << 10;
/// How much of a log is made, in terms of what is used. Databases that are opened, written and closed pay for what they
/// do not use: 50 inserts took 35 ms with 16, and 22 ms with 4 (stock 33 ms, ext4 on a virtio disk; 2 was like 4).
const GROWTH: u64 = 4;
/// The default working size of a log, in bytes.
pub const LOG_BYTES_DEFAULT: u64 = 4 << 20;
/// Growth past the working size, in bytes.
pub const STEP_BYTES: u64 = 1 << 20;
/// What must be left of a log that has its working size before it grows, in bytes.
pub const MARGIN_BYTES: u64 = 64 << 10;

const _: () = assert!(LOG_BYTES_DEFAULT - MARGIN_BYTES > 32 + 1000 * 4120);

/// The size the file should have now that `used_bytes` of its `file_bytes` hold frames; `None` while it is enough.
/// `log_bytes` is the working size; `limit_bytes` the user's `journal_size_limit`, past which nothing is reserved.
pub fn next_size(used_bytes: u64, file_bytes: u64, log_bytes: u64, limit_bytes: Option<u64>) -> Option<u64> {
    let free_bytes = file_bytes.saturating_sub(used_bytes);
    let wanted_bytes = if file_bytes < log_bytes {
        if free_bytes > file_bytes / 2 {
            return None;
        }
        let grown_bytes = used_bytes.saturating_mul(GROWTH).max(FIRST_BYTES);
        if grown_bytes >= log_bytes / 2 { log_bytes.max(used_bytes) } else { grown_bytes }
    } else {
        if free_bytes > MARGIN_BYTES {
            return None;
        }
        file_bytes.saturating_add(STEP_BYTES)
    };
    let wanted_bytes = wanted_bytes.next_multiple_of(64 << 10);
    let allowed_bytes = limit_bytes.map_or(wanted_bytes, |limit| limit.min(wanted_bytes));
    (allowed_bytes > file_bytes).then_some(allowed_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes frame by frame and lets the file grow whenever `next_size` says so.
    fn sizes(frames: u64, log_bytes: u64, limit_bytes: Option<u64>) -> Vec<u64> {
        let mut sizes = vec![FIRST_BYTES.min(log_bytes)];
        for frame in 1..=frames {
            let used_bytes = 32 + frame * 4120;
            let file_bytes = sizes[sizes.len() - 1].max(used_bytes);
            if let Some(size) = next_size(used_bytes, file_bytes, log_bytes, limit_bytes) {
                sizes.push(size);
            }
        }
        sizes
    }

    #[test]
    fn a_default_cycle_doubles_up_to_its_working_size() {
        let sizes = sizes(1000, LOG_BYTES_DEFAULT, None);
        assert_eq!(sizes.last(), Some(&LOG_BYTES_DEFAULT));
        assert!((5..9).contains(&sizes.len()), "{sizes:?}");
    }

    #[test]
    fn one_written_transaction_reserves_nothing_more() {
        assert_eq!(sizes(3, LOG_BYTES_DEFAULT, None), [FIRST_BYTES]);
    }

    #[test]
    fn a_log_past_its_working_size_grows_by_steps() {
        assert_eq!(
            next_size(LOG_BYTES_DEFAULT - 1, LOG_BYTES_DEFAULT, LOG_BYTES_DEFAULT, None),
            Some(5 << 20)
        );
        assert_eq!(next_size(0, LOG_BYTES_DEFAULT, LOG_BYTES_DEFAULT, None), None);
        let left = |bytes| next_size(LOG_BYTES_DEFAULT - bytes, LOG_BYTES_DEFAULT, LOG_BYTES_DEFAULT, None);
        assert_eq!((left(MARGIN_BYTES + 1), left(MARGIN_BYTES)), (None, Some(5 << 20)));
    }

    #[test]
    fn a_log_grows_when_no_more_than_half_of_it_is_left() {
        let used = |bytes| next_size(bytes, 256 << 10, LOG_BYTES_DEFAULT, None);
        assert_eq!((used((128 << 10) - 1), used(128 << 10)), (None, Some(512 << 10)));
        assert_eq!(used(LOG_BYTES_DEFAULT / 8 - 4), Some(LOG_BYTES_DEFAULT / 2));
        assert_eq!(used(LOG_BYTES_DEFAULT / 8), Some(LOG_BYTES_DEFAULT), "from half of it on, all");
    }

    #[test]
    fn nothing_is_reserved_past_the_users_limit() {
        let limit_bytes = 1 << 20;
        assert!(sizes(1000, LOG_BYTES_DEFAULT, Some(limit_bytes)).iter().all(|size| *size <= limit_bytes));
    }

    #[test]
    fn hostile_numbers_do_not_overflow() {
        assert!(next_size(u64::MAX / 8, u64::MAX / 8, u64::MAX / 2, None).is_some());
        assert_eq!(next_size(5, 0, 0, None), Some(STEP_BYTES));
    }
}
