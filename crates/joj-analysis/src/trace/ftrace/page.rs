//! A page of a ring buffer, as `per_cpu/cpuN/trace_pipe_raw` hands it out.
//!
//! ```text
//! | time u64 | commit: bytes in use, bit 31: some were lost before, bit 30: how many stands behind the last | records .. |
//! record   | u32: type_len 5 bits, time since the one before 27 bits | data |
//! type_len  1..=28: data of 4 x type_len bytes   0: u32 length (itself included), data
//!           29: not in use, u32 length   30: a longer time, u32 x 2^27   31: the whole time, u32 x 2^27
//! ```
//!
//! Bits as little-endian kernels put them. Source: `events/header_event`, the kernel's Documentation/trace/ring-buffer-design.rst.

use crate::trace::ftrace::error::FtraceError;
use crate::trace::ftrace::format::PageLayout;

const LOST_BEFORE: u64 = 1 << 31;
const LOST_COUNTED: u64 = 1 << 30;
/// The 27 bits of a time in a record's head, and where a longer one goes on.
const TIME_BITS: u32 = 27;
/// What a whole time cannot hold of a clock: its highest five bits stay those of the page.
const WHOLE_TIME_BITS: u32 = 59;

/// What was lost before a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lost {
    /// No record is missing.
    None,
    /// So many records are missing.
    Counted(u64),
    /// The kernel does not say how many.
    Unknown,
}

/// A page's records.
#[derive(Debug, Clone)]
pub struct Page<'a> {
    rest: &'a [u8],
    time_ns: u64,
    lost: Lost,
    damaged: bool,
}

impl<'a> Page<'a> {
    /// Begins to read a page.
    /// # Errors
    /// What is wrong with its head.
    pub fn new(bytes: &'a [u8], layout: &PageLayout) -> Result<Self, FtraceError> {
        let head = bytes.get(..layout.data_offset);
        let head = head.ok_or(FtraceError::ShortPage(bytes.len()))?;
        let time_ns = word(head, 0, 8).unwrap_or(0);
        let commit = word(head, layout.commit_offset, layout.commit_size).unwrap_or(0);
        let used = usize::try_from(commit & (LOST_COUNTED - 1)).unwrap_or(usize::MAX);
        let data = bytes.get(layout.data_offset..layout.data_offset.saturating_add(used));
        let data = data.ok_or(FtraceError::OverfullPage { bytes: bytes.len(), used })?;
        let lost = match (commit & LOST_BEFORE != 0, commit & LOST_COUNTED != 0) {
            (false, _) => Lost::None,
            (true, false) => Lost::Unknown,
            (true, true) => {
                let counted = word(bytes, layout.data_offset + used, layout.commit_size);
                counted.map_or(Lost::Unknown, Lost::Counted)
            }
        };
        Ok(Self { rest: data, time_ns, lost, damaged: false })
    }

    /// What was lost between the page before and this one.
    pub fn lost(&self) -> Lost {
        self.lost
    }

    /// The time of the last record that was read, at first that of the page.
    pub fn time_ns(&self) -> u64 {
        self.time_ns
    }

    /// True where reading ended at bytes that are no record: what followed is missing.
    pub fn is_damaged(&self) -> bool {
        self.damaged
    }

    /// The next record or the fact that this was none; `None` at the end.
    fn step(&mut self) -> Option<PageStep<'a>> {
        let head = u32::try_from(word(self.rest, 0, 4)?).ok()?;
        let (kind, time) = (head & 31, u64::from(head >> 5));
        let second = word(self.rest, 4, 4);
        let length = match kind {
            // Length and head; the data lies behind the length.
            0 => usize::try_from(second?).ok().filter(|length| *length >= 4)?,
            // An unused rest of the page has no time; its length says nothing.
            29 if time == 0 => {
                self.rest = &[];
                return None;
            }
            29 => usize::try_from(second?).ok()?,
            30 | 31 => 4,
            short => short as usize * 4,
        };
        let data = self.rest.get(4..length.checked_add(4)?)?;
        // Records begin at multiples of four.
        let next = length.checked_add(7)? & !3;
        self.rest = self.rest.get(next..).unwrap_or(&[]);
        let longer = time.saturating_add(second.unwrap_or(0) << TIME_BITS);
        match kind {
            30 => self.time_ns = self.time_ns.saturating_add(longer),
            31 => self.time_ns = self.time_ns >> WHOLE_TIME_BITS << WHOLE_TIME_BITS | longer,
            // A discarded record without a time of its own got this one.
            29 if time == 1 => {}
            _ => self.time_ns = self.time_ns.saturating_add(time),
        }
        Some(match kind {
            0 => PageStep::Record(data.get(4..).unwrap_or(&[])),
            29..=31 => PageStep::Nothing,
            _ => PageStep::Record(data),
        })
    }
}

enum PageStep<'a> {
    Record(&'a [u8]),
    Nothing,
}

impl<'a> Iterator for Page<'a> {
    /// When, and the record's bytes.
    type Item = (u64, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.step() {
                Some(PageStep::Record(data)) => return Some((self.time_ns, data)),
                Some(PageStep::Nothing) => {}
                None => {
                    self.damaged |= !self.rest.is_empty();
                    self.rest = &[];
                    return None;
                }
            }
        }
    }
}

/// A little-endian number of up to eight bytes.
fn word(bytes: &[u8], offset: usize, size: usize) -> Option<u64> {
    let mut whole = [0; 8];
    whole.get_mut(..size)?.copy_from_slice(bytes.get(offset..offset.checked_add(size)?)?);
    Some(u64::from_le_bytes(whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(commit: u64, records: &[u32]) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(1_000_u64.to_le_bytes());
        bytes.extend(commit.to_le_bytes());
        bytes.extend(records.iter().flat_map(|word| word.to_le_bytes()));
        bytes.resize(4096, 0);
        bytes
    }

    fn read(bytes: &[u8]) -> (Vec<(u64, Vec<u8>)>, bool) {
        let mut page = Page::new(bytes, &PageLayout::default()).unwrap();
        let records = page.by_ref().map(|(time_ns, data)| (time_ns, data.to_vec())).collect();
        (records, page.is_damaged())
    }

    #[test]
    fn every_kind_of_record_moves_the_time_as_it_should() {
        let records = [
            1 | 5 << 5,
            0xaa, // 1005
            30 | 3 << 5,
            1, // + 3 + 2^27
            9 << 5,
            12,
            0xbb,
            0xcc, // + 9, long form
            29 | 7 << 5,
            4, // discarded: 7 later
            31 | 6 << 5,
            2, // at 2^28 + 6
            2,
            0xdd,
            0xee,
            29,
            99, // the unused rest
        ];
        let (found, damaged) = read(&page(records.len() as u64 * 4, &records));
        let longer = 1_008 + (1 << 27) + 9;
        let bytes = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
        assert_eq!(found[0], (1_005, bytes(&[0xaa])));
        assert_eq!(found[1], (longer, bytes(&[0xbb, 0xcc])));
        assert_eq!(found[2], ((2 << 27) + 6, bytes(&[0xdd, 0xee])));
        assert_eq!((found.len(), damaged), (3, false));
    }

    #[test]
    fn what_was_lost_before_a_page_is_known() {
        let lost = |bytes: &[u8]| Page::new(bytes, &PageLayout::default()).unwrap().lost();
        assert_eq!(lost(&page(8, &[1, 7])), Lost::None);
        assert_eq!(lost(&page(8 | LOST_BEFORE, &[1, 7])), Lost::Unknown);
        assert_eq!(lost(&page(8 | LOST_BEFORE | LOST_COUNTED, &[1, 7, 55])), Lost::Counted(55));
    }

    #[test]
    fn a_cut_or_broken_page_ends_and_says_so() {
        assert!(Page::new(&[0; 7], &PageLayout::default()).is_err());
        assert!(
            Page::new(&page(5_000, &[]), &PageLayout::default()).unwrap_err().to_string().contains("5000")
        );
        assert_eq!(read(&page(8, &[3, 1])), (Vec::new(), true), "12 bytes of data, 4 in use");
        assert_eq!(read(&page(12, &[0, 2, 1])), (Vec::new(), true), "a length below its own");
    }
}
