//! The clock of a run and all counters that run beside it.

use joj_analysis::bench::run::{Latency, Run, tick_share};

use crate::bench::worker::task::Measured;
use crate::machine::files::counters::{Counters, Sources};
use crate::machine::proc::clock::now_ns;
use crate::machine::proc::usage::Usage;

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
        let readings = Readings { before: &self.counters, after: &counters, elapsed_ns };
        let run = run_of(latencies_ns.len() as u64, &sorted, &usage, readings);
        Measured {
            run,
            latencies_ns,
            apart: None,
            syncs: None,
            syncs_refused: None,
            waldio_status: Vec::new(),
        }
    }
}

/// The machine's counters at the begin and at the end of a run.
pub struct Readings<'run> {
    pub before: &'run Counters,
    pub after: &'run Counters,
    /// The time in between.
    pub elapsed_ns: u64,
}

/// A run of so many transactions with these latencies, ascending: what the processor and the machine's counters say of it.
pub fn run_of(transactions: u64, latencies_ns: &[u64], usage: &Usage, readings: Readings<'_>) -> Run {
    let Readings { before, after, elapsed_ns } = readings;
    let own_cpu_us = usage.cpu_user_us + usage.cpu_system_us;
    Run {
        round: 0,
        transactions,
        elapsed_ns,
        latency: Latency::of(latencies_ns),
        cpu_user_us: usage.cpu_user_us,
        cpu_system_us: usage.cpu_system_us,
        switches_voluntary: usage.switches_voluntary,
        switches_involuntary: usage.switches_involuntary,
        wchar_bytes: usage.wchar_bytes,
        storage_bytes: usage.storage_bytes,
        device: after.device_since(before),
        journal_commits: after.journal_commits_since(before),
        others_cores: after.others_cores_since(before, elapsed_ns, own_cpu_us),
        tick_share: tick_share(latencies_ns),
        limit_per_s: None,
        failure: None,
    }
}
