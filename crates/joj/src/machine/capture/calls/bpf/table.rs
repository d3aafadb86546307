//! What the eBPF programs are told before they are loaded, in the bytes of `struct recording_settings` (bpf/recording.bpf.c).

use joj_analysis::recording::system_calls::captured::called::{BehindPointer, CalledName};

use crate::machine::capture::calls::numbers;

const CALL_NUMBERS: usize = 512;

/// Bits of a call's entry; the code stands below them.
const NEEDS_FILE: u32 = 1 << 8;
const HAS_DESCRIPTOR: u32 = 1 << 9;
const ONLY_COUNTED: u32 = 1 << 10;
const OPENS: u32 = 1 << 11;
const READS: u32 = 1 << 12;
const WRITES: u32 = 1 << 13;
const PLACED: u32 = 1 << 14;
const FIRST_PATH: u32 = 16;
const SECOND_PATH: u32 = 19;
const MEMORY: u32 = 22;
const MEMORY_ARGUMENT: u32 = 25;

/// The struct's bytes. `parent`: whose child is followed from the program on that it runs; 0 for nobody's.
/// `wake_bytes`: of what waits for joj before it is woken.
pub fn bytes(parent: u32, wake_bytes: u32) -> Vec<u8> {
    let mut entries = vec![0_u32; CALL_NUMBERS];
    for (number, called) in numbers::all() {
        if let Some(entry) = entries.get_mut(number as usize) {
            *entry = entry_of(called);
        }
    }
    let ((mode, size), (x_mode, x_size)) = (numbers::STATUS_PLACES, numbers::STATUS_X_PLACES);
    let places = [mode, size, x_mode, x_size].map(|place| u32::try_from(place).unwrap_or(0));
    let words = [parent].into_iter().chain(places).chain([wake_bytes]).chain(entries);
    words.flat_map(u32::to_ne_bytes).collect()
}

fn entry_of(called: CalledName) -> u32 {
    let bit = |is_set: bool, bit: u32| if is_set { bit } else { 0 };
    let path = |index: Option<usize>| index.and_then(|index| u32::try_from(index + 1).ok()).unwrap_or(0);
    let [first, second] = called.path_arguments();
    let (memory, argument) = match called.behind_pointer() {
        BehindPointer::Nothing => (0, 0),
        BehindPointer::Vector => (1, 1),
        BehindPointer::OpenHow => (2, 2),
        BehindPointer::Status(index) => (3, index),
        BehindPointer::StatusX(index) => (4, index),
        BehindPointer::Lock => (5, 2),
        BehindPointer::Address => (6, 1),
    };
    u32::from(called.code())
        | bit(called.needs_a_file(), NEEDS_FILE)
        | bit(called.is_on_a_descriptor(), HAS_DESCRIPTOR)
        | bit(called.is_only_counted(), ONLY_COUNTED)
        | bit(called.opens(), OPENS)
        | bit(called.reads(), READS)
        | bit(called.writes(), WRITES)
        | bit(called.offset_argument().is_some(), PLACED)
        | path(first) << FIRST_PATH
        | path(second) << SECOND_PATH
        | memory << MEMORY
        | u32::from(argument) << MEMORY_ARGUMENT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_struct_has_its_length_and_calls_their_entries() {
        let bytes = bytes(7, 0);
        assert_eq!((bytes.len(), &bytes[..4]), (2072, &7_u32.to_ne_bytes()[..]));
        let rename = entry_of(CalledName::Renameat2);
        assert_eq!((rename >> FIRST_PATH & 7, rename >> SECOND_PATH & 7), (2, 4));
        assert_eq!(
            entry_of(CalledName::Pwritev2) & (NEEDS_FILE | WRITES | READS | PLACED),
            NEEDS_FILE | WRITES | PLACED
        );
    }
}
