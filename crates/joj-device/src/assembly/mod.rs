//! A device as it is emulated: one, or several put together.
//!
//! ```text
//! text of a name -> reading -> Assembly (here) -> timing -> when each request is done
//!
//! reading       an assembly from its name: a device's, a file's, `2xkingston`
//! timing        the models of its parts, asked as one
//! expected      how long requests take, and which names are refused, for tests
//! raid0_tests   where stripes go, and how long they take;  write_buffer_tests: what a buffer hides, and what not
//! ```
//!
//! Invariants: 1. each byte has one place on one part. 2. parts work at the same time. 3. what an assembly calls
//! durable, the part that has it calls durable. Source: docs/device_format.md, "Several devices as one".

mod reading;
mod timing;

pub use timing::AssembledModel;

use crate::description::Description;

/// Bytes of a stripe where none are given: FAST'12's driver.
pub const STRIPE_BYTES: u64 = 4096;

/// What an emulated device is made of.
#[derive(Debug, Clone, PartialEq)]
pub enum Assembly {
    /// One device.
    Single(Box<Description>),
    /// RAID-0.
    Striped(Raid0),
    /// A persistent write buffer in front of a device.
    Buffered(WriteBuffer),
}

/// Devices that take stripes in turn.
#[derive(Debug, Clone, PartialEq)]
pub struct Raid0 {
    /// What joj calls it.
    pub name: String,
    /// Bytes of a stripe, a multiple of 4096.
    pub stripe_bytes: u64,
    /// The devices, two at least. Stripe `n` is on member `n` modulo their number.
    pub members: Vec<Assembly>,
}

/// A device in which writes are done and durable, and from which they go to the one behind.
#[derive(Debug, Clone, PartialEq)]
pub struct WriteBuffer {
    /// What joj calls the two.
    pub name: String,
    /// The buffer. It has no volatile cache, and 16 blocks at least.
    pub buffer: Box<Description>,
    /// The device behind it.
    pub behind: Box<Assembly>,
}

impl From<Description> for Assembly {
    fn from(description: Description) -> Self {
        Assembly::Single(Box::new(description))
    }
}

impl Assembly {
    /// What joj calls it.
    pub fn name(&self) -> &str {
        match self {
            Assembly::Single(description) => &description.name,
            Assembly::Striped(raid0) => &raid0.name,
            Assembly::Buffered(buffered) => &buffered.name,
        }
    }

    /// Its size in bytes; whoever uses the model may give it another.
    pub fn capacity_bytes(&self) -> u64 {
        match self {
            Assembly::Single(description) => description.capacity_bytes,
            Assembly::Striped(raid0) => raid0.capacity_bytes(),
            Assembly::Buffered(buffered) => buffered.behind.capacity_bytes(),
        }
    }

    /// True when a power cut can take what the device has acknowledged.
    pub fn has_volatile_cache(&self) -> bool {
        match self {
            Assembly::Single(description) => description.has_volatile_cache(),
            Assembly::Striped(raid0) => raid0.members.iter().any(Assembly::has_volatile_cache),
            Assembly::Buffered(_) => false,
        }
    }

    /// True when the host may send FUA writes.
    pub fn offers_fua(&self) -> bool {
        match self {
            Assembly::Single(description) => description.offers_fua(),
            Assembly::Striped(raid0) => {
                let mut cached = raid0.members.iter().filter(|member| member.has_volatile_cache()).peekable();
                cached.peek().is_some() && cached.all(Assembly::offers_fua)
            }
            Assembly::Buffered(_) => false,
        }
    }

    /// Requests under way at once.
    fn queue_depth(&self) -> u64 {
        match self {
            Assembly::Single(description) => description.bus.queue_depth,
            Assembly::Striped(raid0) => raid0.members.iter().map(Assembly::queue_depth).sum(),
            Assembly::Buffered(buffered) => buffered.buffer.bus.queue_depth,
        }
    }
}

impl Raid0 {
    /// As much of each member as the smallest has, in whole stripes.
    fn capacity_bytes(&self) -> u64 {
        let smallest = self.members.iter().map(Assembly::capacity_bytes).min().unwrap_or(0);
        smallest / self.stripe_bytes * self.stripe_bytes * crate::number::size(self.members.len())
    }
}

#[cfg(test)]
mod expected;
#[cfg(test)]
mod raid0_tests;
#[cfg(test)]
mod write_buffer_tests;
