//! Whom a disk worked for: its requests are everybody's.

use joj_analysis::trace::summary::Summary;

use crate::show::sheet::Sheet;
use crate::show::text::count;
use crate::show::words::{kib_of, part_of, percent, plain};

/// Written bytes, sync calls and commits by process; empty where only one had to do with the disks and none was asked for.
pub fn processes(summary: &Summary) -> Sheet {
    let head = ["process", "KiB written", "share", "runs", "flushes", "sync calls", "commits"];
    let mut sheet = Sheet::new("Whom it was for", &head);
    let numbered = summary.processes.iter().filter(|one| one.process.is_some()).count();
    if numbered < 2 && summary.own.is_none() {
        return sheet;
    }
    for one in &summary.processes {
        let number = one.process.map_or_else(String::new, |process| format!(" [{process}]"));
        sheet.line(vec![
            format!("{}{number}", plain(&one.name)),
            kib_of(one.written.bytes),
            part_of(one.written.bytes, summary.counts.writes.bytes),
            count(one.written.requests),
            count(one.flushes),
            count(one.syncs),
            count(one.commits),
        ]);
    }
    if summary.processes.iter().any(|one| one.process.is_none() && one.name == "kernel threads") {
        sheet.notes.push("Kernel threads: what they wrote for nobody who is known to wait, and flushes of which nobody knows who asked.".to_owned());
    }
    sheet
}

/// What share of the disks' writes those have that were asked for, a process or a command's; `None` where everybody was.
pub fn share(summary: &Summary) -> Option<String> {
    let own = summary.own.as_ref()?;
    let all = summary.counts.writes.bytes;
    let share = percent(if all == 0 { 0.0 } else { own.written_bytes as f64 / all as f64 });
    let others = count(own.commits_of_others);
    Some(match summary.header.process {
        Some(process) => format!(
            "process {process}: {share} of the KiB written are for it; sync calls, commits and checkpoints below are its own, \
             {others} commits of others are left out"
        ),
        None => format!(
            "the command and its children: {share} of the KiB written are for them; sync calls, commits and checkpoints below are \
             theirs, {others} commits of others are left out (`--everybody` counts them)"
        ),
    })
}
