//! What tests of assemblies expect: how long a request takes, and which names are refused.

use super::{AssembledModel, Assembly};
use crate::request::Request;

const US: u64 = 1_000;

/// Latency in microseconds of `request` at `at_us`.
pub fn us(model: &mut AssembledModel, at_us: u64, request: Request) -> u64 {
    let done = model.submit(at_us * US, request);
    assert_eq!(done.done_ns, at_us * US + done.detail.total_ns(), "the parts add up");
    (done.done_ns - at_us * US) / US
}

/// No assembly has the name, and the error says so.
pub fn refused(name: &str, expected: &str) {
    let error = Assembly::named(name).unwrap_err().to_string();
    assert!(error.contains(expected), "{name} gave {error}");
}
