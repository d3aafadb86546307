//! `--waldio-study`: its parts one after the other, each with its rounds.

use joj_analysis::bench::document::Limit;
use joj_analysis::bench::study::parts::{Study, StudyPart};

use crate::bench::ask::Stop;
use crate::bench::initialisation;
use crate::bench::patterns;
use crate::bench::plans::study::StudyPlan;
use crate::bench::progress::Progress;
use crate::bench::session::{Collected, Session};
use crate::bench::table_two;

/// Measures `plan` with what `session` has.
/// # Errors
/// [`Stop::Signal`] and [`Stop::Full`]; a row that fails alone is marked instead.
pub fn measure(
    session: &Session<'_>,
    plan: &StudyPlan,
    progress: &mut Progress,
) -> Result<(Study, Vec<Limit>), Stop> {
    let mut limits = Collected::new(std::iter::empty());
    let mut study = Study::default();
    for part in &plan.parts {
        match part {
            StudyPart::Init => {
                study.initialisation = initialisation::measure(session, &mut limits, progress)?;
            }
            StudyPart::Alignment => study.patterns = patterns::measure(session, &mut limits, progress)?,
            StudyPart::Table2 => {
                study.table_two = table_two::measure(session, &plan.table_two, &mut limits, progress)?;
            }
        }
    }
    Ok((study, limits.finish().1))
}
