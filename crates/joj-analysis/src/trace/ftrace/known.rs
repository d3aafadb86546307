//! What an event that we can read looks like, and how its fields are read.

use crate::trace::event::DeviceNumber;

use crate::trace::ftrace::format::Field;
use crate::trace::ftrace::inode_number::numbered;
use crate::trace::ftrace::record::{Command, Holder, Inode, What};

/// An event that we can read.
#[derive(Debug)]
pub struct Known {
    /// Its folder below `events`.
    pub system: &'static str,
    /// Its names, the newest first: kernels rename some.
    pub names: &'static [&'static str],
    /// The fields that [`Known::read`] wants, in its order. `a|b`: whichever there is; `?` behind: not all kernels have it.
    pub fields: &'static [&'static str],
    /// The field by which a capture of chosen disks takes its records; empty where there is none.
    pub device_field: &'static str,
    /// What else records must fulfil, in the kernel's filter language; empty for nothing.
    pub filter: &'static str,
    /// What a trace lacks without this event.
    pub without: &'static str,
    /// Reads a record.
    pub read: fn(&Values<'_>) -> Option<What>,
}

/// A record's fields, by their place in [`Known::fields`].
#[derive(Debug)]
pub struct Values<'a> {
    fields: &'a [Option<Field>],
    record: &'a [u8],
}

impl<'a> Values<'a> {
    /// A record with the fields that its event was found to have.
    pub fn new(fields: &'a [Option<Field>], record: &'a [u8]) -> Self {
        Self { fields, record }
    }

    /// A number, extended to 64 bits.
    pub fn number(&self, index: usize) -> Option<u64> {
        self.fields.get(index)?.as_ref()?.number(self.record)
    }

    /// A number with a sign.
    pub fn signed(&self, index: usize) -> Option<i64> {
        self.number(index).map(u64::cast_signed)
    }

    /// A number of 32 bits; `None` where it has more.
    pub fn small(&self, index: usize) -> Option<u32> {
        u32::try_from(self.number(index)?).ok()
    }

    /// A device number.
    pub fn device(&self, index: usize) -> Option<DeviceNumber> {
        self.small(index).map(DeviceNumber)
    }

    /// A file of a filesystem that its device names.
    pub fn inode(&self, device: usize, number: usize) -> Option<Inode> {
        Some(Inode { holder: Holder::Device(self.device(device)?), number: self.number(number)? })
    }

    /// A filesystem that its own number names.
    pub fn id(&self, id: usize) -> Option<Holder> {
        Some(Holder::Id(self.fields.get(id)?.as_ref()?.bytes(self.record).try_into().ok()?))
    }

    /// A file of a filesystem that its own number names, in one of its trees.
    pub fn inode_by_id(&self, id: usize, number: usize, tree: usize) -> Option<Inode> {
        Some(Inode { holder: self.id(id)?, number: numbered(self.number(tree)?, self.number(number)?)? })
    }

    /// Text, up to its zero byte.
    pub fn text(&self, index: usize) -> &'a [u8] {
        self.fields.get(index).and_then(Option::as_ref).map_or(&[], |field| field.text(self.record))
    }

    /// A thread's name.
    pub fn command(&self, index: usize) -> Option<Command> {
        let text = self.text(index);
        let mut command = Command::default();
        command.get_mut(..text.len())?.copy_from_slice(text);
        Some(command)
    }
}
