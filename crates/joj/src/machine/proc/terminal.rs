//! The terminal that standard output or standard error is, if it is one.

use std::io::{IsTerminal, stderr, stdout};
use std::os::fd::AsFd;

use rustix::termios::tcgetwinsize;

/// So wide is what goes to a file, a pipe, or a terminal that tells no width.
pub const USUAL_LETTERS: usize = 80;

fn letters(stream: impl AsFd + IsTerminal) -> usize {
    let size =
        Some(&stream).filter(|stream| stream.is_terminal()).and_then(|stream| tcgetwinsize(stream).ok());
    size.map(|size| usize::from(size.ws_col)).filter(|letters| *letters > 0).unwrap_or(USUAL_LETTERS)
}

/// Letters in a line of standard output.
pub fn output_letters() -> usize {
    letters(stdout())
}

/// Letters in a line of standard error.
pub fn error_letters() -> usize {
    letters(stderr())
}

/// True where standard output shows colours, and the user did not ask for none (<https://no-color.org>).
pub fn output_has_colours() -> bool {
    let is_set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let is_dumb = is_set("TERM").is_none_or(|kind| kind == "dumb");
    stdout().is_terminal() && is_set("NO_COLOR").is_none() && !is_dumb
}
