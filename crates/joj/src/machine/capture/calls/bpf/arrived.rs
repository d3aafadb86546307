//! Records as they arrived, until the capture is over.
//!
//! The program waits for a processor while joj works. So nothing is made of a record meanwhile: it is copied, into blocks, because one
//! growing room would be copied, too.

/// Bytes of a block.
const BLOCK_BYTES: usize = 1 << 20;
const LENGTH_BYTES: usize = 4;
/// Where `event`, `marks` and the paths of a record are (bpf/recording.bpf.c).
const EVENT_AT: usize = 104;
const MARKS_AT: usize = 107;
/// A call, and the head of a frame.
const CALL: u8 = 1;
const FRAME: u8 = 5;

/// The records, oldest first.
#[derive(Debug, Default)]
pub struct ArrivedRecords {
    blocks: Vec<Vec<u8>>,
    events: usize,
    /// Copies of those that may have opened a log that was there before.
    logs: Vec<Vec<u8>>,
}

impl ArrivedRecords {
    /// Takes one.
    pub fn take(&mut self, record: &[u8]) {
        let bytes = LENGTH_BYTES + record.len();
        let has_room = |block: &Vec<u8>| block.capacity() - block.len() >= bytes;
        if !self.blocks.last().is_some_and(has_room) {
            self.blocks.push(Vec::with_capacity(BLOCK_BYTES.max(bytes)));
        }
        if let Some(block) = self.blocks.last_mut() {
            block.extend(u32::try_from(record.len()).unwrap_or(u32::MAX).to_ne_bytes());
            block.extend_from_slice(record);
        }
        let event = record.get(EVENT_AT).copied();
        self.events += usize::from(event != Some(FRAME));
        // What was opened was seen (1), and it is not new (2).
        let is_old = record.get(MARKS_AT).is_some_and(|marks| marks & 3 == 1);
        if event == Some(CALL) && is_old && record.ends_with(b"-wal") {
            self.logs.push(record.to_vec());
        }
    }

    /// How many events there are.
    pub fn events(&self) -> usize {
        self.events
    }

    /// Those that may have opened a log, once each.
    pub fn logs(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.logs)
    }

    /// Hands over each record, and forgets it. The first that is refused ends it.
    /// # Errors
    /// That of `to`.
    pub fn hand_over<E>(self, mut to: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        for block in self.blocks {
            let mut rest = block.as_slice();
            while let Some((length, after)) = rest.split_first_chunk() {
                let length = usize::try_from(u32::from_ne_bytes(*length)).unwrap_or(usize::MAX);
                let (record, after) = after.split_at(length.min(after.len()));
                to(record)?;
                rest = after;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_leave_as_they_came() {
        let mut arrived = ArrivedRecords::default();
        let mut wanted = Vec::new();
        for number in 0..40_000_u32 {
            let mut record = vec![0; 128 + number as usize % 40];
            record[..4].copy_from_slice(&number.to_ne_bytes());
            record[EVENT_AT] = if number % 4 == 0 { FRAME } else { CALL };
            if number % 10_000 == 1 {
                record[MARKS_AT] = if number > 10_000 { 1 } else { 3 };
                record.extend(b"a-wal");
            }
            arrived.take(&record);
            wanted.push(record);
        }
        assert!(arrived.blocks.len() > 2, "several blocks");
        assert_eq!((arrived.events(), arrived.logs().len(), arrived.logs().len()), (30_000, 3, 0));
        let mut found = Vec::new();
        let handed = arrived.hand_over(|record| {
            found.push(record.to_vec());
            Ok::<(), ()>(())
        });
        assert_eq!((handed, found == wanted), (Ok(()), true));
    }
}
