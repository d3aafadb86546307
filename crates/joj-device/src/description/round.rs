//! A device of round numbers, for tests whose expected times are written out.

use super::{BusCosts, CacheCosts, Description, Flash};

const US: u64 = 1_000;
const BLOCK: u64 = 4096;

/// Command 100 us, transfer 10 us per 4 KiB, read 50 us, program 200 us, erase 2 ms; in place, no cache, one unit, one request at a time.
pub fn plain() -> Description {
    let mut description = Description::named("ram").unwrap();
    description.bus = BusCosts {
        read_command_ns: 100 * US,
        write_command_ns: 100 * US,
        trim_command_ns: 70 * US,
        read_transfer_ns: 10 * US,
        write_transfer_ns: 10 * US,
        queue_depth: 1,
        packed_writes_max: 1,
    };
    description.flash = Flash {
        unit_bytes: BLOCK,
        page_bytes: BLOCK,
        parallel_units: 1,
        read_ns: 50 * US,
        program_ns: 200 * US,
        erase_ns: 2000 * US,
    };
    description
}

/// A volatile cache of `blocks`, with FUA; a flush takes `flush_us` beside its programs.
pub fn cache(blocks: u64, flush_us: u64) -> CacheCosts {
    CacheCosts { bytes: blocks * BLOCK, flush_ns: flush_us * US, fua: true, fua_ns: 5 * US }
}
