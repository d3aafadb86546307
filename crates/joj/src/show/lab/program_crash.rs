//! The result of `joj crash` as text.

use std::fmt::Write;

use joj_analysis::bench::key::Word;
use joj_analysis::lab::program_crash::{
    BrokenStates, Checked, Finding, HostWord, ProgramCrashResult, ProgramRun, ProgramVolume,
};

use crate::show::paper::columns;
use crate::show::text::duration;
use crate::show::words::plain;

/// Missing writes that are told of a state.
const WRITES_SHOWN: usize = 12;

/// The table, and what broke.
pub fn text(result: &ProgramCrashResult, recordings: &str) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{}\ncheck: {}", result.command.join(" "), result.check);
    for HostWord { place: _, word, file } in &result.host_words {
        let _ = writeln!(text, "`{word}` is this machine's {file}");
    }
    let _ = writeln!(text, "{}", result.machine);
    if let Some(planted) = &result.planted {
        let _ = writeln!(text, "planted: {planted}");
    }
    let _ = writeln!(text);
    text += &table(result);
    for volume in &result.volumes {
        if let Some(reason) = &volume.failure {
            let _ = writeln!(text, "{}: FAILED: {reason}", name(volume));
        }
        if let Some(run) = &volume.run {
            remarks(&mut text, volume, run);
        }
    }
    for (number, volume) in result.volumes.iter().enumerate() {
        for broken in &volume.broken {
            tell(&mut text, result, number, broken);
        }
    }
    if result.volumes.iter().any(|volume| !volume.broken.is_empty()) {
        let _ = writeln!(
            text,
            "\nTo see a state again, and all that the check prints of it: the same command (without --shard) with\n\
             --recordings {recordings} --state STATE"
        );
    }
    text
}

/// How a state is named on the command line: the number of its filesystem in the list, the moment, what is missing.
pub fn state_name(volume: usize, at_ns: u64, missing: &str) -> String {
    format!("{}/{at_ns}/{missing}", volume + 1)
}

/// What progress and text call a filesystem.
pub fn name(volume: &ProgramVolume) -> String {
    let mut name = format!("{} {}", volume.filesystem.word(), volume.device);
    if let Some(journal) = &volume.journal_device {
        let _ = write!(name, ", journal on {journal}");
    }
    if let Some(options) = &volume.mount_options {
        let _ = write!(name, " {options}");
    }
    name
}

fn table(result: &ProgramCrashResult) -> String {
    let head =
        ["filesystem", "printed", "requests", "states", "kept", "lost", "corrupt", "other", "not sure"];
    let mut rows = vec![head.map(ToOwned::to_owned).to_vec()];
    for volume in result.volumes.iter().filter(|volume| !volume.states.is_empty()) {
        let [kept, lost, corrupt] =
            [Finding::Kept, Finding::Lost, Finding::Corrupt].map(|finding| volume.count(finding));
        let (all, not_sure) = (volume.states.len(), volume.not_sure());
        let numbers = [
            volume.run.as_ref().map_or(0, |run| run.lines),
            volume.entries,
            all,
            kept,
            lost,
            corrupt,
            all - kept - lost - corrupt - not_sure,
            not_sure,
        ];
        let cells = numbers.iter().map(ToString::to_string);
        rows.push(std::iter::once(name(volume)).chain(cells).collect());
    }
    if rows.len() == 1 { String::new() } else { columns(&rows) }
}

fn remarks(text: &mut String, volume: &ProgramVolume, run: &ProgramRun) {
    let name = name(volume);
    if run.failed_at_once() {
        return;
    }
    if run.was_ended {
        let after = duration(run.elapsed_ns);
        let _ = writeln!(
            text,
            "{name}: the program was ended after {after}; --program-seconds gives it more time"
        );
    } else if let Some(end) = run.failure() {
        let _ = writeln!(text, "{name}: the program {end}");
    }
    if run.lines == 0 {
        let _ = writeln!(
            text,
            "{name}: the program printed no line: it promised nothing, and nothing can be lost"
        );
    }
    if volume.entries == 0 && !volume.states.is_empty() {
        let _ = writeln!(
            text,
            "{name}: when the log ended nothing that the program wrote had reached the device; --settle-seconds gives it more time"
        );
    }
    if let [first, more @ ..] = &volume.changed_files[..] {
        let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
        let _ = writeln!(
            text,
            "{name}: of this machine's files {}{more} changed since the program or the check used them: what was found may be of \
             the old ones or of the new ones",
            plain(first)
        );
    }
    // Where not all states were looked at, `failure` says so.
    if volume.states.len() > 1 && volume.failure.is_none() {
        let how =
            if volume.is_systematic { "every moment was cut" } else { "moments were chosen by the seed" };
        let _ =
            writeln!(text, "{name}: {how}; {} choices led to a state that was there already", volume.same);
    }
}

fn tell(text: &mut String, result: &ProgramCrashResult, number: usize, broken: &BrokenStates) {
    let (volume, state) = (&result.volumes[number], &broken.shortest);
    let said = if state.checked.said.is_empty() { "the check said nothing" } else { &state.checked.said };
    let states = if broken.states == 1 { "1 state" } else { &format!("{} states", broken.states) };
    let word = state.checked.finding.word();
    let _ = match &broken.again {
        None => writeln!(text, "\n{word} on {}, {states}: {said}", name(volume)),
        Some(Checked { finding, said: other }) => {
            let other = if other.is_empty() { String::new() } else { format!(", {other}") };
            writeln!(
                text,
                "\nNOT SURE on {}, {states}: {word}, {said}\n  of the same bytes the check said at another time: {}{other}\n  \
                 Mend the check first; until then what it kept is not sure, either",
                name(volume),
                finding.word(),
            )
        }
    };
    let last = match (&broken.last_line, state.promised) {
        (Some(line), count) => format!("behind line {count}, `{line}`"),
        (None, _) => "before the first line".to_owned(),
    };
    // Looking for the shortest would end a machine each time.
    let which = if state.checked.finding == Finding::Ended && !broken.left_out.is_empty() {
        "one of them"
    } else {
        "the shortest"
    };
    let _ = writeln!(text, "  {which}: cut {} after the start, {last}", duration(broken.since_start_ns));
    if broken.left_out.is_empty() {
        let _ = writeln!(text, "  no write is missing: it had not reached the device yet");
    }
    if state.checked.finding == Finding::Ended && !broken.left_out.is_empty() {
        let _ = writeln!(text, "  writes that are missing there, too, whether they matter or not:");
    }
    for one in broken.left_out.iter().take(WRITES_SHOWN) {
        let _ = writeln!(text, "  missing: {}", one.what);
    }
    if let Some(more) = broken.left_out.len().checked_sub(WRITES_SHOWN).filter(|more| *more > 0) {
        let _ = writeln!(text, "  and {more} more");
    }
    let _ = writeln!(text, "  state: {}", state_name(number, state.at_ns, &state.missing));
}
