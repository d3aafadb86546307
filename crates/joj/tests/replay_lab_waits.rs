//! Goal: a process that waits for another one waits in a replay until that one is done, on whatever disk, and not as long as in the
//! recording.
//! Method: a shell whose children save files, and a process that gets a word behind the last, recorded with eBPF in the emulated machine on
//! a slow card and on a quick phone; both recordings replayed on the phone.
//!
//! Where QEMU is missing, or Debian's packages cannot be had, this is skipped, and says so.

mod emulated;
mod replay;
#[allow(dead_code, reason = "other tests use all of it")]
mod waldio;

use std::fs;
use std::path::Path;

use emulated::missing;
use joj_analysis::recording::lab_result::{ReplayLabOutcome, ReplayLabResult, Replayed};
use joj_analysis::recording::outcome::ReplayOutcome;
use replay::{Scratch, joj, told};
use waldio::skipped;

const SAVES: &str = "{ for n in 1 2 3 4 5 6 7 8 9 10; do dd if=/dev/zero of=part bs=64k count=1 conv=fsync 2>/dev/null; done; \
     echo word; } | { read word; echo $word > end; }";

/// How far two replays of one program may differ that were recorded on two disks.
const DIFFERENCE_MAX: f64 = 0.1;

fn replayed(recording: &Path) -> ReplayOutcome {
    let json = recording.with_extension("json");
    let (code, said) =
        told(&joj(&[&"replay", &recording, &"--lab", &"--device", &"galaxy-s5-emmc", &"--json", &json]));
    assert_eq!(code, Some(0), "{said}");
    let result: ReplayLabResult = serde_json::from_slice(&fs::read(&json).expect("a result")).expect("JSON");
    match &result.rows[0].outcome {
        ReplayLabOutcome::Replayed(Replayed::Calls(calls)) => ReplayOutcome::clone(calls),
        other => panic!("{other:?}"),
    }
}

#[test]
fn who_waits_for_another_process_waits_no_longer_on_a_quicker_disk_in_the_lab() {
    if let Some(reason) = missing() {
        skipped(&reason);
        return;
    }
    let scratch = Scratch::new("replay-waits");
    let (app, place) = ("/tmp/app.joj", scratch.as_ref());
    let own = env!("CARGO_BIN_EXE_joj");
    let record: [&dyn AsRef<std::ffi::OsStr>; 9] =
        [&own, &"record", &"--method", &"bpf", &"-o", &app, &"--", &"sh", &"-c"];
    let mut words: Vec<&dyn AsRef<std::ffi::OsStr>> = vec![
        &"lab",
        &"exec",
        &"--device",
        &"transcend,galaxy-s5-emmc",
        &"--take",
        &app,
        &"--take-to",
        &place,
    ];
    words.push(&"--");
    words.extend(record);
    words.push(&SAVES);
    let output = joj(&words);
    let (code, said) = told(&output);
    assert_eq!(code, Some(0), "{}{said}", String::from_utf8_lossy(&output.stdout));
    let [from_card, from_phone] =
        ["ext4-transcend-app.joj", "ext4-galaxy-s5-emmc-app.joj"].map(|name| replayed(&scratch.file(name)));
    let slower = from_card.recorded_elapsed_ns as f64 / from_phone.recorded_elapsed_ns as f64;
    assert!(slower > 2.0, "the disks have to differ: {slower}");
    let difference = from_card.elapsed_ns as f64 / from_phone.elapsed_ns as f64 - 1.0;
    assert!(difference.abs() < DIFFERENCE_MAX, "{difference}: {from_card:?} {from_phone:?}");
}
