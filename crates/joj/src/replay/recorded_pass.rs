//! One more pass of the commits, recorded: a recording of the same transactions in the journal mode that they are replayed in.
//!
//!   databases made | the commits alone, recorded | integrity_check | all of it removed

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

use crate::bench::ask::Asker;
use crate::bench::worker::page_transactions::recorded_pass::{PassStep, RecordedPassTask};
use crate::bench::worker::page_transactions::run::PageTransactionsTask;
use crate::bench::worker::task::Task;
use crate::machine::files::work_dir::WorkDir;
use crate::machine::proc::signal;
use crate::machine::proc::worker_process::Workers;
use crate::record::live;
use crate::replay::error::ReplayError;

/// What the recorded process is to do: a file beside the databases.
const TASK_FILE: &str = "task.json";

/// A recording that goes where the replay goes no further.
pub struct RecordedFile<'a> {
    path: &'a Path,
    is_kept: bool,
}

impl RecordedFile<'_> {
    /// The replay has ended well.
    pub fn keep(mut self) {
        self.is_kept = true;
    }
}

impl Drop for RecordedFile<'_> {
    fn drop(&mut self) {
        if !self.is_kept {
            // What went wrong before is told.
            let _ = fs::remove_file(self.path);
        }
    }
}

/// Makes the pass in a directory that is empty, and is empty afterwards.
/// # Errors
/// It could not be made, or not be recorded: then there is no recording.
pub fn record<'a>(
    workers: &Workers,
    replay: &PageTransactionsTask,
    output: &'a Path,
    work_dir: &WorkDir,
    directory: &Path,
) -> Result<Option<RecordedFile<'a>>, ReplayError> {
    let asker = Asker::new(workers);
    let step = |step| RecordedPassTask { replay: replay.clone(), step };
    let problem = |stop| ReplayError::of_stop(stop, directory);
    asker.ask(&step(PassStep::Make)).map_err(problem)?;
    let task_file = work_dir.path().join(TASK_FILE);
    let file_problem = |error| ReplayError::File { path: task_file.clone(), error };
    fs::write(&task_file, step(PassStep::Commit).line()?).map_err(file_problem)?;
    // What the program was is for whoever looks at the recording later.
    let told: Vec<OsString> = env::args_os().collect();
    let (exit_code, is_written) = live::record_own(output, &workers.words(&task_file), &told)?;
    let file = is_written.then_some(RecordedFile { path: output, is_kept: false });
    if signal::is_stopped() {
        return Err(ReplayError::Stopped);
    }
    if exit_code != 0 {
        return Err(ReplayError::RecordedPass(exit_code));
    }
    asker.ask(&step(PassStep::Check)).map_err(problem)?;
    work_dir.clear().map_err(|error| ReplayError::File { path: work_dir.path().to_owned(), error })?;
    Ok(file)
}
