//! What a power cut leaves of a program's files: the JSON of `joj crash` (docs/crash_format.md).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::filesystem::Filesystem;
use crate::lab::result::LabMachine;

/// First word of a result.
pub const PROGRAM_CRASH_FORMAT: &str = "joj-crash";
/// Version that this joj writes.
pub const PROGRAM_CRASH_VERSION: u32 = 1;

/// What a check found in a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Finding {
    /// Everything that the program promised: exit code 0.
    Kept,
    /// Something that it promised is gone: exit code 1.
    Lost,
    /// There is what the program never wrote: exit code 2.
    Corrupt,
    /// The check itself ended in another way: another exit code, a signal, or it took too long.
    CheckFailed,
    /// The kernel does not mount the filesystem.
    Unmountable,
    /// The filesystem cannot be unmounted after the check.
    Unusable,
    /// The emulated machine ended, or took too long.
    Ended,
}

impl Finding {
    /// That of a check with this exit code; `None` where a signal ended it.
    pub fn of_exit_code(code: Option<i32>) -> Finding {
        match code {
            Some(0) => Finding::Kept,
            Some(1) => Finding::Lost,
            Some(2) => Finding::Corrupt,
            _ => Finding::CheckFailed,
        }
    }

    /// What people call it.
    pub fn word(self) -> &'static str {
        match self {
            Finding::Kept => "kept",
            Finding::Lost => "LOST",
            Finding::Corrupt => "CORRUPT",
            Finding::CheckFailed => "CHECK FAILED",
            Finding::Unmountable => "UNMOUNTABLE",
            Finding::Unusable => "UNUSABLE",
            Finding::Ended => "ENDED",
        }
    }
}

/// What a check came to.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Checked {
    /// The finding.
    pub finding: Finding,
    /// The last line that the check printed to standard output, and behind it in parentheses that to standard error, where there are
    /// both; or why the check came to no end.
    pub said: String,
}

impl Checked {
    /// What states that broke in the same way have in common: the finding, and the line but for its numbers.
    pub fn group(&self) -> (Finding, String) {
        let mut text = String::new();
        for letter in self.said.chars() {
            let shown = if letter.is_ascii_digit() { '#' } else { letter };
            if !(shown == '#' && text.ends_with('#')) {
                text.push(shown);
            }
        }
        (self.finding, text)
    }
}

/// Where a word of the command line stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WordPlace {
    /// In `--before`.
    Before,
    /// In `--check`.
    Check,
    /// Among the program's arguments.
    Program,
}

/// A word of the command line that named a file of the directory where joj ran, and stands for that file.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct HostWord {
    /// Where it stands.
    #[serde(rename = "in")]
    pub place: WordPlace,
    /// As it was given.
    pub word: String,
    /// The whole path of the file.
    pub file: String,
}

/// The program's run that was recorded.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct ProgramRun {
    /// With which it ended; `null` where a signal ended it.
    pub exit_code: Option<i32>,
    /// The number of the signal that ended it.
    pub signal: Option<i32>,
    /// It took longer than it might, and was ended.
    pub was_ended: bool,
    /// From its start to its end by the guest's clock, in nanoseconds.
    pub elapsed_ns: u64,
    /// Lines that it printed: its promises.
    pub lines: usize,
    /// The end of what it printed to standard error.
    pub stderr: String,
    /// What the check says of its files where nothing was cut.
    pub uncut: Checked,
}

impl ProgramRun {
    /// True where it failed by itself before it promised anything: most often it was not found, or could not do its work there.
    pub fn failed_at_once(&self) -> bool {
        self.lines == 0 && !self.was_ended && self.exit_code != Some(0)
    }

    /// How it ended by itself, where it failed: its exit code or signal, and the last line of its standard error.
    pub fn failure(&self) -> Option<String> {
        let end = match (self.exit_code, self.signal) {
            (Some(0), _) => return None,
            (Some(code), _) => format!("ended with exit code {code}"),
            (None, signal) => format!("was ended by signal {}", signal.unwrap_or(0)),
        };
        let said = self.stderr.lines().map(str::trim).rfind(|line| !line.is_empty());
        Some(said.map_or(end.clone(), |said| format!("{end}: {said}")))
    }
}

/// A state: where the cut was, and what was found.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct ProgramState {
    /// When the power was cut, in nanoseconds of the guest's clock.
    pub at_ns: u64,
    /// Which writes are gone: `BLOCK:WRITES` of the device, joined by `+`, or `nothing`.
    pub missing: String,
    /// How many writes to blocks that is.
    pub missing_writes: u64,
    /// Lines that had been printed.
    pub promised: usize,
    /// What the check found.
    pub checked: Checked,
    /// What it found when it looked at the same bytes again, where that is something else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<Checked>,
}

/// States that broke in the same way.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct BrokenStates {
    /// How many.
    pub states: usize,
    /// The one with the fewest writes missing: none of them can be put back, and the check still fails so.
    pub shortest: ProgramState,
    /// From the program's start to that cut, in nanoseconds.
    pub since_start_ns: u64,
    /// The last line that had been printed.
    pub last_line: Option<String>,
    /// What the missing writes were.
    pub left_out: Vec<LeftOut>,
    /// What the check found when it looked at one of them again, where that is something else: none of them is sure then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<Checked>,
}

/// A write that is missing.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct LeftOut {
    /// First byte on the device.
    pub offset_bytes: u64,
    /// What was written there, and for which file, where that is known.
    pub what: String,
}

/// What came of one filesystem.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct ProgramVolume {
    /// The filesystem.
    pub filesystem: Filesystem,
    /// The device below, by its name or file.
    pub device: String,
    /// The device of the journal, where it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub journal_device: Option<String>,
    /// Options with which it was mounted besides.
    pub mount_options: Option<String>,
    /// Why there are no states, or not all.
    pub failure: Option<String>,
    /// The program's run.
    pub run: Option<ProgramRun>,
    /// Paths of this machine that the program or the check read or looked for, and where something else was at the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed_files: Vec<String>,
    /// Requests of the log from the program's start on.
    pub entries: usize,
    /// Each moment was cut, and of each the usual choices of what is kept.
    pub is_systematic: bool,
    /// Choices that led to a state that was there already.
    pub same: u64,
    /// The states, in order of their time.
    pub states: Vec<ProgramState>,
    /// What broke, the most frequent first.
    pub broken: Vec<BrokenStates>,
}

impl ProgramVolume {
    /// How many states have this finding, those left out that are not sure.
    pub fn count(&self, finding: Finding) -> usize {
        let all = self.states.iter().filter(|state| state.checked.finding == finding).count();
        all - self.unsure(|way| way.shortest.checked.finding == finding)
    }

    /// How many states broke in a way that the check does not always find.
    pub fn not_sure(&self) -> usize {
        self.unsure(|_| true)
    }

    fn unsure(&self, wanted: impl Fn(&BrokenStates) -> bool) -> usize {
        let ways = self.broken.iter().filter(|way| way.again.is_some() && wanted(way));
        ways.map(|way| way.states).sum()
    }

    /// True where states were looked at, and none broke a promise.
    pub fn is_kept(&self) -> bool {
        self.failure.is_none() && self.states.iter().all(|state| state.checked.finding == Finding::Kept)
    }
}

/// The result of `joj crash`.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct ProgramCrashResult {
    /// Always `joj-crash`.
    pub format: String,
    /// Version of the format, 1 or more.
    pub version: u32,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The check, as a shell gets it.
    pub check: String,
    /// Words of the program, of `--check` and of `--before` that were taken for files of this machine.
    pub host_words: Vec<HostWord>,
    /// What chose the states.
    pub seed: u64,
    /// The bug that was planted, if any.
    pub planted: Option<String>,
    /// What it ran on.
    pub machine: LabMachine,
    /// Devices in the order in which they were given, and on each the filesystems.
    pub volumes: Vec<ProgramVolume>,
}

impl BrokenStates {
    /// True where they break a promise: not where the check itself failed, the machine ended, or the check says now this, now that.
    pub fn is_sure(&self) -> bool {
        let is_answer = !matches!(self.shortest.checked.finding, Finding::CheckFailed | Finding::Ended);
        is_answer && self.again.is_none()
    }
}

impl ProgramCrashResult {
    /// True where there is a state that is not kept.
    pub fn has_broken(&self) -> bool {
        self.volumes.iter().any(|volume| !volume.broken.is_empty())
    }

    /// True where a state broke a promise.
    pub fn is_broken(&self) -> bool {
        self.volumes.iter().flat_map(|volume| &volume.broken).any(BrokenStates::is_sure)
    }

    /// True where states of each filesystem were looked at, and none broke a promise.
    pub fn is_kept(&self) -> bool {
        self.volumes.iter().all(ProgramVolume::is_kept)
    }
}

/// What the check found of one of the states of a way to break, which have these numbers, when it looked again, where that is something
/// else.
pub fn found_again(states: &[ProgramState], way: &[usize]) -> Option<Checked> {
    way.iter().find_map(|number| states[*number].again.clone())
}

/// The states that broke, those that broke in the same way together, and of each the number of the one with the fewest missing writes and
/// the earliest cut first. The most frequent way comes first.
pub fn broken(states: &[ProgramState]) -> Vec<Vec<usize>> {
    let mut ways: Vec<((Finding, String), Vec<usize>)> = Vec::new();
    for (number, state) in states.iter().enumerate() {
        if state.checked.finding == Finding::Kept {
            continue;
        }
        let group = state.checked.group();
        match ways.iter_mut().find(|(known, _)| *known == group) {
            Some((_, numbers)) => numbers.push(number),
            None => ways.push((group, vec![number])),
        }
    }
    for (_, numbers) in &mut ways {
        numbers.sort_by_key(|number| (states[*number].missing_writes, states[*number].at_ns));
    }
    ways.sort_by_key(|(_, numbers)| std::cmp::Reverse(numbers.len()));
    ways.into_iter().map(|(_, numbers)| numbers).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(at_ns: u64, missing_writes: u64, finding: Finding, said: &str) -> ProgramState {
        ProgramState {
            at_ns,
            missing: "nothing".to_owned(),
            missing_writes,
            promised: 0,
            checked: Checked { finding, said: said.to_owned() },
            again: None,
        }
    }

    #[test]
    fn the_exit_code_of_the_check_says_what_it_found() {
        let codes = [Some(0), Some(1), Some(2), Some(3), Some(127), None];
        let expected = [Finding::Kept, Finding::Lost, Finding::Corrupt].into_iter();
        let expected: Vec<Finding> = expected.chain([Finding::CheckFailed; 3]).collect();
        assert_eq!(codes.map(Finding::of_exit_code).to_vec(), expected);
    }

    #[test]
    fn only_a_sure_answer_of_the_check_or_of_the_kernel_breaks_a_promise() {
        let of = |finding, again: Option<Finding>| BrokenStates {
            states: 1,
            shortest: state(1, 0, finding, ""),
            since_start_ns: 1,
            last_line: None,
            left_out: Vec::new(),
            again: again.map(|finding| Checked { finding, said: String::new() }),
        };
        for finding in [Finding::Lost, Finding::Corrupt, Finding::Unmountable, Finding::Unusable] {
            assert!(
                of(finding, None).is_sure() && !of(finding, Some(Finding::Kept)).is_sure(),
                "{finding:?}"
            );
        }
        assert!(!of(Finding::CheckFailed, None).is_sure() && !of(Finding::Ended, None).is_sure());
    }

    /// Of two ways, one was found to be another one at a second look: none of its states counts as lost.
    #[test]
    fn states_of_a_way_that_is_not_sure_are_in_no_other_count() {
        let lost = |at_ns, said| state(at_ns, 1, Finding::Lost, said);
        let kept = Checked { finding: Finding::Kept, said: String::new() };
        let unsure = ProgramState { again: Some(kept), ..lost(3, "g gone") };
        let states = vec![lost(1, "f gone"), lost(2, "g gone"), unsure, state(4, 0, Finding::Kept, "")];
        let way = |numbers: &Vec<usize>| BrokenStates {
            states: numbers.len(),
            shortest: states[numbers[0]].clone(),
            since_start_ns: 1,
            last_line: None,
            left_out: Vec::new(),
            again: found_again(&states, numbers),
        };
        let broken: Vec<BrokenStates> = broken(&states).iter().map(way).collect();
        let volume = ProgramVolume {
            filesystem: Filesystem::Ext4,
            device: "ram".to_owned(),
            journal_device: None,
            mount_options: None,
            failure: None,
            run: None,
            changed_files: Vec::new(),
            entries: 1,
            is_systematic: true,
            same: 0,
            states,
            broken,
        };
        let counts = [Finding::Kept, Finding::Lost].map(|finding| volume.count(finding));
        assert_eq!((counts, volume.not_sure()), ([1, 1], 2));
        assert_eq!(volume.broken.iter().map(BrokenStates::is_sure).collect::<Vec<_>>(), [false, true]);
    }

    #[test]
    fn what_fails_before_its_first_line_is_told_from_what_promised_nothing() {
        let run = |exit_code, signal, was_ended, lines| ProgramRun {
            exit_code,
            signal,
            was_ended,
            elapsed_ns: 1,
            lines,
            stderr: "one\nsh: x: not found\n".to_owned(),
            uncut: Checked { finding: Finding::Kept, said: String::new() },
        };
        let failed = [run(Some(127), None, false, 0), run(None, Some(11), false, 0)];
        assert!(failed.iter().all(ProgramRun::failed_at_once));
        let said = failed.map(|run| run.failure().unwrap());
        assert_eq!(said[0], "ended with exit code 127: sh: x: not found");
        assert_eq!(said[1], "was ended by signal 11: sh: x: not found");
        let others =
            [run(Some(0), None, false, 0), run(Some(1), None, false, 1), run(None, Some(9), true, 0)];
        assert!(!others.iter().any(ProgramRun::failed_at_once));
        assert_eq!(others[0].failure(), None);
    }

    #[test]
    fn states_that_differ_in_numbers_only_broke_in_the_same_way() {
        let states = [
            state(10, 0, Finding::Kept, ""),
            state(20, 5, Finding::Lost, "line 17 is gone"),
            state(30, 2, Finding::Corrupt, "line 17 is gone"),
            state(40, 1, Finding::Lost, "line 2 is gone"),
            state(35, 1, Finding::Lost, "line 900 is gone"),
            state(50, 1, Finding::Lost, "the file is gone"),
        ];
        assert_eq!(broken(&states), [vec![4, 3, 1], vec![2], vec![5]]);
    }
}
