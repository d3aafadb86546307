//! The shortest program that still fails in the same way: delta debugging over its lines.

use super::program::Program;
use super::verdict::{Failure, Kind};

/// Takes away acts, halves first and single ones last, then options; `fails` runs a program. At most `runs_max` runs.
pub fn shrink(
    program: &Program,
    first: Failure,
    runs_max: usize,
    mut fails: impl FnMut(&Program) -> Option<Failure>,
) -> (Program, Failure) {
    let (mut best, mut failure, mut runs) = (program.clone(), first, 0);
    // Nothing after the failing act matters.
    best.acts.truncate(failure.act + 1);
    let kind = failure.kind;
    let mut try_one = |candidate: Program, best: &mut Program, failure: &mut Failure, runs: &mut usize| {
        *runs += 1;
        match fails(&candidate).filter(|found| same(found.kind, kind)) {
            Some(found) => {
                *best = candidate;
                best.acts.truncate(found.act + 1);
                *failure = found;
                true
            }
            None => false,
        }
    };
    let mut chunk = best.acts.len().div_ceil(2).max(1);
    loop {
        let (mut start, mut progress) = (0, false);
        while start < best.acts.len() && runs < runs_max {
            let mut candidate = best.clone();
            let end = (start + chunk).min(candidate.acts.len());
            candidate.acts.drain(start..end);
            if try_one(candidate, &mut best, &mut failure, &mut runs) {
                progress = true;
            } else {
                start += chunk;
            }
        }
        if runs >= runs_max || chunk == 1 && !progress {
            break;
        }
        chunk = if chunk == 1 { 1 } else { chunk / 2 };
    }
    for who in 0..best.cast.len() {
        let mut candidate = best.clone();
        let role = &mut candidate.cast[who];
        if !std::mem::take(&mut role.parameters).is_empty() && runs < runs_max {
            try_one(candidate, &mut best, &mut failure, &mut runs);
        }
    }
    // Nobody misses who does nothing; but only the last letters can go.
    while best.cast.len() > 1 && runs < runs_max && !best.uses(best.cast.len() - 1) {
        let mut candidate = best.clone();
        candidate.cast.pop();
        if !try_one(candidate, &mut best, &mut failure, &mut runs) {
            break;
        }
    }
    (best, failure)
}

/// A lost row and a damaged database are often one defect, seen earlier or later.
fn same(found: Kind, wanted: Kind) -> bool {
    let harm =
        |kind: Kind| matches!(kind, Kind::Lost | Kind::Damaged | Kind::ContentDiffers | Kind::AnswerDiffers);
    found == wanted || harm(found) && harm(wanted)
}
