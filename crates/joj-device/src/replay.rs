//! A list of requests against a model: what they take on a device that they were not recorded on.

use thiserror::Error;

use crate::model::{Completion, Model};
use crate::request::{Refusal, Request};

/// When a request is submitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Issue {
    /// Open loop: at this time, nanoseconds since the replay began.
    At(u64),
    /// Closed loop: this many nanoseconds of the host after the completion of an earlier request.
    After {
        /// Index of the request that is waited for; it stands earlier in the list.
        request: usize,
        /// Time of the host in between.
        think_ns: u64,
    },
}

/// A request with its moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// When it is handed to the device.
    pub issue: Issue,
    /// What the device is asked for.
    pub request: Request,
}

/// Why steps cannot be replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ReplayError {
    /// The device refuses a step.
    #[error("step {step}: {refusal}: make the device larger, or leave the step out")]
    Refused {
        /// Its index in the list.
        step: usize,
        /// Why.
        #[source]
        refusal: Refusal,
    },
    /// A step waits for itself or for one behind it.
    #[error("step {step} waits for step {request}, which is not before it")]
    WaitsForLater {
        /// Its index in the list.
        step: usize,
        /// The index of the step that it waits for.
        request: usize,
    },
}

/// A replay's outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Submission of each step, nanoseconds since the replay began.
    pub submitted_ns: Vec<u64>,
    /// Completion of each step, in the order of the list.
    pub completions: Vec<Completion>,
    /// The last completion, nanoseconds since the replay began.
    pub total_ns: u64,
}

impl Outcome {
    /// From submission to completion, nanoseconds.
    pub fn latency_ns(&self, step: usize) -> u64 {
        self.completions[step].done_ns - self.submitted_ns[step]
    }
}

/// One request after another, the host idle in between: `requests` as a closed loop.
pub fn one_by_one(requests: impl IntoIterator<Item = Request>, think_ns: u64) -> Vec<Step> {
    let after = |index: usize| match index.checked_sub(1) {
        None => Issue::At(0),
        Some(request) => Issue::After { request, think_ns },
    };
    let steps = requests.into_iter().enumerate();
    steps.map(|(index, request)| Step { issue: after(index), request }).collect()
}

/// Runs `steps` on `model` from `start_ns` on, in order of their submission.
///
/// # Errors
/// A step that waits for itself or a later one, or that the device refuses; the model has taken the steps before it.
pub fn run(model: &mut Model, start_ns: u64, steps: &[Step]) -> Result<Outcome, ReplayError> {
    let mut waiting = Waiting::new(steps)?;
    let mut submitted_ns = vec![0; steps.len()];
    let mut completions: Vec<Option<Completion>> = vec![None; steps.len()];
    let mut total_ns = 0;
    while let Some((at_ns, index)) = waiting.next() {
        let request = steps[index].request;
        if let Some(refusal) = request.refusal(model.capacity_bytes()) {
            return Err(ReplayError::Refused { step: index, refusal });
        }
        let done = model.submit(start_ns + at_ns, request);
        let relative =
            Completion { start_ns: done.start_ns - start_ns, done_ns: done.done_ns - start_ns, ..done };
        waiting.completed(index, relative.done_ns);
        total_ns = total_ns.max(relative.done_ns);
        submitted_ns[index] = at_ns;
        completions[index] = Some(relative);
    }
    Ok(Outcome { submitted_ns, completions: completions.into_iter().flatten().collect(), total_ns })
}

/// Steps whose time is known, and those that wait for another.
struct Waiting {
    ready: std::collections::BTreeSet<(u64, usize)>,
    /// For each step, those that wait for it and their think time.
    followers: Vec<Vec<(usize, u64)>>,
}

impl Waiting {
    fn new(steps: &[Step]) -> Result<Self, ReplayError> {
        let mut waiting = Waiting { ready: Default::default(), followers: vec![Vec::new(); steps.len()] };
        for (index, step) in steps.iter().enumerate() {
            match step.issue {
                Issue::At(at_ns) => drop(waiting.ready.insert((at_ns, index))),
                Issue::After { request, think_ns } if request < index => {
                    waiting.followers[request].push((index, think_ns));
                }
                Issue::After { request, .. } => {
                    return Err(ReplayError::WaitsForLater { step: index, request });
                }
            }
        }
        Ok(waiting)
    }

    fn next(&mut self) -> Option<(u64, usize)> {
        self.ready.pop_first()
    }

    fn completed(&mut self, index: usize, done_ns: u64) {
        for (follower, think_ns) in std::mem::take(&mut self.followers[index]) {
            self.ready.insert((done_ns + think_ns, follower));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::description::Description;

    fn model() -> Model {
        Model::new(&Description::named("galaxy-s3-emmc").unwrap(), 1 << 30)
    }

    #[test]
    fn a_closed_loop_takes_its_latencies_and_the_hosts_time() {
        let requests = [Request::write(0, 4096), Request::flush(), Request::read(8192, 4096)];
        let outcome = run(&mut model(), 0, &one_by_one(requests, 1000)).unwrap();
        let latencies: u64 = (0..3).map(|step| outcome.latency_ns(step)).sum();
        assert_eq!(outcome.total_ns, latencies + 2000);
    }

    #[test]
    fn an_open_loop_submits_when_it_is_told() {
        let steps: Vec<Step> = [500, 0, 1_000_000_000]
            .map(|at_ns| Step { issue: Issue::At(at_ns), request: Request::write(0, 4096) })
            .into();
        let outcome = run(&mut model(), 7, &steps).unwrap();
        assert_eq!(outcome.submitted_ns, [500, 0, 1_000_000_000]);
        assert!(
            outcome.latency_ns(0) > outcome.latency_ns(1),
            "the second in the list was first on the device"
        );
    }

    #[test]
    fn a_step_that_waits_for_a_later_one_is_refused() {
        let wait = |request| Step { issue: Issue::After { request, think_ns: 0 }, request: Request::flush() };
        assert!(run(&mut model(), 0, &[wait(0)]).unwrap_err().to_string().contains("not before it"));
        let far = Step { issue: Issue::At(0), request: Request::read(1 << 30, 512) };
        assert!(run(&mut model(), 0, &[far]).unwrap_err().to_string().contains("step 0"));
    }
}
