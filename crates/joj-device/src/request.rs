//! What a host asks of the device.

use thiserror::Error;

/// Block in which data is kept and torn: what filesystems write.
pub const BLOCK_BYTES: u64 = 4096;
/// The smallest piece that a request may name, and that a medium writes whole.
pub const SECTOR_BYTES: u64 = 512;

/// The command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RequestKind {
    /// Data to the host.
    Read,
    /// Data from the host; with `fua` (force unit access) it is durable at its completion.
    Write {
        /// Past the volatile cache.
        fua: bool,
    },
    /// Everything that was submitted before is durable at its completion. Its length is zero, and so is its offset, but in a log of two devices
    /// ([`History::of_two`](crate::crash::History::of_two)).
    Flush,
    /// The host does not need these bytes any more; here they read as zeros afterwards.
    Trim,
    /// These bytes read as zeros afterwards, which no data is sent for.
    WriteZeroes {
        /// Past the volatile cache.
        fua: bool,
    },
}

/// One request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Request {
    /// The command.
    pub kind: RequestKind,
    /// First byte; a multiple of [`SECTOR_BYTES`].
    pub offset_bytes: u64,
    /// Bytes from there; a multiple of [`SECTOR_BYTES`].
    pub len_bytes: u64,
}

/// Why a device does not carry out a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Refusal {
    /// It begins or ends within a sector, or has no bytes.
    #[error("{len_bytes} bytes at {offset_bytes}: not whole sectors of {} bytes", SECTOR_BYTES)]
    NoSectors {
        /// Where it begins.
        offset_bytes: u64,
        /// How long it is.
        len_bytes: u64,
    },
    /// It ends where the device has no bytes.
    #[error("{len_bytes} bytes at {offset_bytes}: past the device's end at {capacity_bytes} bytes")]
    PastEnd {
        /// Where it begins.
        offset_bytes: u64,
        /// How long it is.
        len_bytes: u64,
        /// The device's size.
        capacity_bytes: u64,
    },
}

impl Request {
    /// Reads `len_bytes` from `offset_bytes`.
    pub const fn read(offset_bytes: u64, len_bytes: u64) -> Self {
        Request { kind: RequestKind::Read, offset_bytes, len_bytes }
    }

    /// Writes `len_bytes` at `offset_bytes`, through the volatile cache.
    pub const fn write(offset_bytes: u64, len_bytes: u64) -> Self {
        Request { kind: RequestKind::Write { fua: false }, offset_bytes, len_bytes }
    }

    /// Writes `len_bytes` at `offset_bytes`, durably.
    pub const fn write_fua(offset_bytes: u64, len_bytes: u64) -> Self {
        Request { kind: RequestKind::Write { fua: true }, offset_bytes, len_bytes }
    }

    /// Empties the volatile cache.
    pub const fn flush() -> Self {
        Request { kind: RequestKind::Flush, offset_bytes: 0, len_bytes: 0 }
    }

    /// Why a device of `capacity_bytes` cannot carry this out, if it cannot.
    pub fn refusal(&self, capacity_bytes: u64) -> Option<Refusal> {
        let Request { kind, offset_bytes, len_bytes } = *self;
        if kind == RequestKind::Flush {
            return None;
        }
        if len_bytes == 0 || offset_bytes % SECTOR_BYTES != 0 || len_bytes % SECTOR_BYTES != 0 {
            return Some(Refusal::NoSectors { offset_bytes, len_bytes });
        }
        let inside = offset_bytes.checked_add(len_bytes).is_some_and(|end| end <= capacity_bytes);
        (!inside).then_some(Refusal::PastEnd { offset_bytes, len_bytes, capacity_bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_sectors_inside_the_device_are_accepted() {
        assert_eq!(Request::read(0, 4096).refusal(4096), None);
        assert_eq!(Request::flush().refusal(0), None);
        for (offset_bytes, len_bytes) in [(0, 0), (1, 512), (0, 511), (512, 4096), (u64::MAX - 511, 512)] {
            let request = Request::write(offset_bytes, len_bytes);
            assert!(request.refusal(4096).is_some(), "{request:?} was accepted");
        }
    }
}
