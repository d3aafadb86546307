//! The clock of a run and all counters that run beside it.

use joj_analysis::run::{Latency, Run, tick_share};

use crate::bench::task::Measured;
use crate::machine::clock::now_ns;
use crate::machine::counters::{Counters, Sources};
use crate::machine::usage::Usage;

/// Readings at the moment the clock starts.
pub struct Stopwatch {
    usage: Usage,
    counters: Counters,
    at_ns: u64,
}

impl Stopwatch {
    /// Reads everything, the clock last.
    pub fn now(sources: &Sources) -> Stopwatch {
        let counters = sources.read();
        let usage = Usage::now();
        Stopwatch { usage, counters, at_ns: now_ns() }
    }

    /// Reads everything again, the clock first, and makes a run of the differences.
    pub fn finish(self, sources: &Sources, latencies_ns: Vec<u64>) -> Measured {
        let elapsed_ns = now_ns() - self.at_ns;
        let usage = Usage::now().since(&self.usage);
        let counters = sources.read();
        let mut sorted = latencies_ns.clone();
        sorted.sort_unstable();
        let own_cpu_us = usage.cpu_user_us + usage.cpu_system_us;
        let run = Run {
            round: 0,
            transactions: latencies_ns.len() as u64,
            elapsed_ns,
            latency: Latency::of(&sorted),
            cpu_user_us: usage.cpu_user_us,
            cpu_system_us: usage.cpu_system_us,
            switches_voluntary: usage.switches_voluntary,
            switches_involuntary: usage.switches_involuntary,
            wchar_bytes: usage.wchar_bytes,
            storage_bytes: usage.storage_bytes,
            device: counters.device_since(&self.counters),
            journal_commits: counters.journal_commits_since(&self.counters),
            others_cores: counters.others_cores_since(&self.counters, elapsed_ns, own_cpu_us),
            tick_share: tick_share(&sorted),
            limit_per_s: None,
            failure: None,
        };
        Measured { run, latencies_ns, syncs: None, syncs_refused: None, waldio_status: Vec::new() }
    }
}
