//! A command of the host's, run with the host's files and an emulated device.

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;

use joj_analysis::bench::run::DeviceDelta;
use joj_analysis::lab::exec_result::CommandRun;

use crate::lab::guest::command::host_files::{HostFiles, HostRequests, below_root};
use crate::lab::guest::command::rooted::{self, RunPlace};
use crate::lab::guest::console::{FIRST_RUN, KEEPING, say_doing};
use crate::lab::guest::error::{GuestError, cannot};
use crate::lab::guest::stand::{Stand, align};
use crate::lab::job::guest_path;
use crate::lab::jobs::exec::{ExecJob, taken_file};
use crate::machine::files::counters::Sources;
use crate::machine::files::place::Place;
use crate::machine::proc::clock::shared_ns;

/// Where its output goes, which is not below its root.
const OUTPUT: [&str; 2] = ["/tmp/stdout", "/tmp/stderr"];

/// Runs the command of a job.
#[derive(Debug)]
pub struct Executor<'job> {
    job: &'job ExecJob,
    share: &'job Path,
}

/// The end of a run.
struct Ended {
    status: ExitStatus,
    elapsed_ns: u64,
    device: Option<DeviceDelta>,
    host_requests: u64,
}

impl<'job> Executor<'job> {
    /// For the volumes of `job`; what the command leaves goes to `share`.
    pub fn new(job: &'job ExecJob, share: &'job Path) -> Executor<'job> {
        Executor { job, share }
    }

    /// Runs the command on volume `number`, twice, and tells of the second time.
    /// # Errors
    /// What could not be set up, or that the command could not be started.
    pub fn run(&self, number: usize) -> Result<CommandRun, GuestError> {
        let mut host = HostFiles::mount()?;
        say_doing(FIRST_RUN);
        let used = self.on_volume(number, || {
            let used = host.watch()?;
            self.spawn()?;
            used.list()
        })?;
        say_doing(KEEPING);
        host.keep(&used)?;
        say_doing("running for the second time");
        let ended = self.on_volume(number, || {
            let ended = self.spawn()?;
            self.take(number)?;
            Ok(ended)
        })?;
        let [stdout, stderr] = OUTPUT.map(|file| {
            fs::read(file).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
        });
        Ok(CommandRun {
            exit_code: ended.status.code(),
            signal: ended.status.signal(),
            elapsed_ns: ended.elapsed_ns,
            device: ended.device,
            stdout,
            stderr,
            host_requests: ended.host_requests,
        })
    }

    /// Does `run` on a new volume, with what is a run's own.
    fn on_volume<T>(
        &self,
        number: usize,
        run: impl FnOnce() -> Result<T, GuestError>,
    ) -> Result<T, GuestError> {
        let _stand = Stand::set_up(&self.job.volumes[number], &self.job.setting)?;
        let place = RunPlace::enter()?;
        let done = run();
        rooted::end_all();
        let left = place.leave();
        done.and_then(|done| left.map(|()| done))
    }

    /// Leaves the files that are to be kept in the share.
    fn take(&self, number: usize) -> Result<(), GuestError> {
        for (place, path) in self.job.take.iter().enumerate() {
            let taken = fs::copy(below_root(path), self.share.join(taken_file(number, place)));
            taken.map_err(cannot(format!("keep {path}")))?;
        }
        Ok(())
    }

    fn spawn(&self) -> Result<Ended, GuestError> {
        let [stdout, stderr] = OUTPUT.map(|file| File::create(file).map_err(cannot(format!("make {file}"))));
        let mut command = rooted::command(&self.job.command, &self.job.environment);
        command.stdout(stdout?).stderr(stderr?);
        let sources = Sources::of(&Place::of(Path::new(guest_path::VOLUME)));
        align();
        let requests = HostRequests::begin()?;
        let (counted, began_ns) = (sources.read(), shared_ns());
        let status = command.status().map_err(cannot(format!("start {}", self.job.command[0])))?;
        let elapsed_ns = shared_ns() - began_ns;
        let device = sources.read().device_since(&counted);
        Ok(Ended { status, elapsed_ns, device, host_requests: requests.count()? })
    }
}
