//! The workloads of the papers, against the model alone: no filesystem, no host.

#![allow(dead_code, reason = "each test program uses a part")]
#![allow(clippy::unwrap_used, reason = "clippy exempts test functions, not the helpers they share")]

use joj_device::chance::Chance;
use joj_device::description::Description;
use joj_device::model::Model;
use joj_device::replay::{one_by_one, run};
use joj_device::request::Request;

pub const MB: u64 = 1 << 20;
const SEQUENTIAL_BYTES: u64 = 128 * 1024;
const RANDOM_BYTES: u64 = 4096;

/// A device of 4 GiB, with its time.
pub struct Bench {
    model: Model,
    now_ns: u64,
}

impl Bench {
    pub fn new(name: &str) -> Self {
        let description = Description::named(name).unwrap_or_else(|error| panic!("{error}"));
        Bench { model: Model::new(&description, 4096 * MB), now_ns: 0 }
    }

    /// One request after another; megabytes (of 1,000,000 bytes) a second.
    pub fn rate(&mut self, requests: Vec<Request>) -> f64 {
        let bytes: u64 = requests.iter().map(|request| request.len_bytes).sum();
        bytes as f64 * 1000.0 / self.nanoseconds(requests) as f64
    }

    pub fn nanoseconds(&mut self, requests: Vec<Request>) -> u64 {
        let outcome = run(&mut self.model, self.now_ns, &one_by_one(requests, 0)).unwrap();
        self.now_ns += outcome.total_ns;
        outcome.total_ns
    }
}

/// `bytes` from the start, in requests of 128 KiB.
pub fn sequential(bytes: u64, request: fn(u64, u64) -> Request) -> Vec<Request> {
    (0..bytes / SEQUENTIAL_BYTES).map(|index| request(index * SEQUENTIAL_BYTES, SEQUENTIAL_BYTES)).collect()
}

/// `count` requests of 4 KiB, each at a random block of the first `range_bytes`.
pub fn random(count: u64, range_bytes: u64, request: fn(u64, u64) -> Request) -> Vec<Request> {
    let mut chance = Chance::new(13);
    let block = |_| request(chance.below(range_bytes / RANDOM_BYTES) * RANDOM_BYTES, RANDOM_BYTES);
    (0..count).map(block).collect()
}
