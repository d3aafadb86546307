//! A page of the tree and its bytes, laid out as SQLite's with a version beside each cell.
//!
//! ```text
//! 0   1  kind: 13 a leaf, 5 interior           2  2  number of slots
//! 4   2  where cells begin                     6  2  version that changed the page last
//! 8   2  0                                     (10 to 13 of an interior page: 0)
//! slots, 6 bytes each: offset of the cell, first version that sees it, first version that no longer does (0xffff: none yet)
//! cells, from the end of the page downwards: of a leaf as SQLite's, of an interior page the child's number and the largest key below
//! ```
//! All numbers are big-endian, as SQLite's.

/// Bytes of a page.
pub const PAGE_BYTES: usize = 4096;
/// The end of what is not over.
pub const LIVE: u16 = u16::MAX;

const LEAF: u8 = 13;
const INTERIOR: u8 = 5;
const SLOT_BYTES: usize = 6;

/// What a slot points to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// The text of a row.
    Row(Vec<u8>),
    /// The number of a page.
    Child(u32),
}

/// A cell and the versions that see it: from `start` on, and before `end`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// Of a row its number, of a child the largest that may be below it.
    pub key: u64,
    pub start: u16,
    pub end: u16,
    pub item: Item,
}

/// A page in memory. Its slots are in the order of their keys, of equal ones the newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreePage {
    pub is_leaf: bool,
    pub version: u16,
    pub slots: Vec<Slot>,
}

impl Slot {
    /// True for what the newest version sees.
    pub fn is_live(&self) -> bool {
        self.end == LIVE
    }

    fn cell(&self) -> Vec<u8> {
        let mut cell = Vec::new();
        match &self.item {
            Item::Row(text) => {
                // A record of NULL (the row's number stands in front of it) and a text.
                let mut types = vec![0];
                put_varint(&mut types, text.len() as u64 * 2 + 13);
                put_varint(&mut cell, (1 + types.len() + text.len()) as u64);
                put_varint(&mut cell, self.key);
                put_varint(&mut cell, 1 + types.len() as u64);
                cell.extend_from_slice(&types);
                cell.extend_from_slice(text);
            }
            Item::Child(number) => {
                cell.extend_from_slice(&number.to_be_bytes());
                put_varint(&mut cell, self.key);
            }
        }
        cell
    }
}

impl TreePage {
    /// Bytes that it takes; more than [`PAGE_BYTES`] is too much.
    pub fn bytes(&self) -> usize {
        let cells: usize = self.slots.iter().map(|slot| SLOT_BYTES + slot.cell().len()).sum();
        header_bytes(self.is_leaf) + cells
    }

    /// Lazy garbage collection: gives up what no version from `version` on sees.
    pub fn collect(&mut self, version: u16) {
        self.slots.retain(|slot| slot.is_live() || slot.end >= version);
    }

    /// Puts a slot where it belongs.
    pub fn add(&mut self, slot: Slot) {
        let at = self.slots.partition_point(|other| other.key < slot.key);
        self.slots.insert(at, slot);
    }

    /// The page as it is written. What [`TreePage::bytes`] says is too much does not come here.
    pub fn encode(&self) -> Vec<u8> {
        let mut page = vec![0; PAGE_BYTES];
        let mut cells_at = PAGE_BYTES;
        for (index, slot) in self.slots.iter().enumerate() {
            let cell = slot.cell();
            cells_at -= cell.len();
            page[cells_at..cells_at + cell.len()].copy_from_slice(&cell);
            let at = header_bytes(self.is_leaf) + index * SLOT_BYTES;
            put_u16(&mut page, at, low_u16(cells_at));
            put_u16(&mut page, at + 2, slot.start);
            put_u16(&mut page, at + 4, slot.end);
        }
        page[0] = if self.is_leaf { LEAF } else { INTERIOR };
        put_u16(&mut page, 2, low_u16(self.slots.len()));
        put_u16(&mut page, 4, low_u16(cells_at));
        put_u16(&mut page, 6, self.version);
        page
    }

    /// The page that these bytes are; `None` where they are none.
    pub fn decode(page: &[u8]) -> Option<TreePage> {
        let is_leaf = match *page.first()? {
            LEAF => true,
            INTERIOR => false,
            _ => return None,
        };
        let slot = |index: usize| -> Option<Slot> {
            let at = header_bytes(is_leaf) + index * SLOT_BYTES;
            let mut cell = page.get(usize::from(get_u16(page, at)?)..)?;
            let (start, end) = (get_u16(page, at + 2)?, get_u16(page, at + 4)?);
            if !is_leaf {
                let (number, rest) = cell.split_first_chunk::<4>()?;
                cell = rest;
                return Some(Slot {
                    key: take_varint(&mut cell)?,
                    start,
                    end,
                    item: Item::Child(u32::from_be_bytes(*number)),
                });
            }
            let record_bytes = usize::try_from(take_varint(&mut cell)?).ok()?;
            let key = take_varint(&mut cell)?;
            let record = cell.get(..record_bytes)?;
            let header_bytes = usize::from(*record.first()?);
            Some(Slot { key, start, end, item: Item::Row(record.get(header_bytes..)?.to_vec()) })
        };
        let count = usize::from(get_u16(page, 2)?);
        let slots = (0..count).map(slot).collect::<Option<Vec<Slot>>>()?;
        Some(TreePage { is_leaf, version: get_u16(page, 6)?, slots })
    }
}

/// SQLite's header, and two bytes for the version.
fn header_bytes(is_leaf: bool) -> usize {
    if is_leaf { 10 } else { 14 }
}

fn low_u16(number: usize) -> u16 {
    u16::try_from(number).unwrap_or(u16::MAX)
}

fn put_u16(page: &mut [u8], at: usize, number: u16) {
    page[at..at + 2].copy_from_slice(&number.to_be_bytes());
}

fn get_u16(page: &[u8], at: usize) -> Option<u16> {
    page.get(at..)?.first_chunk::<2>().map(|bytes| u16::from_be_bytes(*bytes))
}

/// SQLite's variable-length integer (fileformat2, "Varint"), but for those of nine bytes: seven bits a byte, the last byte's top bit 0.
fn put_varint(out: &mut Vec<u8>, number: u64) {
    let bytes = (u64::BITS - (number | 1).leading_zeros()).div_ceil(7);
    for left in (0..bytes).rev() {
        let bits = u8::try_from((number >> (7 * left)) & 0x7f).unwrap_or(0);
        out.push(if left == 0 { bits } else { bits | 0x80 });
    }
}

fn take_varint(cell: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    loop {
        let (byte, rest) = cell.split_first()?;
        *cell = rest;
        number = number << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_what_was_encoded() {
        let row = |key, start, end| Slot { key, start, end, item: Item::Row(vec![b'a'; 100]) };
        let leaf = TreePage {
            is_leaf: true,
            version: 7,
            slots: vec![row(1, 2, LIVE), row(300, 3, LIVE), row(300, 2, 3)],
        };
        let child = |key, number| Slot { key, start: 1, end: LIVE, item: Item::Child(number) };
        let interior =
            TreePage { is_leaf: false, version: 9, slots: vec![child(300, 2), child(u64::MAX >> 8, 70_000)] };
        for page in [leaf, interior] {
            assert_eq!(TreePage::decode(&page.encode()), Some(page));
        }
        assert_eq!(TreePage::decode(&[0; PAGE_BYTES]), None);
    }

    #[test]
    fn as_many_rows_fit_as_in_the_published_build() {
        // Of some 107 bytes: 36 of a page there.
        let mut page = TreePage { is_leaf: true, version: 1, slots: Vec::new() };
        while page.bytes() <= PAGE_BYTES {
            page.add(Slot {
                key: 200 + page.slots.len() as u64,
                start: 1,
                end: LIVE,
                item: Item::Row(vec![b'a'; 100]),
            });
        }
        assert_eq!(page.slots.len() - 1, 36);
    }
}
