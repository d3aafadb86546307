//! The models of an assembly's parts, asked as one.
//!
//! ```text
//! striping       RAID-0: which part of a request goes to which member
//! write_buffer   a persistent buffer in front of a device
//! ```

mod striping;
mod write_buffer;

use crate::assembly::Assembly;
use crate::model::{Completion, Model};
use crate::request::Request;
use striping::StripedModel;
use write_buffer::BufferedModel;

/// The timing state of an assembly. Invariants as those of [`Model`].
#[derive(Debug)]
pub enum AssembledModel {
    /// One device.
    Single(Box<Model>),
    /// RAID-0.
    Striped(StripedModel),
    /// A persistent write buffer and the device behind it.
    Buffered(Box<BufferedModel>),
}

impl AssembledModel {
    /// Idle devices with erased flash.
    ///
    /// # Panics
    /// When `capacity_bytes` is no multiple of 4096, or is zero.
    pub fn new(assembly: &Assembly, capacity_bytes: u64) -> Self {
        match assembly {
            Assembly::Single(description) => {
                AssembledModel::Single(Box::new(Model::new(description, capacity_bytes)))
            }
            Assembly::Striped(raid0) => AssembledModel::Striped(StripedModel::new(raid0, capacity_bytes)),
            Assembly::Buffered(buffered) => {
                AssembledModel::Buffered(Box::new(BufferedModel::new(buffered, capacity_bytes)))
            }
        }
    }

    /// The size in bytes.
    pub const fn capacity_bytes(&self) -> u64 {
        match self {
            AssembledModel::Single(model) => model.capacity_bytes(),
            AssembledModel::Striped(striped) => striped.capacity_bytes(),
            AssembledModel::Buffered(buffered) => buffered.capacity_bytes(),
        }
    }

    /// As [`Model::dirty_bytes`], of all parts.
    pub fn dirty_bytes(&self) -> u64 {
        match self {
            AssembledModel::Single(model) => model.dirty_bytes(),
            AssembledModel::Striped(striped) => striped.dirty_bytes(),
            AssembledModel::Buffered(_) => 0,
        }
    }

    /// As [`Model::take_destaged`]. Where some parts have a volatile cache and some have none, also what was
    /// written to the latter: it is durable.
    pub fn take_destaged(&mut self) -> Vec<(u64, u64)> {
        match self {
            AssembledModel::Single(model) => model.take_destaged(),
            AssembledModel::Striped(striped) => striped.take_destaged(),
            AssembledModel::Buffered(_) => Vec::new(),
        }
    }

    /// As [`Model::submit`].
    ///
    /// # Panics
    /// As there.
    pub fn submit(&mut self, at_ns: u64, request: Request) -> Completion {
        match self {
            AssembledModel::Single(model) => model.submit(at_ns, request),
            AssembledModel::Striped(striped) => striped.submit(at_ns, request),
            AssembledModel::Buffered(buffered) => buffered.submit(at_ns, request),
        }
    }
}
