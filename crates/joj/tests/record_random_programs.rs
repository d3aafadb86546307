//! Goal: whatever a program does with its names, a replay of its recording leaves the files that it left, or says what it lacks.
//! Method: a program in C makes random calls (record/random_program.c), in a directory with files that were there before, two of them
//! with several names. `SEEDS=100-120` tries other seeds.

mod record;
mod replay;

use std::fs;
use std::path::Path;

use record::same_tree::with_files_before;

fn prepare(place: &Path) {
    for (name, bytes) in [("old", 5000), ("e", 0), ("full/a", 700)] {
        let path = place.join(name);
        fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        fs::write(&path, vec![b'a'; bytes]).expect("a file");
    }
    fs::create_dir(place.join("empty")).expect("a directory");
    for (one, other) in [("old", "twin"), ("old", "full/third"), ("full/a", "full/b")] {
        fs::hard_link(place.join(one), place.join(other)).expect("a second name");
    }
}

#[test]
fn random_programs_come_out_the_same() {
    let words = std::env::var("SEEDS").unwrap_or_else(|_| "1-4".to_owned());
    let (first, last) = words.split_once('-').expect("first-last");
    let [first, last] = [first, last].map(|seed| seed.parse::<u32>().expect("a number"));
    for seed in first..=last {
        let source = format!("#define SEED {seed}UL\n{}", include_str!("record/random_program.c"));
        with_files_before(&format!("random-{seed}"), prepare, &source);
    }
}
