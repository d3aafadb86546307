//! joj trace beside a command: what each request of the volume is for.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use crate::lab::guest::error::{GuestError, cannot};
use crate::lab::job::guest_path;

/// Where it puts what it saw.
const RUNS: &str = "/tmp/runs.csv";
/// It has begun when this comes back from what it traces, a `cat`.
const BEGUN: &str = "begun";

/// A trace that goes on.
#[derive(Debug)]
pub struct RequestTracer(Child);

impl RequestTracer {
    /// Begins, and comes back when every request is seen from now on.
    /// # Errors
    /// The kernel does not let it, or has no tracing.
    pub fn begin() -> Result<RequestTracer, GuestError> {
        let problem = &cannot("start joj trace");
        let runs = format!("runs={RUNS}");
        let child = Command::new(guest_path::JOJ)
            .args(["trace", "--everybody", "--device", guest_path::VOLUME, "--export", &runs])
            .args(["--json", "/tmp/summary.json", "--", "/bin/busybox", "cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(problem)?;
        let mut tracer = RequestTracer(child);
        let mut said = String::new();
        if let (Some(input), Some(output)) = (&mut tracer.0.stdin, &mut tracer.0.stdout) {
            writeln!(input, "{BEGUN}").map_err(problem)?;
            BufReader::new(output).read_line(&mut said).map_err(problem)?;
        }
        if said.trim() != BEGUN {
            tracer.finish()?;
            return Err(problem(io::Error::other("it did not begin")));
        }
        Ok(tracer)
    }

    /// Ends it, and gives what it saw (the export `runs`).
    /// # Errors
    /// It failed.
    pub fn end(mut self) -> Result<Vec<u8>, GuestError> {
        self.finish()?;
        fs::read(RUNS).map_err(cannot(format!("read {RUNS}")))
    }

    fn finish(&mut self) -> Result<(), GuestError> {
        drop(self.0.stdin.take());
        let mut said = String::new();
        if let Some(stderr) = self.0.stderr.take() {
            let _ = io::read_to_string(stderr).map(|text| said = text);
        }
        let status = self.0.wait().map_err(cannot("wait for joj trace"))?;
        if status.success() {
            return Ok(());
        }
        let said = said.trim().replace('\n', " | ");
        Err(GuestError::Watcher { who: "joj trace".to_owned(), said })
    }
}
