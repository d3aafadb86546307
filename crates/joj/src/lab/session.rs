//! A plan, measured in one emulated machine after another until each cell has a report.

use joj_analysis::lab::cell::Cell;

use super::host_share::HostShare;
use super::image::{self, Contents};
use super::job::{CellReport, Job};
use super::life::Guest;
pub use super::life::{MEMORY_MIB, Stop};
use super::packages::Packages;
use crate::bench::progress::Progress;

/// What a session needs.
#[derive(Debug)]
pub struct Session<'a> {
    /// The plan's cells.
    pub cells: &'a [Cell],
    /// Kernel and programs.
    pub packages: &'a Packages,
    /// joj and libraries.
    pub contents: &'a Contents,
    /// The job but for its cells.
    pub job: Job,
    /// How long a cell may take, in seconds of this machine.
    pub cell_seconds: u64,
}

impl Session<'_> {
    /// Measures all cells; `done` is told each report, with the share that holds the cell's trace.
    /// # Errors
    /// [`Stop`]; what `done` was told stands.
    pub fn run(
        &self,
        progress: &mut Progress,
        done: &mut dyn FnMut(usize, CellReport, &HostShare),
    ) -> Result<(), Stop> {
        let share = HostShare::create()?;
        let file = share.beside("image");
        image::write(&file, self.contents, self.packages)?;
        let mut left: Vec<usize> = (0..self.cells.len()).collect();
        while !left.is_empty() {
            let cells = left.iter().map(|index| (*index, self.cells[*index].clone())).collect();
            share.put_job(&Job { cells, ..self.job.clone() })?;
            let guest = Guest {
                packages: self.packages,
                image: &file,
                share: &share,
                unit_seconds: self.cell_seconds,
            };
            let name = |index: usize| self.cells[index].to_string();
            let life = guest.live(&name, progress, &mut |index| {
                left.retain(|other| *other != index);
                done(index, share.report(index), &share);
            })?;
            let said = life.said();
            match life.running {
                // A cell that ends the guest, or takes for ever, costs that cell.
                Some(index) => {
                    left.retain(|other| *other != index);
                    done(index, Err(format!("the guest ended in it; its console said: {said}")), &share);
                }
                None if !life.ready => {
                    return Err(Stop::Failed(format!("the guest did not start; its console said: {said}")));
                }
                None if !left.is_empty() => {
                    return Err(Stop::Failed(format!(
                        "the guest ended between two cells; its console said: {said}"
                    )));
                }
                None => {}
            }
        }
        Ok(())
    }
}
