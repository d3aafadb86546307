//! Crash states, made and looked at in one emulated machine after another until each has a report.

use std::path::Path;

use super::crash_job::{CRASH_JOB_FILE, CrashJob, UnitReport, recording_file};
use super::host_share::HostShare;
use super::image::{self, Contents};
use super::life::Guest;
pub use super::life::Stop;
use super::packages::Packages;
use crate::bench::progress::Progress;

/// What a session needs.
#[derive(Debug)]
pub struct CrashSession<'a> {
    /// The job, with all of its units.
    pub job: CrashJob,
    /// Kernel and programs.
    pub packages: &'a Packages,
    /// joj and libraries.
    pub contents: &'a Contents,
    /// How long a state may take, in seconds of this machine.
    pub state_seconds: u64,
    /// Where recordings are kept, and taken from if they are there.
    pub recordings: Option<&'a Path>,
}

impl CrashSession<'_> {
    /// Does all units; `done` is told each report. A state that ends the guest is told as an error, and costs a boot.
    /// # Errors
    /// [`Stop`]; what `done` was told stands.
    pub fn run(
        &self,
        progress: &mut Progress,
        done: &mut dyn FnMut(usize, Result<UnitReport, String>),
    ) -> Result<(), Stop> {
        let share = HostShare::create()?;
        self.exchange(&|name, kept| std::fs::copy(kept.join(name), share.shared().join(name)));
        let file = share.beside("image");
        image::write(&file, self.contents, self.packages)?;
        let mut left = self.job.units.clone();
        while !left.is_empty() {
            share.put(CRASH_JOB_FILE, &CrashJob { units: left.clone(), ..self.job.clone() })?;
            let guest = Guest {
                packages: self.packages,
                image: &file,
                share: &share,
                unit_seconds: self.state_seconds,
            };
            let life = guest.live(&|unit| self.name(unit), progress, &mut |unit| {
                left.retain(|other| *other != unit);
                let report = share.report(unit);
                if report.is_err() && self.job.unit(unit).state == 0 {
                    let cell = self.job.unit(unit).cell;
                    left.retain(|other| self.job.unit(*other).cell != cell);
                }
                done(unit, report);
            })?;
            let said = life.said();
            match life.running {
                Some(unit) => {
                    let lost = self.job.unit(unit);
                    // Without a recording there are no states.
                    left.retain(|other| {
                        *other != unit && (lost.state != 0 || self.job.unit(*other).cell != lost.cell)
                    });
                    done(unit, Err(format!("its console said: {said}")));
                }
                None if !life.ready => {
                    return Err(Stop::Failed(format!("the guest did not start; its console said: {said}")));
                }
                None if !left.is_empty() => {
                    return Err(Stop::Failed(format!(
                        "the guest ended between two states; its console said: {said}"
                    )));
                }
                None => {}
            }
        }
        self.exchange(&|name, kept| std::fs::copy(share.shared().join(name), kept.join(name)));
        Ok(())
    }

    /// Copies recordings, where they are to be kept; one that is not there yet is no error.
    fn exchange(&self, copy: &dyn Fn(&str, &Path) -> std::io::Result<u64>) {
        let Some(kept) = self.recordings else { return };
        for cell in 0..self.job.cells.len() {
            for end in ["log", "requests", "json"] {
                let _ = copy(&recording_file(cell, end), kept);
            }
        }
    }

    fn name(&self, unit: usize) -> String {
        let unit = self.job.unit(unit);
        let cell = &self.job.cells[unit.cell];
        match unit.state {
            0 => format!("{cell}: recording"),
            state => format!("{cell}: state {state}"),
        }
    }
}
