//! What is going on, on standard error: one line that changes on a terminal, a line per round elsewhere.

use std::io::{IsTerminal, Write, stderr};

use crate::bench::forecast::rough;
use crate::machine::proc::clock::now_ns;

/// Tells how far a plan has come.
#[derive(Debug)]
pub struct Progress {
    is_terminal: bool,
    began_ns: u64,
    done: usize,
    all: usize,
    expected_s: f64,
}

impl Progress {
    /// For a plan of `all` steps that is expected to take `expected_s` seconds.
    pub fn new(all: usize, expected_s: f64) -> Progress {
        Progress { is_terminal: stderr().is_terminal(), began_ns: now_ns(), done: 0, all, expected_s }
    }

    /// Before a step.
    pub fn step(&mut self, what: &str) {
        if self.is_terminal {
            let elapsed_s = (now_ns() - self.began_ns) as f64 / 1e9;
            let share = self.done as f64 / self.all.max(1) as f64;
            // The forecast fades into what was seen.
            let total_s = if share > 0.0 { elapsed_s / share } else { self.expected_s };
            let left_s = (1.0 - share) * (share * total_s + (1.0 - share) * self.expected_s);
            let line = format!("{:3.0} %  {} left  {what}", share * 100.0, rough(left_s));
            // Without the cut a narrow terminal wraps, and a line that wraps cannot be erased.
            eprint!("\r\x1b[K{line:.79}");
            let _ = stderr().flush();
        }
        self.done += 1;
    }

    /// Before a round.
    pub fn round(&self, round: u32, rounds: u32) {
        if !self.is_terminal {
            eprintln!("round {} of {rounds}", round + 1);
        }
    }

    /// After the last step, or before anything else is printed.
    pub fn clear(&self) {
        if self.is_terminal {
            eprint!("\r\x1b[K");
        }
    }
}
