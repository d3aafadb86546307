//! /proc/stat: what the processors' time went into, interrupts, context switches.
//!
//! Source: proc_stat(5). `cpu  user nice system idle iowait irq softirq steal guest guest_nice`, in ticks; guest time is
//! part of user time. Kernels before 2.6 end with idle, before 2.6.11 with softirq.

use crate::monitor::proc::proc_text::{ProcError, ProcText};

/// What /proc/stat says at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stat {
    /// Ticks of all processors since boot: active, idle, iowait, steal.
    pub ticks: [u64; 4],
    /// Interrupts since boot.
    pub interrupts: Option<u64>,
    /// Context switches since boot.
    pub context_switches: Option<u64>,
    /// Processes and threads made since boot.
    pub forks: Option<u64>,
    /// Threads that run or want to.
    pub running: Option<u64>,
    /// Threads that wait for a device.
    pub blocked: Option<u64>,
}

impl Stat {
    /// Reads the text.
    /// # Errors
    /// Where it has no line of all processors, or a number is none.
    pub fn parse(text: &str) -> Result<Stat, ProcError> {
        let text = ProcText::new("stat", text)?;
        let mut found = Stat::default();
        let mut has_ticks = false;
        let mut lines = 0;
        for (line, words) in text.lines() {
            lines = line;
            let (name, rest) = words.split_once(' ').unwrap_or((words, ""));
            let first = || match rest.split_ascii_whitespace().next() {
                Some(word) => text.number(line, word).map(Some),
                None => Err(text.error(line, format!("there is no number behind `{name}`"))),
            };
            match name {
                "cpu" => {
                    let ticks = text.numbers(line, rest)?;
                    if ticks.len() < 4 {
                        let what = format!("`cpu` has {} numbers, not 4 or more", ticks.len());
                        return Err(text.error(line, what));
                    }
                    let at = |index: usize| ticks.get(index).copied().unwrap_or(0);
                    let active =
                        [0, 1, 2, 5, 6].map(at).iter().fold(0, |sum: u64, ticks| sum.saturating_add(*ticks));
                    found.ticks = [active, at(3), at(4), at(7)];
                    has_ticks = true;
                }
                "intr" => found.interrupts = first()?,
                "ctxt" => found.context_switches = first()?,
                "processes" => found.forks = first()?,
                "procs_running" => found.running = first()?,
                "procs_blocked" => found.blocked = first()?,
                _ => {}
            }
        }
        if has_ticks { Ok(found) } else { Err(text.error(lines.max(1), "no line began with `cpu `")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_new_and_old_kernels_are_read() {
        let new = "cpu  100 20 30 400 50 6 7 80 9 1\ncpu0 1 2 3 4 5 6 7 8 9 1\nintr 500 0 1\nctxt 600\nbtime 1\n\
                   processes 70\nprocs_running 3\nprocs_blocked 1\nsoftirq 5 1 2\n";
        let expected = Stat {
            ticks: [163, 400, 50, 80],
            interrupts: Some(500),
            context_switches: Some(600),
            forks: Some(70),
            running: Some(3),
            blocked: Some(1),
        };
        assert_eq!(Stat::parse(new), Ok(expected));
        let old = Stat::parse("cpu  1 2 3 4\nintr 9\n").unwrap();
        assert_eq!((old.ticks, old.context_switches), ([6, 4, 0, 0], None));
        assert_eq!(Stat::parse("cpu  1 2 3 4 5 6 7\n").unwrap().ticks, [19, 4, 5, 0], "2.6.10");
    }

    #[test]
    fn damage_is_named_with_its_line() {
        for (text, expected) in [
            ("", "stat, line 1: no line began with `cpu `"),
            ("cpu0 1 2 3 4\nctxt 5\n", "stat, line 2: no line began with `cpu `"),
            ("cpu  1 2 3\n", "stat, line 1: `cpu` has 3 numbers, not 4 or more"),
            ("cpu  1 2 3 4\nctxt x\n", "stat, line 2: `x` is no whole number"),
            ("cpu  1 2 3 4\nctxt\n", "stat, line 2: there is no number behind `ctxt`"),
            ("cpu  1 2 3 4\nctxt 5", "stat, line 2: the text ends in the middle of the line"),
        ] {
            assert_eq!(Stat::parse(text).unwrap_err().to_string(), expected);
        }
    }
}
