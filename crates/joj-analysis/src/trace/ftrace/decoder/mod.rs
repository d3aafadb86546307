//! From a record's bytes to a [`Record`], by the formats that this kernel has. The events that we can read:
//!
//! ```text
//! calls      of programs: syncs, locks, threads; and jbd2's commits
//! files      of filesystems: where files lie, when they are made durable, cut and removed
//! requests   of the block layer
//! ```

use crate::trace::ftrace::decoder::calls::CALLS;
use crate::trace::ftrace::decoder::files::FILES;
use crate::trace::ftrace::decoder::requests::REQUESTS;
use crate::trace::ftrace::error::FtraceError;
use crate::trace::ftrace::format::{Field, Format};
use crate::trace::ftrace::known::{Known, Values};
use crate::trace::ftrace::record::Record;

mod calls;
mod files;
mod requests;

/// Every event that we can read.
pub fn known() -> impl Iterator<Item = &'static Known> {
    REQUESTS.iter().chain(CALLS).chain(FILES)
}

/// The formats of one kernel.
#[derive(Debug, Default)]
pub struct Decoder {
    /// By the event's number; kernels count them from 1, some 3,000.
    readers: Vec<Option<Reader>>,
}

#[derive(Debug)]
struct Reader {
    known: &'static Known,
    fields: Vec<Option<Field>>,
    thread: Field,
}

impl Decoder {
    /// Learns an event.
    /// # Errors
    /// Which field this kernel's event lacks, or that the event is none that we know.
    pub fn learn(&mut self, format: &Format) -> Result<&'static Known, FtraceError> {
        let known = known().find(|known| known.names.contains(&format.name.as_str()));
        let known = known.ok_or_else(|| FtraceError::UnknownEvent(format.name.clone()))?;
        let mut fields = Vec::new();
        for wanted in known.fields {
            let (names, optional) = wanted.strip_suffix('?').map_or((*wanted, false), |names| (names, true));
            let field = names.split('|').find_map(|name| format.field(name)).cloned();
            if field.is_none() && !optional {
                return Err(FtraceError::NoField { event: format.name.clone(), field: names.to_owned() });
            }
            fields.push(field);
        }
        let thread = format.field("common_pid").cloned();
        let thread = thread.ok_or_else(|| FtraceError::NoField {
            event: format.name.clone(),
            field: "common_pid".to_owned(),
        })?;
        let number = usize::from(format.number);
        if number >= self.readers.len() {
            self.readers.resize_with(number + 1, || None);
        }
        self.readers[number] = Some(Reader { known, fields, thread });
        Ok(known)
    }

    /// Reads a record; `None` where it is none of those learned, or not whole.
    pub fn record(&self, time_ns: u64, bytes: &[u8]) -> Option<Record> {
        let number = u16::from_le_bytes(bytes.get(..2)?.try_into().ok()?);
        let reader = self.readers.get(usize::from(number))?.as_ref()?;
        let thread = u32::try_from(reader.thread.number(bytes)?).unwrap_or(0);
        let what = (reader.known.read)(&Values::new(&reader.fields, bytes))?;
        Some(Record { time_ns, thread, what })
    }
}
