//! A part of `joj crash --shard` (docs/crash_format.md), and the result that all of them make.
//!
//! ```text
//! the plan of a filesystem's states   0 1 2 3 4 5 6 7
//! shard 1/3 has                       0     3     6      and shrinks the shortest state of each way to break among them
//! the shortest of all                         4          is the shortest of its own shard's, too: that shard has shrunk it
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::iter::zip;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bench::key::Word;
use crate::lab::program_crash::{
    BrokenStates, Checked, Finding, HostWord, PROGRAM_CRASH_FORMAT, PROGRAM_CRASH_VERSION,
    ProgramCrashResult, ProgramRun, ProgramState, ProgramVolume, broken, found_again,
};
use crate::lab::shards::shard::Shard;
use crate::lab::shards::whole::{Part, differs, machine_differs, made_from_differs};

/// First word of a part.
pub const PROGRAM_CRASH_PART_FORMAT: &str = "joj-crash-part";
/// Version that this joj writes.
pub const PROGRAM_CRASH_PART_VERSION: u32 = 2;

/// What one shard of a program's states gave.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct ProgramCrashPart {
    /// Always `joj-crash-part`.
    pub format: String,
    /// Version of the format, 1 or more.
    pub version: u32,
    /// Its number, from 1 on.
    pub shard: u32,
    /// How many there are.
    pub shards: u32,
    /// What else every shard has to have alike: a checksum of each file by its name, and how states are chosen.
    pub made_from: BTreeMap<String, String>,
    /// The directory of the recordings, as it was given.
    pub recordings: String,
    /// Of each filesystem of the result, what all shards have together.
    pub plans: Vec<StatesPlan>,
    /// What a run with the states of this shard alone gives.
    pub result: ProgramCrashResult,
    /// Of all the rest.
    pub checksum: String,
}

/// The states of one filesystem, those of all shards.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct StatesPlan {
    /// A checksum of the recording; `null` where none could be cut.
    pub recording: Option<String>,
    /// How many there are. A shard has every so-manieth of them.
    pub states: usize,
}

impl ProgramCrashPart {
    /// The result of the parts of all shards, in their order, and the directory of the recordings.
    pub(super) fn join(parts: Vec<ProgramCrashPart>) -> (ProgramCrashResult, String) {
        let mut result = parts[0].result.clone();
        for (number, volume) in result.volumes.iter_mut().enumerate() {
            let of_shards: Vec<&ProgramVolume> =
                parts.iter().map(|part| &part.result.volumes[number]).collect();
            volume.states = joined(&of_shards, parts[0].plans[number].states);
            volume.broken = ways(&of_shards, &volume.states);
            let changed: BTreeSet<&String> =
                of_shards.iter().flat_map(|volume| &volume.changed_files).collect();
            volume.changed_files = changed.into_iter().cloned().collect();
        }
        (result, parts[0].recordings.clone())
    }

    /// Why its volume of this number is not that of `shard`, if it is not.
    fn volume_flaw(&self, number: usize, shard: Shard) -> Option<String> {
        let (volume, plan) = (&self.result.volumes[number], &self.plans[number]);
        let (own, expected) = (volume.states.len(), shard.indices(plan.states).len());
        if own != expected {
            return Some(format!(
                "{} has {own} states where shard {shard} has {expected} of {}",
                name(volume),
                plan.states
            ));
        }
        if !volume.states.is_sorted_by_key(|state| state.at_ns) {
            return Some(format!("the states of {} are not in the order of their times", name(volume)));
        }
        let ways = broken(&volume.states).into_iter().map(|way| way.len());
        let is_told = ways.eq(volume.broken.iter().map(|told| told.states));
        (!is_told).then(|| format!("the broken states of {} are not those that it tells of", name(volume)))
    }
}

/// The states of all shards, in the order of the plan.
fn joined(of_shards: &[&ProgramVolume], all: usize) -> Vec<ProgramState> {
    let shards = of_shards.len();
    (0..all).map(|index| of_shards[index % shards].states[index / shards].clone()).collect()
}

/// The ways to break of all states, each with what the shard of its shortest state found out.
fn ways(of_shards: &[&ProgramVolume], states: &[ProgramState]) -> Vec<BrokenStates> {
    let shards = of_shards.len();
    let of_each: Vec<Vec<Vec<usize>>> = of_shards.iter().map(|volume| broken(&volume.states)).collect();
    let told = |way: Vec<usize>| {
        let (shard, own) = (way[0] % shards, way[0] / shards);
        let place = of_each[shard].iter().position(|way| way[0] == own);
        let place = place.expect("the shortest state of all is the shortest of its shard");
        let told = of_shards[shard].broken[place].clone();
        let group = told.shortest.checked.group();
        let of_others = of_shards.iter().flat_map(|volume| &volume.broken);
        let mut same = of_others.filter(|told| told.shortest.checked.group() == group);
        let again =
            found_again(states, &way).or(told.again).or_else(|| same.find_map(|told| told.again.clone()));
        BrokenStates { states: way.len(), again, ..told }
    };
    broken(states).into_iter().map(told).collect()
}

fn name(volume: &ProgramVolume) -> String {
    format!("{} on {}", volume.filesystem.word(), volume.device)
}

impl Part for ProgramCrashPart {
    const FORMAT: &'static str = PROGRAM_CRASH_PART_FORMAT;
    const VERSION: u32 = PROGRAM_CRASH_PART_VERSION;

    fn numbers(&self) -> (u32, u32) {
        (self.shard, self.shards)
    }

    fn flaw(&self, shard: Shard) -> Option<String> {
        let ProgramCrashResult { format, version, volumes, .. } = &self.result;
        if (format.as_str(), *version) != (PROGRAM_CRASH_FORMAT, PROGRAM_CRASH_VERSION) {
            return Some(format!("its result is of the format {format:?}, version {version}"));
        }
        let [volumes, plans] = [volumes.len(), self.plans.len()];
        if volumes != plans || volumes == 0 {
            return Some(format!("it has {volumes} filesystems, and plans of {plans}"));
        }
        (0..volumes).find_map(|number| self.volume_flaw(number, shard))
    }

    fn checksum_mut(&mut self) -> &mut String {
        &mut self.checksum
    }

    fn difference(&self, other: &ProgramCrashPart) -> Option<String> {
        let (own, its) = (&self.result, &other.result);
        differs("program", &own.command, &its.command)
            .or_else(|| differs("check", &own.check, &its.check))
            .or_else(|| differs("list of this machine's files", &files(own), &files(its)))
            .or_else(|| differs("seed", &own.seed, &its.seed))
            .or_else(|| differs("planted bug", &or_none(&own.planted), &or_none(&its.planted)))
            .or_else(|| machine_differs(&own.machine, &its.machine))
            .or_else(|| made_from_differs(&self.made_from, &other.made_from))
            .or_else(|| differs("number of filesystems", &own.volumes.len(), &its.volumes.len()))
            .or_else(|| {
                let own = zip(&own.volumes, &self.plans);
                zip(own, zip(&its.volumes, &other.plans)).find_map(|(own, its)| volume_differs(own, its))
            })
    }
}

/// A text that may be missing, as people are told of it.
fn or_none(text: &Option<String>) -> &str {
    text.as_deref().unwrap_or("none")
}

/// The words that stand for files of this machine, as people are told of them.
fn files(result: &ProgramCrashResult) -> Vec<String> {
    result.host_words.iter().map(|HostWord { place: _, word, file }| format!("{word} is {file}")).collect()
}

/// The run that was recorded. What the check says where nothing is cut each shard sees for itself.
fn ran(volume: &ProgramVolume) -> Option<ProgramRun> {
    let uncut = Checked { finding: Finding::Kept, said: String::new() };
    volume.run.clone().map(|run| ProgramRun { uncut, ..run })
}

/// In what a filesystem and its recording are those of another run.
fn volume_differs(
    (own, plan): (&ProgramVolume, &StatesPlan),
    (its, its_plan): (&ProgramVolume, &StatesPlan),
) -> Option<String> {
    let of = |what: &str| format!("{what} of {}", name(own));
    if name(own) != name(its) {
        return Some(format!("it ran on {}, not on {}", name(its), name(own)));
    }
    differs(&of("mount options"), &or_none(&own.mount_options), &or_none(&its.mount_options))
        .or_else(|| {
            differs(&of("journal's device"), &or_none(&own.journal_device), &or_none(&its.journal_device))
        })
        .or_else(|| {
            let is_same = plan == its_plan
                && own.is_systematic == its.is_systematic
                && own.same == its.same
                && own.entries == its.entries
                && (plan.recording.is_none() || ran(own) == ran(its) && own.failure == its.failure);
            let why = its.failure.as_ref().or(own.failure.as_ref());
            let why = why.map_or(String::new(), |failure| format!(" ({failure})"));
            (!is_same).then(|| {
                format!(
                    "its {} is another one{why}: all shards take the same --recordings DIR",
                    of("recording")
                )
            })
        })
}

#[cfg(test)]
mod tests {
    //! Goal: parts become the bytes of one run, whatever states broke in whatever way, and parts that do not belong together are told.
    //! Method: made-up states, of which many are as short as each other; what makes the shortest shorter is a function of the state
    //! alone, as it is in the emulated machine. A run with all states against runs with those of a shard.

    use super::*;
    use crate::filesystem::Filesystem;
    use crate::lab::program_crash::WordPlace;
    use crate::lab::result::LabMachine;
    use crate::lab::shards::merge::{Merged, merge};
    use crate::lab::shards::whole::sealed;

    /// The states of a plan, in its order, by a seed.
    fn states(seed: u32, count: u32) -> Vec<ProgramState> {
        let mut number = seed;
        let mut below = |count: u32| {
            number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (number >> 8) % count
        };
        let kept = Checked { finding: Finding::Kept, said: String::new() };
        let mut states: Vec<ProgramState> = (0..count)
            .map(|at| {
                let finding = [Finding::Kept, Finding::Lost, Finding::Corrupt][below(3) as usize];
                let said = format!("{} {at} is gone", ["line", "file"][below(2) as usize]);
                ProgramState {
                    at_ns: 100 + u64::from(below(count / 2 + 1)),
                    missing: format!("{at}:2"),
                    missing_writes: u64::from(below(3)),
                    promised: at as usize,
                    checked: Checked { finding, said },
                    again: (finding != Finding::Kept && below(20) == 0).then(|| kept.clone()),
                }
            })
            .collect();
        states.sort_by_key(|state| (state.at_ns, state.missing_writes));
        states
    }

    fn told(states: usize, shortest: &ProgramState, again: Option<Checked>) -> BrokenStates {
        let missing = format!("of {}", shortest.missing);
        BrokenStates {
            states,
            shortest: ProgramState { missing, missing_writes: 1, ..shortest.clone() },
            since_start_ns: shortest.at_ns - 100,
            last_line: Some(format!("line {}", shortest.promised)),
            left_out: Vec::new(),
            again,
        }
    }

    fn volume(filesystem: Filesystem, states: Vec<ProgramState>) -> ProgramVolume {
        let told = |way: Vec<usize>| told(way.len(), &states[way[0]], found_again(&states, &way));
        let broken = broken(&states).into_iter().map(told).collect();
        ProgramVolume {
            filesystem,
            device: "ram".to_owned(),
            journal_device: None,
            mount_options: None,
            failure: None,
            run: None,
            changed_files: Vec::new(),
            entries: 9,
            is_systematic: true,
            same: 7,
            states,
            broken,
        }
    }

    /// What a filesystem gives on which the program fails at once.
    fn uncut(elapsed_ns: u64) -> ProgramVolume {
        let run = ProgramRun {
            exit_code: Some(1),
            signal: None,
            was_ended: false,
            elapsed_ns,
            lines: 0,
            stderr: String::new(),
            uncut: Checked { finding: Finding::Kept, said: String::new() },
        };
        let failure = Some("it has no fallocate".to_owned());
        ProgramVolume { run: Some(run), failure, ..volume(Filesystem::Nilfs2, Vec::new()) }
    }

    /// A run whose filesystems have the states of `plans` that are those of `shard`.
    fn run(plans: &[Vec<ProgramState>], shard: Shard) -> ProgramCrashResult {
        let own = |states: &Vec<ProgramState>| -> Vec<ProgramState> {
            shard.indices(states.len()).map(|index| states[index].clone()).collect()
        };
        let filesystems = [Filesystem::Ext4, Filesystem::Xfs];
        let cut = zip(filesystems, plans).map(|(filesystem, states)| volume(filesystem, own(states)));
        ProgramCrashResult {
            format: PROGRAM_CRASH_FORMAT.to_owned(),
            version: PROGRAM_CRASH_VERSION,
            command: vec!["./p".to_owned()],
            check: "./c".to_owned(),
            host_words: Vec::new(),
            seed: 1,
            planted: None,
            machine: LabMachine::default(),
            volumes: cut.chain([uncut(1)]).collect(),
        }
    }

    fn part(plans: &[Vec<ProgramState>], number: u32, count: u32) -> ProgramCrashPart {
        let plan = |states: &Vec<ProgramState>| StatesPlan {
            recording: Some("1f".to_owned()),
            states: states.len(),
        };
        let without = StatesPlan { recording: None, states: 0 };
        ProgramCrashPart {
            format: PROGRAM_CRASH_PART_FORMAT.to_owned(),
            version: PROGRAM_CRASH_PART_VERSION,
            shard: number,
            shards: count,
            made_from: BTreeMap::from([("states".to_owned(), "200".to_owned())]),
            recordings: "kept".to_owned(),
            plans: plans.iter().map(plan).chain([without]).collect(),
            result: run(plans, Shard::new(number, count).unwrap()),
            checksum: String::new(),
        }
    }

    fn host_word() -> HostWord {
        HostWord { place: WordPlace::Check, word: "c".to_owned(), file: "/c".to_owned() }
    }

    fn merged(parts: &[ProgramCrashPart]) -> Result<ProgramCrashResult, String> {
        let text =
            |part: &ProgramCrashPart| serde_json::to_string_pretty(&sealed(part.clone()).unwrap()).unwrap();
        let files: Vec<(String, String)> =
            parts.iter().zip('a'..).map(|(part, name)| (format!("{name}.json"), text(part))).collect();
        match merge(&files) {
            Ok(Merged::ProgramCrash(result, recordings)) if recordings == "kept" => Ok(result),
            Ok(other) => panic!("{other:?}"),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn parts_in_any_order_are_the_bytes_of_one_run() {
        for seed in 1..=60 {
            let plans = [states(seed, seed), states(seed + 1_000, 40)];
            let expected = serde_json::to_string(&run(&plans, Shard::WHOLE)).unwrap();
            for count in [1, 2, 3, 4, 7, 50] {
                let mut parts: Vec<ProgramCrashPart> =
                    (1..=count).map(|number| part(&plans, number, count)).collect();
                parts.rotate_left((seed % count) as usize);
                let result = merged(&parts).unwrap();
                assert_eq!(serde_json::to_string(&result).unwrap(), expected, "seed {seed}, {count} shards");
            }
        }
    }

    #[test]
    fn a_file_that_changed_for_one_shard_has_changed() {
        let plans = [states(1, 9), states(2, 9)];
        let mut parts = [1, 2].map(|number| part(&plans, number, 2));
        for (part, names) in parts.iter_mut().zip([&["/b", "/c"], &["/a", "/b"]]) {
            part.result.volumes[0].changed_files = names.map(str::to_owned).to_vec();
        }
        let result = merged(&parts).unwrap();
        assert_eq!(result.volumes[0].changed_files, ["/a", "/b", "/c"]);
        assert!(result.volumes[1].changed_files.is_empty());
    }

    /// It has no recording, so each shard ran it, and each run took another time.
    #[test]
    fn a_filesystem_on_which_the_program_fails_keeps_no_shard_from_the_others() {
        let plans = [states(1, 9), states(2, 9)];
        let mut parts = [1, 2].map(|number| part(&plans, number, 2));
        parts[1].result.volumes[2] = uncut(5);
        assert_eq!(merged(&parts).unwrap(), run(&plans, Shard::WHOLE));
    }

    #[test]
    fn parts_of_another_run_say_in_what_they_differ() {
        let plans = [states(1, 9), states(2, 9)];
        let with = |change: &dyn Fn(&mut ProgramCrashPart)| {
            let mut parts = [1, 2].map(|number| part(&plans, number, 2));
            change(&mut parts[1]);
            let said = merged(&parts).unwrap_err();
            assert!(said.starts_with("b.json is a part of another run than a.json: "), "{said}");
            said
        };
        let recording = with(&|part| part.plans[1].recording = Some("2e".to_owned()));
        assert!(recording.contains("its recording of xfs on ram is another one: all shards"), "{recording}");
        let failed = with(&|part| {
            part.plans[0] = StatesPlan { recording: None, states: 0 };
            part.result.volumes[0] = ProgramVolume { filesystem: Filesystem::Ext4, ..uncut(1) };
        });
        assert!(failed.contains("(it has no fallocate): all shards"), "{failed}");
        let check = with(&|part| "./d".clone_into(&mut part.result.check));
        assert!(check.contains("its check is \"./d\", not \"./c\""), "{check}");
        let chosen = with(&|part| drop(part.made_from.insert("states".to_owned(), "9".to_owned())));
        assert!(chosen.contains("its states is another one (9, not 200)"), "{chosen}");
        let planted = with(&|part| part.result.planted = Some("a device that lies".to_owned()));
        assert!(planted.contains("its planted bug is \"a device that lies\", not \"none\";"), "{planted}");
        let filesystem = with(&|part| part.result.volumes[0].filesystem = Filesystem::F2fs);
        assert!(filesystem.contains("it ran on f2fs on ram, not on ext4 on ram"), "{filesystem}");
        for change in [
            |part: &mut ProgramCrashPart| part.result.command.push("-v".to_owned()),
            |part: &mut ProgramCrashPart| part.result.host_words.push(host_word()),
            |part: &mut ProgramCrashPart| part.result.seed = 2,
            |part: &mut ProgramCrashPart| "6.99".clone_into(&mut part.result.machine.kernel),
            |part: &mut ProgramCrashPart| part.result.volumes[0].mount_options = Some("sync".to_owned()),
            |part: &mut ProgramCrashPart| part.result.volumes[0].journal_device = Some("ram".to_owned()),
            |part: &mut ProgramCrashPart| part.result.volumes[0].entries += 1,
        ] {
            with(&change);
        }
    }

    #[test]
    fn a_part_without_some_of_its_states_is_damaged() {
        let plans = [states(5, 12), states(6, 12)];
        let with = |change: &dyn Fn(&mut ProgramCrashPart)| {
            let mut parts = [1, 2].map(|number| part(&plans, number, 2));
            change(&mut parts[1]);
            let said = merged(&parts).unwrap_err();
            assert!(said.starts_with("b.json is damaged: "), "{said}");
            said
        };
        let fewer = with(&|part| drop(part.result.volumes[0].states.pop()));
        assert!(fewer.contains("ext4 on ram has 5 states where shard 2/2 has 6 of 12"), "{fewer}");
        let untold = with(&|part| drop(part.result.volumes[1].broken.pop()));
        assert!(untold.contains("the broken states of xfs on ram are not"), "{untold}");
        let volumes = with(&|part| drop(part.plans.pop()));
        assert!(volumes.contains("it has 3 filesystems, and plans of 2"), "{volumes}");
        let none = with(&|part| (part.plans, part.result.volumes) = (Vec::new(), Vec::new()));
        assert!(none.contains("it has 0 filesystems"), "{none}");
        let newer = with(&|part| part.result.version += 1);
        assert!(newer.contains("its result is of the format \"joj-crash\", version 2"), "{newer}");
        with(&|part| "foo".clone_into(&mut part.result.format));
        let reversed = with(&|part| part.result.volumes[1].states.reverse());
        assert!(reversed.contains("the states of xfs on ram are not in the order"), "{reversed}");
    }

    /// Each number and each text of a part, one after the other.
    #[test]
    fn whatever_is_changed_in_a_part_it_is_damaged() {
        let plans = [states(5, 12), states(6, 12)];
        let parts = [1, 2].map(|number| sealed(part(&plans, number, 2)).unwrap());
        let [one, two] = parts.map(|part| serde_json::to_string_pretty(&part).unwrap());
        let files = |two: String| [("a.json".to_owned(), one.clone()), ("b.json".to_owned(), two)];
        assert!(merge(&files(two.clone())).is_ok());
        let mut changes = 0;
        for (place, letter) in two.char_indices().filter(|(_, letter)| letter.is_ascii_alphanumeric()) {
            let other = char::from(letter as u8 ^ 1);
            let changed = format!("{}{other}{}", &two[..place], &two[place + 1..]);
            assert!(merge(&files(changed)).is_err(), "{letter} at {place}");
            changes += 1;
        }
        assert!(changes > 1_000, "{changes}");
    }
}
