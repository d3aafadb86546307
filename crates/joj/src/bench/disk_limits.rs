//! What the disk does without SQLite, measured beside rows, and summed up at last.

use joj_analysis::bench::document::{Limit, LimitKind, LimitRun};
use joj_analysis::bench::run::{Latency, distribution};
use joj_analysis::statistics::Estimate;

use crate::bench::ask::Stop;
use crate::bench::forecast::limit_operations;
use crate::bench::session::Session;
use crate::bench::worker::limit_run::LimitTask;
use crate::bench::worker::task::Measured;
use crate::machine::files::measured::limit_file::WRITE_BYTES;

const KINDS: [LimitKind; 3] =
    [LimitKind::DirectDurableWrite, LimitKind::WriteFdatasync, LimitKind::LoneFlush];

/// Each kind, with all latencies.
#[derive(Debug)]
pub struct DiskLimits {
    limits: Vec<(Limit, Vec<u64>)>,
}

impl DiskLimits {
    /// Nothing is measured yet.
    pub fn new() -> DiskLimits {
        let limit = |kind| Limit {
            kind,
            refused: None,
            runs: Vec::new(),
            latency_quantiles_ns: Vec::new(),
            operations_per_s: None,
            latency: Latency::default(),
        };
        DiskLimits { limits: KINDS.into_iter().map(|kind| (limit(kind), Vec::new())).collect() }
    }

    /// Measures each kind. The result is the faster one's speed of those that store data, per second.
    /// # Errors
    /// [`Stop`]
    pub fn measure(&mut self, session: &Session<'_>, round: u32) -> Result<Option<f64>, Stop> {
        let task = LimitTask {
            directory: session.directory(),
            kinds: KINDS.to_vec(),
            operations: limit_operations(session.transactions),
            sources: session.sources.clone(),
        };
        let mut best: Option<f64> = None;
        for (kind, result) in session.perform(&task)? {
            let Some((limit, latencies_ns)) = self.limits.iter_mut().find(|(limit, _)| limit.kind == kind)
            else {
                continue;
            };
            match result {
                Err(reason) => limit.refused = Some(reason),
                Ok(measured) => {
                    let speed = measured.run.transactions_per_s();
                    limit.runs.push(run_of(kind, round, &measured));
                    latencies_ns.extend(measured.latencies_ns);
                    if kind.stores_data() {
                        best = Some(best.map_or(speed, |best| best.max(speed)));
                    }
                }
            }
        }
        Ok(best)
    }

    /// Sums up: medians and distributions.
    pub fn finish(self) -> Vec<Limit> {
        let finished = self.limits.into_iter().map(|(mut limit, latencies_ns)| {
            (limit.latency_quantiles_ns, limit.latency) = distribution(latencies_ns);
            let speeds: Vec<f64> = limit.runs.iter().map(LimitRun::operations_per_s).collect();
            limit.operations_per_s = Estimate::of(&speeds);
            limit
        });
        finished.collect()
    }
}

fn run_of(kind: LimitKind, round: u32, measured: &Measured) -> LimitRun {
    let run = &measured.run;
    let operations = run.transactions;
    LimitRun {
        round,
        operations,
        elapsed_ns: run.elapsed_ns,
        latency: run.latency,
        own_bytes: if kind.stores_data() { operations * WRITE_BYTES as u64 } else { 0 },
        device: run.device,
        others_cores: run.others_cores,
        tick_share: run.tick_share,
    }
}
