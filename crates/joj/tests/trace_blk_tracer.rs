//! Goal: joj trace misses no request that the kernel's own tracer of block devices (blktrace's) sees.
//! Method: both at once on a loop device with SQLite's commits; issued writes are compared one by one, in their order. Not those
//! completed: that comes in an interrupt, and kernels are about that run eBPF programs in no interrupt of some processes.

mod trace;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use trace::runs::{number, read};
use trace::volume::{has_backend, joj, run, volume_or_skip};

const TRACING: &str = "/sys/kernel/tracing";

/// The tracer `blk` on one disk, in the words of blktrace; off again with the value.
struct BlkTracer {
    switch: String,
}

impl BlkTracer {
    /// `Err` says why this machine has none to spare.
    fn start(disk: &str) -> Result<Self, String> {
        let said = |name: &str| fs::read_to_string(format!("{TRACING}/{name}")).unwrap_or_default();
        if !said("available_tracers").split_whitespace().any(|tracer| tracer == "blk") {
            return Err("this kernel has no tracer `blk`, or tracefs is not mounted".to_owned());
        }
        if said("current_tracer").trim() != "nop" {
            return Err(format!("somebody uses the tracer `{}`", said("current_tracer").trim()));
        }
        if !said("set_event").trim().is_empty() {
            return Err("somebody traces events, and would lose them".to_owned());
        }
        let tracer = Self { switch: format!("/sys/block/{disk}/trace/enable") };
        for (name, value) in [("trace", ""), ("current_tracer", "blk"), ("options/blk_classic", "1")] {
            set(&format!("{TRACING}/{name}"), value)?;
        }
        set(&tracer.switch, "1")?;
        Ok(tracer)
    }

    /// (first sector, sectors) of each write that was issued: `7,0 0 17704.897 14 D WSM 305448 + 24 [jbd2/loop0-8]`.
    fn writes(&self) -> Vec<(i64, i64)> {
        let text = fs::read_to_string(format!("{TRACING}/trace")).expect("a trace");
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let words = lines.map(|line| line.split_whitespace().collect::<Vec<_>>());
        let issued = words.filter(|words| words.len() > 7 && words[4] == "D" && words[5].contains('W'));
        let place = |words: Vec<&str>| {
            let sectors = if words[7] == "+" { words[8].parse().expect("sectors") } else { 0 };
            (words[6].parse().expect("a sector"), sectors)
        };
        issued.map(place).filter(|(_, sectors)| *sectors > 0).collect()
    }
}

impl Drop for BlkTracer {
    fn drop(&mut self) {
        let _ = set(&self.switch, "0");
        let _ = set(&format!("{TRACING}/options/blk_classic"), "0");
        let _ = set(&format!("{TRACING}/current_tracer"), "nop");
        let _ = set(&format!("{TRACING}/trace"), "");
    }
}

fn set(path: &str, value: &str) -> Result<(), String> {
    fs::write(path, format!("{value}\n")).map_err(|error| format!("{path}: {error}"))
}

/// The same of a saved trace, whose runs are put together to requests again.
fn traced_writes(trace: &Path, runs: &Path) -> Vec<(i64, i64)> {
    let export = format!("runs={}", runs.display());
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_joj"));
    run(command.args(["trace", "--read"]).arg(trace).args(["--export", &export])).expect("runs");
    let mut requests: BTreeMap<(i64, i64), (i64, i64)> = BTreeMap::new();
    for line in read(runs).iter().filter(|line| line["operation"] == "write") {
        let (first, bytes) = (number(line, "first_sector"), number(line, "byte_length"));
        let times = (number(line, "issued_ns"), number(line, "completed_ns"));
        let request = requests.entry(times).or_insert((first, 0));
        *request = (request.0.min(first), request.1 + bytes / 512);
    }
    requests.into_values().collect()
}

fn compare(backend: &str) {
    let Some(volume) = volume_or_skip("ext4").filter(|_| has_backend(backend)) else { return };
    let disk = run(std::process::Command::new("findmnt").args(["-no", "SOURCE"]).arg(volume.path()));
    let disk = disk.expect("a loop device").trim().trim_start_matches("/dev/").to_owned();
    let tracer = match BlkTracer::start(&disk) {
        Ok(tracer) => tracer,
        Err(reason) => return println!("skipped: {reason}"),
    };
    let (saved, runs) = (volume.beside("saved.parquet"), volume.beside("runs.csv"));
    let options = ["--backend", backend, "--save", saved.to_str().expect("UTF-8")];
    for mode in ["DELETE", "WAL"] {
        let output = joj(&volume, &options, &[], &volume.inserts(mode, 50));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let (seen, all) = (traced_writes(&saved, &runs), tracer.writes());
        assert!(seen.len() > 50, "{backend} {mode}: {seen:?}");
        let is_there = all.windows(seen.len()).any(|part| part == seen);
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(is_there, "{backend} {mode}: joj {seen:?}, blk {all:?}; {said}");
        fs::remove_file(&saved).expect("gone");
    }
}

#[test]
fn no_write_that_the_block_tracer_sees_is_missing() {
    // One after the other: there is one such tracer.
    compare("bpf");
    compare("tracefs");
}
