//! Plain workloads on the model alone, without a host: the rows of FAST'12's Table 3, and Fig. 13.

use crate::assembly::{AssembledModel, Assembly};
use crate::chance::Chance;
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
    model: AssembledModel,
    now_ns: u64,
}

impl Bench {
    /// An idle device.
    ///
    /// # Panics
    /// As [`AssembledModel::new`].
    pub fn new(assembly: &Assembly, capacity_bytes: u64) -> Self {
        Bench { model: AssembledModel::new(assembly, capacity_bytes), now_ns: 0 }
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

/// Requests of a random row.
const RANDOM_REQUESTS: u64 = 2048;
/// Bytes of Table 3's rows in order, and the range of its random ones.
const TABLE_3_BYTES: u64 = 128 * MIB;
/// What is written in order before a range of Fig. 13.
const FILLED_BYTES: u64 = 1024 * MIB;
/// No row reaches beyond.
const CAPACITY_BYTES: u64 = 4096 * MIB;

/// The rows of Table 3, MB/s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Table3 {
    /// Bytes that the rows are about, fewer than the paper's 128 MiB on a smaller device.
    pub range_bytes: u64,
    /// Written in order, 128 KiB at a time.
    pub sequential_write: f64,
    /// Read in order, likewise.
    pub sequential_read: f64,
    /// Written at random, 4 KiB at a time.
    pub random_write: f64,
    /// Read at random, likewise.
    pub random_read: f64,
}

/// How much of a device the rows use.
fn used_bytes(assembly: &Assembly) -> u64 {
    CAPACITY_BYTES.min(assembly.capacity_bytes())
}

/// The rows of Table 3, one after another on one device.
///
/// # Panics
/// As [`AssembledModel::new`].
pub fn table_3(assembly: &Assembly) -> Table3 {
    let range_bytes = TABLE_3_BYTES.min(used_bytes(assembly));
    let mut bench = Bench::new(assembly, used_bytes(assembly));
    Table3 {
        range_bytes,
        sequential_write: bench.rate(sequential(range_bytes, Request::write)),
        sequential_read: bench.rate(sequential(range_bytes, Request::read)),
        random_write: bench.rate(random(RANDOM_REQUESTS, range_bytes, Request::write)),
        random_read: bench.rate(random(RANDOM_REQUESTS, range_bytes, Request::read)),
    }
}

/// MB/s of Fig. 13's random writes over the first `range_mib`, behind 1 GiB written in order, or what there is of it; `None` where
/// the device is smaller than the range.
///
/// # Panics
/// As [`AssembledModel::new`].
pub fn fig_13(assembly: &Assembly, range_mib: u64) -> Option<f64> {
    let used_bytes = used_bytes(assembly);
    if range_mib * MIB > used_bytes {
        return None;
    }
    let mut bench = Bench::new(assembly, used_bytes);
    bench.rate(sequential(FILLED_BYTES.min(used_bytes), Request::write));
    Some(bench.rate(random(RANDOM_REQUESTS, range_mib * MIB, Request::write)))
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
