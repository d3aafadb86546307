//! Goal: with several processes that sync at once, what the filesystem's journal writes stands with a call that waited for it.
//! Method: four processes append and sync on one filesystem. A call that returned before the commit that stands with it was durable did
//! not wait for it: by the calls' ends and the journal's requests of the same trace, which owe nothing to the attribution.

mod trace;

use std::collections::HashMap;

use serde_json::Value;
use trace::runs::{Line, number, read};
use trace::volume::{Volume, has_backend, joj, volume_or_skip};

/// Four processes, each with files of its own. Each round makes some, so that XFS's checkpoints are too large for one record of its log:
/// kernel threads write the others. Some rounds sync the directory, which waits for whatever there is to commit. Every third round writes
/// in place: that needs a flush and no commit.
const WRITERS: &str = "
import os, sys
block = b'x' * 4096
children = []
for number in range(4):
    child = os.fork()
    if not child:
        directory = sys.argv[1] + '/%d' % number
        os.mkdir(directory)
        of_directory = os.open(directory, os.O_RDONLY)
        file = os.open(directory + '/log', os.O_CREAT | os.O_RDWR)
        os.write(file, block)
        os.fsync(file)
        for number in range(int(sys.argv[2])):
            if number % 3 == 2:
                os.pwrite(file, block, 0)
                os.fdatasync(file)
                continue
            if number % 2:
                for other in range(50):
                    os.close(os.open(directory + '/%d-%d' % (number, other), os.O_CREAT | os.O_RDWR))
                os.fsync(of_directory)
            os.lseek(file, 0, os.SEEK_END)
            os.write(file, block)
            os.fsync(file)
        os._exit(0)
    children.append(child)
for child in children:
    os.waitpid(child, 0)
";
const ROUNDS: u64 = 200;

/// A capture of the four writers.
struct Capture {
    runs: Vec<Line>,
    /// When each sync call returned, by its number.
    ends: HashMap<i64, i64>,
    /// When each commit of the journal began and ended.
    commits: Vec<(i64, i64)>,
}

impl Capture {
    fn of(volume: &Volume, backend: &str) -> Self {
        let script = volume.beside("writers.py");
        std::fs::write(&script, WRITERS).expect("a script");
        let (runs, events) = (volume.beside("runs.csv"), volume.beside("events.jsonl"));
        let exports = [format!("runs={}", runs.display()), format!("jsonl={}", events.display())];
        let options = ["--backend", backend, "--export", &exports[0], "--export", &exports[1]];
        let command = ["/usr/bin/python3".to_owned(), script.display().to_string()];
        let command = [&command[..], &[volume.path().display().to_string(), ROUNDS.to_string()]].concat();
        volume.settle();
        let output = joj(volume, &options, &[], &command);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        if let Ok(directory) = std::env::var("JOJ_KEEP_RUNS") {
            for path in [&runs, &events] {
                let name = format!("{backend}-{}", path.file_name().expect("a name").display());
                std::fs::copy(path, std::path::Path::new(&directory).join(name)).expect("a copy");
            }
        }
        let mut capture = Self { runs: read(&runs), ends: HashMap::new(), commits: Vec::new() };
        capture.take_events(&std::fs::read_to_string(&events).expect("events"));
        capture
    }

    fn take_events(&mut self, text: &str) {
        let device = |event: &Value, field: &str| event[field].as_str().map(str::to_owned);
        let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let (mut begun, mut open, mut commits) = (0, HashMap::new(), HashMap::new());
        let of_volume = self.runs.iter().find(|line| !line["file_device"].is_empty());
        let of_volume = of_volume.map(|line| line["file_device"].clone());
        for event in &events {
            let time = event["time_ns"].as_i64().expect("a time");
            match event["event_type"].as_str().expect("a word") {
                "sync-begin" | "durable-write" => {
                    let device = device(event, "file_device");
                    if device.is_none() || device == of_volume {
                        open.insert(event["thread_id"].as_u64(), begun);
                        begun += 1;
                    }
                }
                "sync-end" => {
                    if let Some(call) = open.remove(&event["thread_id"].as_u64()) {
                        self.ends.insert(call, time);
                    }
                }
                "journal-begin" => drop(commits.insert(event["detail_value"].as_i64(), time)),
                "journal-end" => {
                    if let Some(begin) = commits.remove(&event["detail_value"].as_i64()) {
                        self.commits.push((begin, time));
                    }
                }
                _ => {}
            }
        }
        assert!(begun >= 4 * i64::try_from(ROUNDS).expect("few"), "{begun} calls");
    }

    /// When what a run is part of was complete: the last request of its commit, or its own.
    fn complete(&self, run: &Line, last_of_commit: &HashMap<i64, i64>) -> i64 {
        let own = number(run, "completed_ns");
        self.commit_of(run)
            .and_then(|commit| last_of_commit.get(&commit).copied())
            .map_or(own, |last| last.max(own))
    }

    /// The begin of the commit during which a run was handed over.
    fn commit_of(&self, run: &Line) -> Option<i64> {
        let at = number(run, "queued_ns");
        self.commits.iter().find(|(begin, end)| (*begin..=*end).contains(&at)).map(|(begin, _)| *begin)
    }

    /// Runs of the journal, or flushes, that helpers handed over: how many, how many without a call, how many with one that did not
    /// wait.
    fn owners(&self, wanted: fn(&Line) -> bool) -> [usize; 3] {
        let of_journal: Vec<&Line> = self
            .runs
            .iter()
            .filter(|run| run["class"] == "journal" && !run["queued_by"].starts_with("python"))
            .collect();
        let mut last = HashMap::new();
        // A flush may be told for a commit of before: the block layer makes one for all who wait.
        for run in of_journal.iter().filter(|run| is_write(run)) {
            if let Some(commit) = self.commit_of(run) {
                let complete: &mut i64 = last.entry(commit).or_default();
                *complete = (*complete).max(number(run, "completed_ns"));
            }
        }
        let mut counts = [0; 3];
        for run in of_journal.into_iter().filter(|run| wanted(run)) {
            let call = number(run, "sync_call");
            counts[0] += 1;
            counts[1] += usize::from(call < 0);
            let end = self.ends.get(&call).copied().unwrap_or(i64::MAX);
            counts[2] += usize::from(call >= 0 && end < self.complete(run, &last));
        }
        counts
    }
}

fn is_write(run: &Line) -> bool {
    run["operation"] == "write"
}

fn is_flush(run: &Line) -> bool {
    run["operation"] == "flush"
}

/// `wrong_max`: so many of a thousand may stand with a call that did not wait.
fn check(kind: &str, backend: &str, wrong_max: usize) {
    let Some(volume) = volume_or_skip(kind).filter(|_| has_backend(backend)) else { return };
    let capture = Capture::of(&volume, backend);
    for (what, wanted) in [("writes", is_write as fn(&Line) -> bool), ("flushes", is_flush)] {
        let [all, without, wrong] = capture.owners(wanted);
        let counts = format!("{all} {what}, {without} without a call, {wrong} with a wrong one");
        println!("{kind} {backend}: {counts}");
        assert!(all > 20 && wrong * 1000 <= all * wrong_max, "{kind} {backend}: {counts}");
        assert!(without * 50 <= all, "{kind} {backend}: {counts}");
    }
}

#[test]
fn jbd2s_commits_stand_with_a_call_that_waits_for_them_with_ebpf() {
    check("ext4", "bpf", 2);
}

#[test]
fn jbd2s_commits_stand_with_a_call_that_waits_for_them_with_tracefs() {
    check("ext4", "tracefs", 20);
}

#[test]
fn xfs_log_records_stand_with_a_call_that_waits_for_them_with_ebpf() {
    check("xfs", "bpf", 0);
}

#[test]
fn xfs_log_records_stand_with_a_call_that_waits_for_them_with_tracefs() {
    check("xfs", "tracefs", 150);
}
