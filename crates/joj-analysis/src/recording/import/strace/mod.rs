//! What strace prints: `strace -f -tt -T -y -o FILE COMMAND`, also with -ttt and -yy.
//!
//! ```text
//! lines -> line (taken apart) -> calls, names (what each asks for) -> system_calls (what that means for files)
//!
//! calls       calls on descriptors, and on processes
//! names       calls that name files
//! arguments   numbers, flags and structures among their arguments
//! line        one line
//! ```

mod calls;
mod names;
mod arguments;
mod line;

use std::collections::HashMap;
use std::io::BufRead;

use crate::recording::Recording;
use crate::trace::header::Source;
use crate::trace::import::lines::Lines;
use crate::trace::import::{ImportError, LineProblem};

use crate::recording::system_calls::calls::Calls;
use crate::recording::system_calls::operation::ThreadEnd;

use line::{LineEvent, Midnights};

/// The thread of lines without a number: no process has it.
const ONLY_THREAD: u32 = 0;

/// Imports strace's text. Contents that it quotes are dropped.
/// # Errors
/// Names the line and its column.
pub fn import(text: impl BufRead) -> Result<Recording, ImportError> {
    let mut lines = Lines::new(text);
    let mut import = StraceImport::default();
    while lines.advance()? {
        let line = lines.line();
        import.line(&line).map_err(|problem| lines.error(problem))?;
    }
    let mut output = import.calls.finish();
    for pending in import.pending.values() {
        output.not_replayed(&format!("{}: its end is not in the text", name_of(&pending.text)));
    }
    if !import.has_durations {
        output.infer("How long calls took is not in the text (strace -T): think time includes it.");
    }
    Ok(output.finish(Source::Strace, import.is_calendar))
}

#[derive(Default)]
struct StraceImport {
    calls: Calls,
    midnights: Midnights,
    pending: HashMap<u32, Pending>,
    /// Threads that strace names later than their first calls: under which number they began.
    renamed: HashMap<u32, u32>,
    is_calendar: bool,
    has_durations: bool,
}

/// A call whose end is in a later line.
struct Pending {
    text: String,
    begin_ns: u64,
}

fn name_of(text: &str) -> &str {
    text.split('(').next().unwrap_or_default()
}

impl StraceImport {
    fn line(&mut self, line: &str) -> Result<(), LineProblem> {
        let Some(parsed) = line::parse(line)? else { return Ok(()) };
        let time_ns = self.midnights.time_ns(&parsed);
        self.is_calendar |= parsed.is_calendar;
        let thread = self.thread(parsed.thread.unwrap_or(ONLY_THREAD));
        match parsed.what {
            LineEvent::Call(text) => {
                self.call(thread, time_ns, text, true).map_err(|problem| moved(problem, line, text, 0))
            }
            LineEvent::Unfinished(text) => {
                // What a close closes is decided now: the descriptor may be another file's when it ends.
                let closed = text.strip_prefix("close(").map(|word| word.trim_end_matches(')'));
                if let Some(descriptor) = closed.and_then(arguments::descriptor) {
                    self.calls.begin_close(thread, descriptor);
                }
                self.pending.insert(thread, Pending { text: text.to_owned(), begin_ns: time_ns });
                Ok(())
            }
            LineEvent::Resumed(name, rest) => {
                let pending = self.pending.remove(&thread).filter(|pending| name_of(&pending.text) == name);
                let pending = pending.ok_or_else(|| moved(LineProblem::NotBegun, line, name, 0))?;
                let text = format!("{}{rest}", pending.text);
                let begun = pending.text.len();
                self.call(thread, pending.begin_ns, &text, false)
                    .map_err(|problem| moved(problem, line, rest, begun))
            }
            LineEvent::CutOff => {
                self.cut_off(thread);
                Ok(())
            }
            LineEvent::Exit => {
                self.cut_off(thread);
                self.calls.exit(thread, time_ns, ThreadEnd::ByOthers);
                Ok(())
            }
            LineEvent::Superseded(by) => {
                self.cut_off(thread);
                let former = self.thread(by);
                self.calls.exec(thread, former, time_ns);
                if let Some(execve) = self.pending.remove(&former) {
                    self.pending.insert(thread, execve);
                }
                Ok(())
            }
            LineEvent::Signal => Ok(()),
        }
    }

    /// A thread is gone before the end of its call.
    fn cut_off(&mut self, thread: u32) {
        if let Some(pending) = self.pending.remove(&thread) {
            let name = name_of(&pending.text);
            if !name.starts_with("exit") {
                self.no_end(name_of(&pending.text));
            }
        }
    }

    fn no_end(&mut self, name: &str) {
        self.calls.output.not_replayed(&format!("{name}: its end is not in the text"));
    }

    /// `is_whole`: all in one line, so that nothing came between its begin and its end.
    fn call(&mut self, thread: u32, begin_ns: u64, text: &str, is_whole: bool) -> Result<(), LineProblem> {
        if text.starts_with("restart_syscall(") {
            self.calls.output.not_replayed("restart_syscall");
            return Ok(());
        }
        let call = line::call(text)?;
        self.has_durations |= call.duration_ns.is_some();
        if is_whole && let Some(directory) = call.arguments.iter().find_map(|word| arguments::directory(word))
        {
            self.calls.is_in(thread, &directory);
        }
        match calls::decode(thread, begin_ns, text, &call) {
            Ok(decoded) => drop(self.calls.call(&decoded)),
            // Of a call in which its thread was killed strace does not print all arguments.
            Err(_) if call.result.is_none() => self.no_end(call.name),
            Err(problem) => return Err(problem),
        }
        Ok(())
    }

    /// The thread of this number, or the one whose number was not known until now.
    fn thread(&mut self, number: u32) -> u32 {
        if let Some(first) = self.renamed.get(&number) {
            return *first;
        }
        if self.calls.processes.knows(number) {
            return number;
        }
        let forking = self.pending.iter().filter(|(_, pending)| calls::is_fork(name_of(&pending.text)));
        let parent = forking.max_by_key(|(thread, pending)| (pending.begin_ns, **thread));
        if let Some((&parent, pending)) = parent {
            // Its first line comes before the end of the call that made it.
            let sharing = calls::sharing(&pending.text);
            self.calls.fork_early(parent, number, pending.begin_ns, sharing);
        } else if self.calls.processes.knows(ONLY_THREAD) && self.renamed.is_empty() && number != ONLY_THREAD
        {
            // The first lines of `strace -f` without -o have no number.
            self.renamed.insert(number, ONLY_THREAD);
            return ONLY_THREAD;
        } else {
            self.calls.processes.begin(number);
        }
        number
    }
}

/// A problem of `part` of a line, of which `begun` bytes stand in an earlier line, with the column of this line.
fn moved(problem: LineProblem, line: &str, part: &str, begun: usize) -> LineProblem {
    let at = part.as_ptr().addr().saturating_sub(line.as_ptr().addr());
    match problem {
        LineProblem::Column { column, problem } => {
            let column = at + column.saturating_sub(begun).max(1);
            LineProblem::Column { column: column.min(line.len() + 1), problem }
        }
        problem => super::in_column(at, problem),
    }
}
