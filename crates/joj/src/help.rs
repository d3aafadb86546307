//! The help of all commands, as wide as the terminal: texts are wrapped once, and examples keep their lines.

use clap::{Command, CommandFactory, FromArgMatches};

use crate::command_line::Cli;
use crate::machine::proc::terminal;
use crate::show::text::wrap;

/// In front of what an example is for, where that has no room beside it.
const INDENT: usize = 6;

/// The command line that the program was called with; help, a version and mistakes end it, as clap does.
pub fn parse() -> Cli {
    let letters = terminal::output_letters();
    let matches = fitted(Cli::command(), letters).get_matches();
    Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

/// The same command and all below it, with help of so many letters.
fn fitted(command: Command, letters: usize) -> Command {
    let names: Vec<String> = command.get_subcommands().map(|below| below.get_name().to_owned()).collect();
    let mut command = command.term_width(letters);
    if let Some(text) = command.get_after_help().map(ToString::to_string) {
        command = command.after_help(wrapped(&text, letters));
    }
    names
        .into_iter()
        .fold(command, |command, name| command.mut_subcommand(name, |below| fitted(below, letters)))
}

/// Paragraphs wrapped anew. A line that begins with a space is an example, with its meaning behind two spaces.
fn wrapped(text: &str, letters: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut paragraph = String::new();
    for line in text.lines().chain([""]) {
        let is_text = !line.is_empty() && !line.starts_with(' ');
        if !is_text && !paragraph.is_empty() {
            lines.extend(wrap(&std::mem::take(&mut paragraph), letters, letters));
        }
        match is_text {
            true if paragraph.is_empty() => paragraph = line.to_owned(),
            true => paragraph = format!("{paragraph} {line}"),
            false => lines.extend(example(line, letters)),
        }
    }
    lines.join("\n").trim_end().to_owned()
}

fn example(line: &str, letters: usize) -> Vec<String> {
    let words = line.trim_start_matches(' ');
    let indent = line.len() - words.len();
    if line.chars().count() <= letters {
        return vec![line.to_owned()];
    }
    let (first, meaning) = words.split_once("  ").unwrap_or((words, ""));
    let mut lines = vec![format!("{}{first}", " ".repeat(indent))];
    let meaning = meaning.trim_start();
    if !meaning.is_empty() {
        let room = letters.saturating_sub(INDENT);
        lines.extend(wrap(meaning, room, room).iter().map(|line| format!("{}{line}", " ".repeat(INDENT))));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of commands in examples alone: they are to be copied as they are.
    fn is_too_wide(line: &str, letters: usize) -> bool {
        let is_command =
            line.starts_with("  ") && (line.contains("joj ") || line.contains(" | ") || line.contains("--"));
        line.chars().count() > letters && !is_command
    }

    fn check(command: &mut Command, letters: usize) {
        let help = command.render_long_help().to_string();
        for line in help.lines() {
            assert!(!is_too_wide(line, letters), "{}: {line}", command.get_name());
        }
        for below in command.get_subcommands_mut() {
            check(below, letters);
        }
    }

    #[test]
    fn no_help_is_wider_than_the_terminal() {
        for letters in [80, 120] {
            let mut command = fitted(Cli::command(), letters);
            command.build();
            check(&mut command, letters);
        }
    }

    #[test]
    fn a_paragraph_is_wrapped_once_and_an_example_keeps_its_line() {
        let text = "Examples:\n  joj a   what it does\n  joj bb  something longer\n\nA text that was\nwrapped by hand.";
        let narrow = "Examples:\n  joj a   what it does\n  joj bb\n      something longer\n\nA text that was wrapped\nby hand.";
        assert_eq!(wrapped(text, 23), narrow);
        assert_eq!(wrapped(text, 80), text.replace("was\nwrapped", "was wrapped"));
    }
}
