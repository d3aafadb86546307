//! Plain workloads on the model alone, without a host: the rows of FAST'12's Table 3, and Fig. 13.

use crate::chance::Chance;
use crate::description::Description;
use crate::model::Model;
use crate::request::Request;

/// 1,048,576 bytes.
pub const MIB: u64 = 1 << 20;
/// A request of a sequential row.
pub const SEQUENTIAL_BYTES: u64 = 128 * 1024;
/// A request of a random row.
pub const RANDOM_BYTES: u64 = 4096;

/// A device and its time: workloads follow one another.
#[derive(Debug)]
pub struct Bench {
    model: Model,
    now_ns: u64,
}

impl Bench {
    /// An idle device.
    ///
    /// # Panics
    /// As [`Model::new`].
    pub fn new(description: &Description, capacity_bytes: u64) -> Self {
        Bench { model: Model::new(description, capacity_bytes), now_ns: 0 }
    }

    /// Runs `requests`, each when the one before is done; nanoseconds from the first to the last completion.
    ///
    /// # Panics
    /// When the device refuses one of them.
    pub fn nanoseconds(&mut self, requests: impl IntoIterator<Item = Request>) -> u64 {
        let begin_ns = self.now_ns;
        for request in requests {
            self.now_ns = self.model.submit(self.now_ns, request).done_ns;
        }
        self.now_ns - begin_ns
    }

    /// The same as megabytes (1,000,000 bytes) a second; infinite on a device that takes no time.
    ///
    /// # Panics
    /// When the device refuses a request.
    pub fn rate(&mut self, requests: impl IntoIterator<Item = Request>) -> f64 {
        let mut bytes = 0;
        let counted = requests.into_iter().inspect(|request| bytes += request.len_bytes);
        let elapsed_ns = self.nanoseconds(counted);
        bytes as f64 * 1e3 / elapsed_ns as f64
    }
}

/// The first `bytes` of the device, in requests of [`SEQUENTIAL_BYTES`].
pub fn sequential(bytes: u64, request: fn(u64, u64) -> Request) -> impl Iterator<Item = Request> {
    (0..bytes / SEQUENTIAL_BYTES).map(move |index| request(index * SEQUENTIAL_BYTES, SEQUENTIAL_BYTES))
}

/// `count` requests of [`RANDOM_BYTES`], each at a random block of the first `range_bytes`; the same ones each time.
pub fn random(
    count: u64,
    range_bytes: u64,
    request: fn(u64, u64) -> Request,
) -> impl Iterator<Item = Request> {
    let mut chance = Chance::new(13);
    (0..count).map(move |_| request(chance.below(range_bytes / RANDOM_BYTES) * RANDOM_BYTES, RANDOM_BYTES))
}
