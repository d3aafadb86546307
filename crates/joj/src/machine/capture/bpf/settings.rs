//! What the eBPF programs are told before they are loaded, in the bytes of `struct settings` (bpf/settings.h).

use std::fs::File;
use std::io::{BufRead, BufReader};

use crate::machine::capture::bpf::calls;
use crate::machine::capture::selection::Selection;

/// Bytes of the struct.
const BYTES: usize = 1096;
const CALLS_AT: usize = 72;
const COMPAT_CALLS_AT: usize = 584;
/// Filesystems' sync routines whose end no tracepoint tells.
pub const ENDS: usize = 3;
/// The routines that the kernel calls when a bio is complete, in the order of the struct's fields.
const COMPLETION_ROUTINES: [&str; 7] = [
    "iomap_dio_bio_end_io",
    "end_bio_bh_io_sync",
    "xlog_bio_end_io",
    "xfs_buf_bio_end_io",
    "btrfs_simple_end_io",
    "btrfs_clone_write_end_io",
    "btrfs_orig_write_end_io",
];

/// Of a line of /proc/kallsyms: the address, a space, one letter, a space and the name.
const ADDRESS_DIGITS: usize = 16;
const NAME_AT: usize = ADDRESS_DIGITS + 3;

/// Where they are; 0 for what the kernel has not or does not show.
#[derive(Debug, Default)]
pub struct CompletionRoutines([u64; COMPLETION_ROUTINES.len()]);

/// The struct, and what is amiss with it.
pub struct Settings {
    /// The struct's bytes, as the programs' object has them.
    pub bytes: Vec<u8>,
    /// What the programs will not know, and how to mend that.
    pub note: Option<&'static str>,
}

impl Settings {
    /// `can_cast`: the kernel has the function `bpf_rdonly_cast`. `ends`: where the end of a sync is seen.
    pub fn new(
        selection: &Selection,
        routines: &CompletionRoutines,
        can_cast: bool,
        ends: [bool; ENDS],
    ) -> Self {
        let mut bytes = Vec::with_capacity(BYTES);
        bytes.extend((rustix::param::page_size() as u64).to_ne_bytes());
        for address in routines.0 {
            bytes.extend(address.to_ne_bytes());
        }
        bytes.push(u8::from(!selection.devices.is_empty()));
        bytes.push(u8::from(selection.log_contents));
        bytes.push(u8::from(can_cast));
        bytes.extend(ends.map(u8::from));
        bytes.resize(BYTES, 0);
        let (own, compat) = bytes[CALLS_AT..].split_at_mut(COMPAT_CALLS_AT - CALLS_AT);
        calls::fill(own, compat);
        // The block layer itself has the second of them: every kernel does.
        let note = (routines.0[1] == 0).then_some(
            "/proc/kallsyms shows no addresses, so direct I/O has no file, and journal blocks and XFS's buffers no content: \
             run joj as root or grant it cap_syslog, and `sysctl kernel.kptr_restrict=1` where that is 2",
        );
        Self { bytes, note }
    }
}

impl CompletionRoutines {
    /// Looks for them in /proc/kallsyms.
    pub fn of_this_kernel() -> Self {
        let mut found = Self::default();
        let Ok(file) = File::open("/proc/kallsyms") else { return found };
        let (mut reader, mut line) = (BufReader::new(file), Vec::new());
        while reader.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
            if let Some((address, index)) = routine(&line) {
                found.0[index] = address;
            }
            line.clear();
        }
        found
    }
}

/// `ffffffff81765d30 T iomap_dio_bio_end_io [iomap]`: the address, and which routine it is. There are more than 100,000 of these lines, so a
/// name is looked for where a 64-bit kernel has it.
fn routine(line: &[u8]) -> Option<(u64, usize)> {
    let name = line.get(NAME_AT..)?;
    let is_it = |routine: &&str| {
        let rest = name.strip_prefix(routine.as_bytes());
        rest.is_some_and(|rest| rest.first().is_none_or(u8::is_ascii_whitespace))
    };
    let index = COMPLETION_ROUTINES.iter().position(is_it)?;
    let address = std::str::from_utf8(&line[..ADDRESS_DIGITS]).ok()?;
    Some((u64::from_str_radix(address, 16).ok()?, index))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routines_of_kernel_and_modules_are_found() {
        let of = |line: &str| routine(line.as_bytes());
        assert_eq!(of("ffffffff81765d30 T iomap_dio_bio_end_io\n"), Some((0xffff_ffff_8176_5d30, 0)));
        assert_eq!(of("ffffffffc0000000 t xlog_bio_end_io\t[xfs]\n"), Some((0xffff_ffff_c000_0000, 2)));
        assert_eq!(of("ffffffffc0000000 t btrfs_simple_end_io"), Some((0xffff_ffff_c000_0000, 4)));
        assert_eq!(of("ffffffffc0000000 t btrfs_simple_end_io_work\n"), None);
        assert_eq!(["", "x t y", "gfffffff81765d30 T iomap_dio_bio_end_io"].map(of), [None; 3]);
    }

    #[test]
    fn the_struct_has_its_length_and_fields_their_places() {
        let selection = Selection { log_contents: true, ..Selection::default() };
        let bytes =
            Settings::new(&selection, &CompletionRoutines::default(), false, [true, false, true]).bytes;
        assert_eq!((bytes.len(), &bytes[CALLS_AT - 8..CALLS_AT - 2]), (BYTES, &[0, 1, 0, 1, 0, 1][..]));
        let fsync = usize::try_from(libc::SYS_fsync).expect("small");
        assert_eq!(calls::name(bytes[CALLS_AT + fsync]), "fsync");
    }
}
