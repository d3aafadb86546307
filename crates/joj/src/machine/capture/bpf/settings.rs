//! What the eBPF programs are told before they are loaded, in the bytes of `struct settings` (bpf/settings.h).

use std::fs::File;
use std::io::{BufRead, BufReader};

use crate::machine::capture::bpf::calls;
use crate::machine::capture::selection::Selection;

/// Bytes of the struct.
const BYTES: usize = 568;
const CALLS_AT: usize = 56;
/// Filesystems' sync routines whose end no tracepoint tells.
pub const ENDS: usize = 3;
/// The routines that the kernel calls when a bio is complete, in the order of the struct's fields.
const COMPLETION_ROUTINES: [&str; 5] = [
    "iomap_dio_bio_end_io",
    "end_bio_bh_io_sync",
    "xlog_bio_end_io",
    "xfs_buf_bio_end_io",
    "btrfs_simple_end_io",
];

/// The struct, and what is amiss with it.
pub struct Settings {
    /// The struct's bytes, as the programs' object has them.
    pub bytes: Vec<u8>,
    /// What the programs will not know, and how to mend that.
    pub note: Option<&'static str>,
}

impl Settings {
    /// `can_cast`: the kernel has the function `bpf_rdonly_cast`. `ends`: where the end of a sync is seen.
    pub fn new(selection: &Selection, can_cast: bool, ends: [bool; ENDS]) -> Self {
        let mut bytes = Vec::with_capacity(BYTES);
        bytes.extend((rustix::param::page_size() as u64).to_ne_bytes());
        let addresses = addresses();
        for address in addresses {
            bytes.extend(address.to_ne_bytes());
        }
        bytes.push(u8::from(!selection.devices.is_empty()));
        bytes.push(u8::from(selection.log_contents));
        bytes.push(u8::from(can_cast));
        bytes.extend(ends.map(u8::from));
        bytes.resize(BYTES, 0);
        calls::fill(&mut bytes[CALLS_AT..]);
        // The block layer itself has the second of them: every kernel does.
        let note = (addresses[1] == 0).then_some(
            "/proc/kallsyms shows no addresses, so direct I/O has no file, and journal blocks and XFS's buffers no content: \
             run joj as root or grant it cap_syslog, and `sysctl kernel.kptr_restrict=1` where that is 2",
        );
        Self { bytes, note }
    }
}

/// Where the routines are; 0 for what the kernel has not or does not show.
fn addresses() -> [u64; COMPLETION_ROUTINES.len()] {
    let mut found = [0; COMPLETION_ROUTINES.len()];
    let Ok(file) = File::open("/proc/kallsyms") else { return found };
    for line in BufReader::new(file).lines() {
        let Ok(line) = line else { break };
        let Some((address, name)) = symbol(&line) else { continue };
        if let Some(index) = COMPLETION_ROUTINES.iter().position(|routine| *routine == name) {
            found[index] = address;
        }
    }
    found
}

/// `ffffffff81765d30 T iomap_dio_bio_end_io [iomap]`: the address and the name.
fn symbol(line: &str) -> Option<(u64, &str)> {
    let mut words = line.split_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok()?;
    words.next()?;
    words.next().map(|name| (address, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_of_kernel_and_modules_are_read() {
        assert_eq!(symbol("ffffffff81765d30 T a_b"), Some((0xffff_ffff_8176_5d30, "a_b")));
        assert_eq!(symbol("ffffffffc0000000 t a_b\t[xfs]"), Some((0xffff_ffff_c000_0000, "a_b")));
        assert_eq!((symbol(""), symbol("x t y"), symbol("0")), (None, None, None));
    }

    #[test]
    fn the_struct_has_its_length_and_fields_their_places() {
        let selection = Selection { log_contents: true, ..Selection::default() };
        let bytes = Settings::new(&selection, false, [true, false, true]).bytes;
        assert_eq!((bytes.len(), &bytes[48..54]), (BYTES, &[0, 1, 0, 1, 0, 1][..]));
        let fsync = usize::try_from(libc::SYS_fsync).expect("small");
        assert_eq!(calls::name(bytes[CALLS_AT + fsync]), "fsync");
    }
}
