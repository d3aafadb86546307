//! Rounds of rows without SQLite: the disk's limit, then the rows, forward in one round, backward in the next.

use crate::bench::ask::Stop;
use crate::bench::progress::Progress;
use crate::bench::session::{Collected, Session};

/// Has `measure` measure each of `rows` in each round.
/// # Errors
/// [`Stop::Signal`] and [`Stop::Full`] of the limit, and whatever `measure` says.
pub fn in_rounds<R>(
    session: &Session<'_>,
    rows: &mut [R],
    (limits, progress): (&mut Collected, &mut Progress),
    name: impl Fn(&R) -> String,
    measure: impl Fn(&mut R, u32) -> Result<(), Stop>,
) -> Result<(), Stop> {
    for round in 0..session.runs {
        progress.round(round, session.runs);
        progress.step("the disk's limit");
        session.measure_limits(round, limits)?;
        let mut order: Vec<&mut R> = rows.iter_mut().collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for row in order {
            progress.step(&name(row));
            measure(row, round)?;
        }
    }
    Ok(())
}
