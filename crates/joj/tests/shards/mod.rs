//! Goal: what four jobs of a Slurm array measure becomes the result of one run.
//! Method: the script of docs/shards.md, as Slurm would start it, for a plan of four cells, in another order than that of the cells.
//!
//! Two runs of a cell differ by some nanoseconds, and by a tick that falls into it, shared out or not. All else is the same.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::emulated::{TestFiles, missing};
use crate::waldio::skipped;
use crate::{assert_same_rate, lab, result, said, schema};

/// As the cells of `PLAN`, which give the same rates again.
const FOUR_CELLS: &str = "
format = 'joj-lab-plan'
version = 2
title = 'four cells'
[[matrix]]
filesystem = ['ext4', 'f2fs']
device = ['transcend-card-s3']
mode = ['wal', 'delete']
transactions = 12
";

/// The script that the page has for Slurm.
fn script() -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/shards.md");
    let page = fs::read_to_string(page).expect("the page");
    let (_, behind) = page.split_once("```bash\n").expect("a script");
    behind.split_once("```").expect("its end").0.to_owned()
}

/// What the guest's clock and its ticks make.
const TIMES: [&str; 7] = [
    "elapsed_ns",
    "latency",
    "cpu_user_us",
    "cpu_system_us",
    "others_cores",
    "tick_share",
    "switches_involuntary",
];

/// The same without these.
fn without_times(mut result: Value) -> Value {
    for cell in result["cells"].as_array_mut().expect("cells") {
        let measured = &mut cell["outcome"]["measured"];
        measured["quantiles_ns"].take();
        for figure in TIMES {
            // `others_cores` may be null.
            let value = measured["run"].get_mut(figure).unwrap_or_else(|| panic!("no {figure}"));
            value.take();
        }
    }
    result
}

#[test]
fn an_array_of_four_jobs_measures_what_one_run_does_in_the_lab() {
    if let Some(reason) = missing() {
        return skipped(&reason);
    }
    let files = TestFiles::new("shards");
    let (plan, script) = (files.write("plan.toml", FOUR_CELLS), files.write("shards.sh", &script()));
    assert!(fs::read_to_string(&script).expect("it").contains("#SBATCH --array=1-4\n"));
    let program = PathBuf::from(env!("CARGO_BIN_EXE_joj"));
    let place = program.parent().expect("a directory").display().to_string();
    let path = format!("{place}:{}", std::env::var("PATH").expect("a PATH"));
    for number in ["3", "1", "4", "2"] {
        let variables = [("SLURM_ARRAY_TASK_ID", number), ("SLURM_ARRAY_TASK_COUNT", "4"), ("PATH", &path)];
        let job =
            Command::new("bash").args([&script, &plan]).envs(variables).current_dir(&files.path).output();
        let job = job.expect("bash");
        assert!(job.status.success(), "{}", said(&job));
        assert!(said(&job).contains(&format!("shard {number}/4: 1 of 1: ")), "{}", said(&job));
    }
    let part = |number: u32| files.name(&format!("parts/{number}.json"));
    schema::holds_of_text("lab-part", &fs::read(part(2)).expect("a part"), &[]);
    // A fifth shard of five has no cell of four.
    let empty = files.name("empty.json");
    let fifth = lab(&["run", &plan, "--shard", "5/5", "--json", &empty]);
    assert!(fifth.status.success() && said(&fifth).contains("shard 5/5: no cell of 4"), "{}", said(&fifth));

    let (merged, whole) = (files.name("merged.json"), files.name("whole.json"));
    let parts = [4, 2, 3, 1].map(part);
    let words: Vec<&str> = parts.iter().map(String::as_str).collect();
    let joined = lab(&[&["merge"], &words[..], &["--json", &merged]].concat());
    let run = lab(&["run", &plan, "--json", &whole]);
    assert!(joined.status.success() && run.status.success(), "{}\n{}", said(&joined), said(&run));
    let [merged, whole] = [&merged, &whole].map(|file| result(file));
    schema::holds("lab", &merged, &[]);
    for (at, cell) in merged["cells"].as_array().expect("cells").iter().enumerate() {
        let of_shard = result(&part(u32::try_from(at).expect("few") + 1));
        assert_eq!(cell["outcome"], of_shard["outcomes"][0]["outcome"], "cell {at}");
        let both = [cell, &whole["cells"][at]].map(|cell| &cell["outcome"]["measured"]);
        assert_same_rate(&format!("cell {at}"), both, [0; 2]);
    }
    assert_eq!(result(&empty)["machine"], whole["machine"], "a shard without a cell knows its machine");
    assert_eq!(without_times(merged), without_times(whole), "but for times");
}
