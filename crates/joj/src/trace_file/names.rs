//! Texts of rows: Parquet's dictionary hands out the same bytes again and again, and we hash them once.

use std::collections::HashMap;

use joj_analysis::trace::texts::{Text, Texts};
use parquet::data_type::{AsBytes, ByteArray};

const SLOTS: usize = 256;

/// The numbers of texts that a column's dictionary gave lately.
#[derive(Debug)]
pub struct NumberCache {
    /// Keeping the bytes keeps their address from being used for others: the same address is the same text.
    slots: Vec<Option<(ByteArray, Text)>>,
}

impl Default for NumberCache {
    fn default() -> Self {
        Self { slots: vec![None; SLOTS] }
    }
}

impl NumberCache {
    /// The text's number; `None` where the bytes are no UTF-8.
    pub fn number(&mut self, bytes: &ByteArray, texts: &mut Texts) -> Option<Text> {
        if bytes.is_empty() {
            return Some(Text::NONE);
        }
        let address = bytes.data().as_ptr().addr();
        let slot = &mut self.slots[(address ^ (address >> 8)) % SLOTS];
        if let Some((known, number)) = slot
            && known.data().as_ptr().addr() == address
            && known.len() == bytes.len()
        {
            return Some(*number);
        }
        let number = texts.keep(std::str::from_utf8(bytes.as_bytes()).ok()?);
        *slot = Some((bytes.clone(), number));
        Some(number)
    }

    /// Lets go of the bytes: a row group's are not kept for the next.
    pub fn clear(&mut self) {
        self.slots.fill(None);
    }
}

/// The bytes of texts that were written lately.
#[derive(Debug, Default)]
pub struct BytesCache {
    known: HashMap<Text, ByteArray>,
    last: Option<(Text, ByteArray)>,
}

impl BytesCache {
    /// The text's bytes.
    pub fn bytes(&mut self, number: Text, texts: &Texts) -> ByteArray {
        if let Some((last, bytes)) = &self.last
            && *last == number
        {
            return bytes.clone();
        }
        let bytes = self.known.entry(number).or_insert_with(|| ByteArray::from(texts.get(number))).clone();
        self.last = Some((number, bytes.clone()));
        bytes
    }

    /// Forgets everything: between row groups, so that memory stays flat however many names there are.
    pub fn clear(&mut self) {
        self.known.clear();
        self.last = None;
    }
}
