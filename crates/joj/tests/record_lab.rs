//! Goal: recording with eBPF costs a program whose commits wait for a phone's flash at most 4 %.
//! Method: the same commits in the emulated machine, recorded and not. Its clock counts instructions, so one run each tells.
//!
//! Where QEMU is missing, or Debian's packages cannot be had, this is skipped, and says so.

mod emulated;

use std::fs;
use std::io::{Write, stderr};
use std::process::Command;

use emulated::{TestFiles, missing};
use joj_analysis::bench::run::Run;
use joj_analysis::lab::cell::Recorder;
use joj_analysis::lab::result::{CellOutcome, LabResult};

const PLAN: &str = "
format = 'joj-lab-plan'
version = 2
title = 'recorded and not'
[[matrix]]
filesystem = ['ext4']
device = ['galaxy-s5-emmc']
mode = ['delete', 'wal']
recorder = ['none', 'bpf']
transactions = 200
[[matrix]]
filesystem = ['ext4']
device = ['galaxy-s5-emmc']
mode = ['wal']
recorder = ['ptrace']
transactions = 20
";

/// Most that a recorded commit may take, of what another one takes. The mean has joj's own work in it, which a debug build does not do
/// as fast.
const MEDIAN_MAX: f64 = 1.04;
const MEAN_MAX: f64 = if cfg!(debug_assertions) { 1.15 } else { 1.04 };

#[test]
fn recording_costs_little_where_commits_wait_for_flash_in_the_lab() {
    if let Some(reason) = missing() {
        // Past the test's capture, so that it is counted.
        let _ = writeln!(stderr(), "skipped: joj: {reason}");
        return;
    }
    let files = TestFiles::new("recorder");
    let (plan, json) = (files.write("plan.toml", PLAN), files.name("result.json"));
    let mut joj = Command::new(env!("CARGO_BIN_EXE_joj"));
    let output = joj.args(["lab", "run", &plan, "--json", &json]).output().expect("joj");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let result: LabResult = serde_json::from_slice(&fs::read(&json).expect("a result")).expect("JSON");
    let runs: Vec<(Recorder, &Run)> = result
        .cells
        .iter()
        .map(|cell| match &cell.outcome {
            CellOutcome::Measured(measured) => (cell.cell.recorder, &measured.run),
            CellOutcome::Failed(reason) => panic!("{}: {reason}", cell.cell),
        })
        .collect();
    let recorders: Vec<Recorder> = runs.iter().map(|(recorder, _)| *recorder).collect();
    let pair = [Recorder::None, Recorder::Bpf];
    assert_eq!(recorders, [&pair[..], &pair, &[Recorder::Ptrace]].concat());
    for pair in runs[..4].chunks(2) {
        let [alone, recorded] = [pair[0].1, pair[1].1];
        let median = recorded.latency.p50_ns as f64 / alone.latency.p50_ns as f64;
        let mean = recorded.elapsed_ns as f64 / alone.elapsed_ns as f64;
        println!("a recorded commit takes {median:.3} (median), {mean:.3} (mean) of another one");
        assert!(median > 1.002, "nobody recorded: {median}");
        assert!(median <= MEDIAN_MAX && mean <= MEAN_MAX, "{median} (median), {mean} (mean)");
    }
    let [traced, alone] = [runs[4].1, runs[2].1].map(|run| run.latency.p50_ns);
    assert!(traced > alone, "a tracer costs two stops a call: {traced} and {alone} ns");
}
