//! What every run of a measurement needs: the place, the workers, what they load, and how much is asked for.

use joj_analysis::bench::environment::{SqliteBuild, WaldioFacts};
use joj_analysis::bench::key::JournalMode;

use crate::bench::ask::{Asker, Stop};
use crate::bench::worker::libraries::Libraries;
use crate::bench::worker::limit_run::Calibration;
use crate::bench::worker::task::Task;
use crate::machine::files::counters::Sources;
use crate::machine::files::work_dir::WorkDir;

/// What a measurement needs.
#[derive(Debug)]
pub struct Session<'a> {
    /// Where the files go.
    pub work_dir: &'a WorkDir,
    /// Who does it.
    pub asker: Asker<'a>,
    /// SQLite builds by name.
    pub builds: &'a [SqliteBuild],
    /// The extension.
    pub waldio: Option<&'a WaldioFacts>,
    /// Counters to read.
    pub sources: Sources,
    /// Transactions per run that were asked for.
    pub transactions: u64,
    /// What the disk took for a few writes before.
    pub calibration: Calibration,
    /// Rounds.
    pub runs: u32,
}

impl Session<'_> {
    /// Names of the SQLite builds.
    pub fn build_names(&self) -> Vec<String> {
        self.builds.iter().map(|build| build.name.clone()).collect()
    }

    /// What to load for rows of `mode` with the build `library`.
    pub fn libraries(&self, library: &str, mode: JournalMode) -> Libraries {
        let sqlite = self.builds.iter().find(|build| build.name == library);
        let extension = self.waldio.filter(|_| mode.uses_waldio()).map(|waldio| waldio.file.clone());
        Libraries { sqlite: sqlite.and_then(|build| build.file.clone()), extension, ..Libraries::default() }
    }

    /// Where the files go.
    pub fn directory(&self) -> String {
        self.work_dir.path().to_string_lossy().into_owned()
    }

    /// Has a worker do a task, and removes what it left whatever came of it.
    /// # Errors
    /// Those of the worker; or what it left stays, and the next run would find it.
    pub fn perform<T: Task>(&self, task: &T) -> Result<T::Answer, Stop> {
        let answer = self.asker.ask(task);
        let place = self.work_dir.path().display();
        self.work_dir.clear().map_err(|error| Stop::Failed(format!("cannot empty {place}: {error}")))?;
        answer
    }
}
