//! What is going on, on standard error: one line that changes on a terminal, a line per round elsewhere.

use std::io::{IsTerminal, Write, stderr};

use crate::bench::forecast::rough;
use crate::machine::proc::clock::now_ns;
use crate::machine::proc::terminal;

/// Tells how far a plan has come.
#[derive(Debug)]
pub struct Progress {
    is_terminal: bool,
    began_ns: u64,
    /// Expected seconds of the steps that are done, of the one that runs, and of all.
    done_s: f64,
    step_s: f64,
    expected_s: f64,
    /// Expected seconds of a step of which nothing more is known.
    usual_s: f64,
    /// What the steps take, where that is learned.
    pace: Option<Pace>,
    /// What is done now.
    what: String,
    /// Where it is wanted: when the last line was printed.
    waiting_ns: Option<u64>,
    /// Letters of the line on the terminal.
    shown_letters: usize,
}

/// Between two lines of who waits, on a terminal and elsewhere.
const WAITING_NS: [u64; 2] = [1_000_000_000, 15_000_000_000];

/// What steps take in truth, as a multiple of what was expected of them.
#[derive(Debug)]
struct Pace {
    /// So many first steps are left out: what does them is started, and reads what it needs for the first time.
    left_out: usize,
    /// Steps that have begun.
    begun: usize,
    /// When the first step that counts began, and the seconds that had been expected of those before it.
    from: Option<(u64, f64)>,
}

impl Pace {
    /// Steps that count before they say something of those that are left.
    const STEPS_MIN: usize = 10;

    /// A step begins at `now_ns`, and `done_s` were expected of those before it: the multiple, once it is known.
    fn begun(&mut self, now_ns: u64, done_s: f64) -> Option<f64> {
        self.begun += 1;
        if self.begun == self.left_out + 1 {
            self.from = Some((now_ns, done_s));
        }
        let (from_ns, before_s) = self.from?;
        let is_known = self.begun > self.left_out + Pace::STEPS_MIN && done_s > before_s;
        is_known.then(|| (now_ns - from_ns) as f64 / 1e9 / (done_s - before_s))
    }

    /// True for the first step whose multiple is known.
    fn is_first(&self) -> bool {
        self.begun == self.left_out + Pace::STEPS_MIN + 1
    }
}

impl Progress {
    /// For a plan of `all` steps, one like the other, that is expected to take `expected_s` seconds.
    pub fn new(all: usize, expected_s: f64) -> Progress {
        Progress { usual_s: expected_s / all.max(1) as f64, ..Progress::of_steps(expected_s) }
    }

    /// For steps of which each tells how long it takes ([`Progress::step_of`]).
    pub fn of_steps(expected_s: f64) -> Progress {
        Progress {
            is_terminal: stderr().is_terminal(),
            began_ns: now_ns(),
            done_s: 0.0,
            step_s: 0.0,
            expected_s,
            usual_s: 0.0,
            pace: None,
            what: String::new(),
            waiting_ns: None,
            shown_letters: 0,
        }
    }

    /// For many steps, so many of them at a time, that are expected to take `expected_s` seconds. How long they take in truth depends on a
    /// program that nobody knows: what is left is told from the first ones, elsewhere than on a terminal once.
    pub fn of_unknown_steps(expected_s: f64, at_a_time: usize) -> Progress {
        let pace = Pace { left_out: at_a_time, begun: 0, from: None };
        Progress { pace: Some(pace), ..Progress::of_steps(expected_s) }
    }

    /// The same for one whose steps may take minutes: where no line can change, it has one each quarter of a minute. Until the first step
    /// begins it says `what`.
    pub fn waiting(self, what: &str) -> Progress {
        Progress { waiting_ns: Some(self.began_ns), what: what.to_owned(), ..self }
    }

    /// Before a step like the others.
    pub fn step(&mut self, what: &str) {
        self.step_of(what, self.usual_s * 1e9);
    }

    /// Before a step that is expected to take so many nanoseconds.
    pub fn step_of(&mut self, what: &str, expected_ns: f64) {
        self.done_s += std::mem::replace(&mut self.step_s, expected_ns / 1e9);
        let multiple = self.pace.as_mut().and_then(|pace| pace.begun(now_ns(), self.done_s));
        let left_s = match multiple {
            Some(multiple) => (self.expected_s - self.done_s).max(0.0) * multiple,
            None => self.left_s(self.done_s),
        };
        what.clone_into(&mut self.what);
        if self.is_terminal {
            let share = (self.done_s / self.expected_s.max(1e-9)).min(1.0);
            self.show(&format!("{:3.0} %  {} left  {what}", share * 100.0, rough(left_s)));
        } else if multiple.is_some() && self.pace.as_ref().is_some_and(Pace::is_first) {
            eprintln!("{what}, about {} left", rough(left_s));
            self.waiting_ns = self.waiting_ns.map(|_| now_ns());
        } else {
            self.tick();
        }
    }

    /// The step at hand has come to this.
    pub fn doing(&mut self, what: &str) {
        what.clone_into(&mut self.what);
        if self.is_terminal {
            self.waiting_ns = self.waiting_ns.map(|_| 0);
        }
        self.tick();
    }

    /// Time went by.
    pub fn tick(&mut self) {
        let Some(told_ns) = self.waiting_ns else { return };
        let now = now_ns();
        if now - told_ns < WAITING_NS[usize::from(!self.is_terminal)] {
            return;
        }
        let line = waiting_line(self.done_s / self.expected_s.max(1e-9), now - self.began_ns, &self.what);
        match self.is_terminal {
            true => self.show(&line),
            false => eprintln!("{line}"),
        }
        self.waiting_ns = Some(now);
    }

    /// Puts a line on the terminal in place of the one that is there.
    fn show(&mut self, line: &str) {
        eprint!("{}{line}", self.erasure());
        self.shown_letters = line.chars().count();
        let _ = stderr().flush();
    }

    /// Before a round, or the counting run in front of them.
    pub fn round(&self, what: &str) {
        if !self.is_terminal {
            let left = rough(self.left_s(self.done_s + self.step_s));
            eprintln!("{what}, about {left} left");
        }
    }

    /// Seconds that are left where steps of so many expected ones are done.
    fn left_s(&self, done_s: f64) -> f64 {
        let elapsed_s = (now_ns() - self.began_ns) as f64 / 1e9;
        left_s((done_s / self.expected_s.max(1e-9)).min(1.0), elapsed_s, self.expected_s)
    }

    /// After the last step, or before anything else is printed.
    pub fn clear(&mut self) {
        if self.is_terminal {
            eprint!("{}", self.erasure());
            self.shown_letters = 0;
        }
    }

    /// Takes away the line, and what of it stands on lines below.
    fn erasure(&self) -> String {
        erasure(self.shown_letters, terminal::error_letters())
    }
}

/// Says where it is, and since when: a forecast that was wrong would go on to be. Where nothing is done yet, no share of it is said.
fn waiting_line(share: f64, elapsed_ns: u64, what: &str) -> String {
    let done = if share > 0.0 { format!("{:.0} %  ", share.min(1.0) * 100.0) } else { String::new() };
    format!("{done}{what}, {} s so far", elapsed_ns / 1_000_000_000)
}

/// Seconds that are left: the forecast fades into what was seen.
fn left_s(share: f64, elapsed_s: f64, expected_s: f64) -> f64 {
    let total_s = if share > 0.0 { elapsed_s / share } else { expected_s };
    (1.0 - share) * (share * total_s + (1.0 - share) * expected_s)
}

fn erasure(shown_letters: usize, width: usize) -> String {
    match shown_letters.saturating_sub(1) / width.max(1) {
        0 => "\r\x1b[J".to_owned(),
        lines => format!("\r\x1b[{lines}A\x1b[J"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_was_wrapped_is_erased_whole() {
        assert_eq!([erasure(0, 80), erasure(80, 80)], ["\r\x1b[J"; 2]);
        assert_eq!(erasure(81, 80), "\r\x1b[1A\x1b[J");
        assert_eq!(erasure(161, 80), "\r\x1b[2A\x1b[J");
    }

    #[test]
    fn what_steps_take_is_learned_from_those_behind_the_first_ones() {
        let mut pace = Pace { left_out: 2, begun: 0, from: None };
        // Two machines start for 20 s each. Then a step of which 0.4 s were expected takes 0.1 s.
        let begun_ns = |step: u64| step.min(2) * 20_000_000_000 + step.saturating_sub(2) * 100_000_000;
        let multiples: Vec<_> = (0..14).map(|step| pace.begun(begun_ns(step), 0.4 * step as f64)).collect();
        assert!(multiples[..12].iter().all(Option::is_none), "{multiples:?}");
        for multiple in &multiples[12..] {
            assert!(multiple.is_some_and(|multiple| (multiple - 0.25).abs() < 1e-9), "{multiples:?}");
        }
    }

    #[test]
    fn who_waits_is_told_what_is_done_and_since_when() {
        let what = "ext4 ram: recording, 48 MiB written to the device";
        let expected = [format!("{what}, 35 s so far"), format!("50 %  {what}, 35 s so far")];
        assert_eq!([0.0, 0.5].map(|share| waiting_line(share, 35_000_000_000, what)), expected);
    }

    #[test]
    fn the_forecast_fades_into_what_was_seen() {
        assert_eq!(left_s(0.0, 0.0, 60.0), 60.0);
        assert_eq!(left_s(0.5, 60.0, 60.0), 45.0);
        assert_eq!(left_s(1.0, 200.0, 60.0), 0.0);
    }
}
