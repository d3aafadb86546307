//! Processes that a test starts: it waits for them no longer than it said, and they are gone when it ends.

use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use super::place::{Scratch, needs_root, skipped};
use super::sqlite::extension_path;

/// Debian's Python, whose sqlite3 module uses Debian's SQLite and can load extensions. (The first `python3` of the PATH
/// may be another, and many are built without that.)
const PYTHON: &str = "/usr/bin/python3";

/// A script of this folder.
pub fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real").join(name)
}

/// `python3 SCRIPT ARGUMENTS`, with WALDIO_LIBRARY naming the library under test.
pub fn python(name: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(PYTHON);
    command.arg(script(name)).args(arguments).env("WALDIO_LIBRARY", extension_path());
    // What they share would be left beside them, compiled.
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// Why Debian's Python cannot be used here, if it cannot.
pub fn no_python() -> Option<String> {
    (!Path::new(PYTHON).exists()).then(|| format!("{PYTHON} is not installed"))
}

/// A child whose lines are read as they come; killed when dropped.
pub struct Running {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Running {
    /// Starts it. What it says on stderr is the test's.
    pub fn start(command: &mut Command) -> Running {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Running { child, lines }
    }

    /// As `start`; it reads what it is told.
    pub fn start_with_input(command: &mut Command) -> Running {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Running { child, lines }
    }

    /// Writes to its standard input.
    pub fn tell(&mut self, text: &str) {
        self.child.stdin.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
    }

    /// Waits until it says that it is ready (`say_ready`).
    #[track_caller]
    pub fn wait_until_ready(&mut self) {
        while self.line().expect("it ended") != "ready" {}
    }

    /// Its next line; `None` when it closed its output. Blocks: a child must bound its own time.
    pub fn line(&mut self) -> Option<String> {
        self.lines.next().map(Result::unwrap)
    }

    /// SIGKILL, without waiting. It must have been running: who ended by itself failed.
    #[track_caller]
    pub fn kill(&mut self) {
        let ended = self.child.try_wait().unwrap();
        assert!(ended.is_none(), "the child ended by itself: {}", ended.unwrap());
        self.child.kill().unwrap();
    }

    /// Every line that is left, and whether it ended well.
    pub fn finish(self) -> (Vec<String>, bool) {
        let (lines, status) = self.finish_with_status();
        (lines, status.success())
    }

    /// Every line that is left, and how it ended.
    pub fn finish_with_status(mut self) -> (Vec<String>, ExitStatus) {
        let lines = self.lines.by_ref().map_while(Result::ok).collect();
        (lines, self.child.wait().unwrap())
    }

    /// Its process number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

/// In a child: says that it is ready, and returns with the next line of its input (`Running::tell`).
pub fn say_ready_and_wait() {
    println!("\nready");
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a command to its end and gives its output; kills it and panics when that takes longer than `limit`.
pub fn output_within(limit: Duration, command: &mut Command) -> Output {
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut out, mut err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let (out, err) = std::thread::scope(|scope| {
        let read = |from: &mut dyn Read| {
            let mut bytes = Vec::new();
            let _ = from.read_to_end(&mut bytes);
            bytes
        };
        let out = scope.spawn(move || read(&mut out));
        let err = scope.spawn(move || read(&mut err));
        let began = Instant::now();
        while child.try_wait().unwrap().is_none() {
            if began.elapsed() > limit {
                let _ = child.kill();
                let _ = child.wait();
                panic!("{command:?} did not end within {limit:?}");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        (out.join().unwrap(), err.join().unwrap())
    });
    Output { status: child.wait().unwrap(), stdout: out, stderr: err }
}

/// Runs a command that must succeed; its output, trimmed.
#[track_caller]
pub fn must(command: &mut Command) -> String {
    let output = output_within(Duration::from_secs(60), command);
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{out}{err}", output.status);
    out.trim().to_owned()
}

/// What holds the name of the test that runs as another one's child, and what it was given.
const ROLE: &str = "JOJ_TEST_ROLE";

/// This executable, to run the test `name` alone; it finds `arguments` in `role`.
pub fn again(name: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    alone(&mut command, name).env(ROLE, format!("{name}\n{}", arguments.join("\n")));
    command
}

/// What the test `name` was given, in a process that `again` describes.
pub fn role(name: &str) -> Option<Vec<String>> {
    let given = std::env::var(ROLE).ok()?;
    let (whose, arguments) = given.split_once('\n')?;
    (whose == name).then(|| arguments.split('\n').map(str::to_owned).collect())
}

fn alone<'command>(command: &'command mut Command, name: &str) -> &'command mut Command {
    command.args([name, "--exact", "--nocapture", "--test-threads=1"])
}

/// Runs `body` in a process of its own, for tests that change what a process has once only (its default VFS, its umask,
/// its memory) or may kill it. Root's gets its own mounts besides: they are gone with it, whatever ended it. `name` is
/// the calling test's.
#[track_caller]
pub fn in_own_process(name: &str, body: impl FnOnce()) {
    const MARK: &str = "JOJ_TEST_OWN_PROCESS";
    if std::env::var(MARK).is_ok_and(|inside| inside == name) {
        return body();
    }
    let scratch = Scratch::new(name);
    let executable = std::env::current_exe().unwrap();
    let mut command = if needs_root().is_ok() {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "--"]).arg(executable);
        command
    } else {
        Command::new(executable)
    };
    alone(&mut command, name).env(MARK, name).env("JOJ_TEST_DIR", scratch.path());
    let output = output_within(Duration::from_secs(120), &mut command);
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out.contains("1 passed"), "{name}: {}\n{out}{err}", output.status);
    err.lines().filter_map(|line| line.strip_prefix("skipped: ")).for_each(skipped);
}
