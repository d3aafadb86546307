//! The text of ftrace's `trace` and `trace_pipe`, and of `trace-cmd report`: events of block, jbd2, and sync calls.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, Seek};

use crate::trace::event::{Event, EventKind, FileKey, SECTOR_BYTES};
use crate::trace::header::{Header, Source};
use crate::trace::import::error::{ImportError, LineProblem, Stopped};
use crate::trace::import::ftrace_line::Line;
use crate::trace::import::lines::Lines;
use crate::trace::import::output::{ImportSink, Output};
use crate::trace::import::words;
use crate::trace::texts::Text;

/// Imports ftrace's text. It is read from its begin, and for a look at what is in it once more.
/// # Errors
/// Names the line and its byte. What the sink got before is part of a trace, not a trace.
pub fn import(mut text: impl BufRead + Seek, sink: &mut ImportSink) -> Result<Header, ImportError> {
    text.rewind().map_err(ImportError::Rewind)?;
    let (calls, mut text) = needs_calls(text)?;
    text.rewind().map_err(ImportError::Rewind)?;
    let mut import = FtraceImport {
        output: Output::new(sink),
        calls,
        in_call: HashMap::new(),
        left_out: BTreeMap::new(),
        any_process: false,
        overwritten: 0,
    };
    let mut lines = Lines::new(text);
    while lines.advance()? {
        import.line(&lines.line()).map_err(|problem| lines.error(problem))?;
    }
    Ok(import.finish()?)
}

/// False where filesystems tell of their syncs themselves: they know the file, and the system calls would tell everything twice.
fn needs_calls<R: BufRead>(text: R) -> Result<(bool, R), ImportError> {
    let mut lines = Lines::new(text);
    while lines.advance()? {
        let line = lines.line();
        if line.contains(": ext4_sync_file_enter: ") || line.contains(": f2fs_sync_file_enter: ") {
            drop(line);
            return Ok((false, lines.into_text()));
        }
    }
    Ok((true, lines.into_text()))
}

struct FtraceImport<'a, 'b> {
    output: Output<'a, 'b>,
    calls: bool,
    /// The call that a thread is in, and its file.
    in_call: HashMap<u32, (Text, FileKey)>,
    /// Events that nothing was made of.
    left_out: BTreeMap<String, u64>,
    any_process: bool,
    /// Events that the buffer no longer held, until the time of the first that it did is known.
    overwritten: u64,
}

impl FtraceImport<'_, '_> {
    fn line(&mut self, line: &str) -> Result<(), LineProblem> {
        if line.is_empty() || line.starts_with("cpus=") {
            return Ok(());
        }
        if let Some(comment) = line.strip_prefix('#') {
            self.overwritten = overwritten(comment).unwrap_or(self.overwritten);
            return Ok(());
        }
        if let Some(lost) = line.strip_prefix("CPU:").and_then(|line| line.split_once("[LOST ")) {
            let events = lost.1.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0);
            return Ok(self.output.lost(self.output.last_ns(), events)?);
        }
        let line = Line::parse(line)?;
        if self.overwritten > 0 {
            self.output.lost(line.time_ns, std::mem::take(&mut self.overwritten))?;
        }
        self.any_process |= line.process != 0;
        let command = self.output.keep(line.command);
        let base = Event {
            time_ns: line.time_ns,
            thread: line.thread,
            process: line.process,
            command,
            ..Event::default()
        };
        match line.event {
            "block_bio_queue" => self.request(base, EventKind::Queue, line.said),
            "block_rq_issue" => self.request(base, EventKind::Issue, line.said),
            "block_rq_complete" => self.request(base, EventKind::Complete, line.said),
            "block_rq_requeue" => self.request(base, EventKind::Requeue, line.said),
            "block_bio_remap" => self.remap(line.said),
            "jbd2_start_commit" | "jbd2_commit_flushing" => {
                self.journal(base, EventKind::JournalBegin, line.said)
            }
            "jbd2_end_commit" => self.journal(base, EventKind::JournalEnd, line.said),
            "ext4_sync_file_enter" | "f2fs_sync_file_enter" => self.file_sync_begins(base, line.said),
            "ext4_sync_file_exit" | "f2fs_sync_file_exit" => self.file_sync_ends(base, line.said),
            _ => self.call_or_other(base, &line),
        }
    }

    fn call_or_other(&mut self, base: Event, line: &Line) -> Result<(), LineProblem> {
        match (begins_call(line.event, line.said), ends_call(line.event, line.said)) {
            (Some(call), _) if self.calls => self.sync_begins(base, call, FileKey::NONE),
            (_, Some(result)) if self.calls => self.sync_ends(base, result?),
            _ => {
                *self.left_out.entry(line.event.to_owned()).or_default() += 1;
                Ok(())
            }
        }
    }

    /// `8,0 FWFSM 4096 () 2048 + 8 none,0,0 [sqlite3]`: the bytes only where a request is issued, the bracketed command
    /// where there is a request, the priority in newer kernels only; a completion has its error in the last bracket.
    fn request(&mut self, base: Event, kind: EventKind, said: &str) -> Result<(), LineProblem> {
        let mut parts = said.split_whitespace();
        let device = parts.next().and_then(words::device).ok_or(LineProblem::NamesNo("device like 8,0"))?;
        let letters = parts.next().ok_or(LineProblem::EndsBefore("kind of request"))?;
        let (before, after) = said.split_once(" + ").ok_or(LineProblem::HasNo("`sector + sectors`"))?;
        let sector = before.rsplit(' ').next().unwrap_or_default();
        let sector: u64 = sector.parse().map_err(|_| words::is_no(sector, "sector"))?;
        let sectors = after.split(' ').next().unwrap_or_default();
        let sectors: u64 = sectors.parse().map_err(|_| words::is_no(sectors, "number of sectors"))?;
        let bytes = words::bytes_of(sectors).ok_or(LineProblem::TooManySectors)?;
        let (operation, flags) = words::operation_and_flags(letters, bytes)
            .ok_or_else(|| words::is_no(letters, "kind of request"))?;
        let mut event = Event { kind, device, sector, bytes, operation, flags, ..base };
        if sector >= u64::MAX / SECTOR_BYTES && bytes == 0 {
            event.sector = 0;
        }
        if kind == EventKind::Complete {
            let error = said.rsplit_once('[').and_then(|(_, error)| error.strip_suffix(']'));
            event.detail = error
                .and_then(|error| error.parse().ok())
                .ok_or(LineProblem::HasNo("error in brackets at its end"))?;
        }
        Ok(self.output.push(event)?)
    }

    /// `8,0 WS 8409088 + 8 <- (8,1) 8407040`
    fn remap(&mut self, said: &str) -> Result<(), LineProblem> {
        let told = || {
            let (to, from) = said.split_once(" <- ")?;
            let mut to = to.split_whitespace();
            let device = words::device(to.next()?)?;
            let sector = to.nth(1)?.parse().ok()?;
            let (from_device, from_sector) = from.split_once(' ')?;
            Some(((words::device(from_device)?, from_sector.trim().parse().ok()?), (device, sector)))
        };
        let (from, to) = told().ok_or(LineProblem::IsNoRemap("8,0 WS 8409088 + 8 <- (8,1) 8407040"))?;
        self.output.remapped(from, to);
        Ok(())
    }

    /// `dev 8,1 transaction 12 sync 0`
    fn journal(&mut self, base: Event, kind: EventKind, said: &str) -> Result<(), LineProblem> {
        let device =
            after(said, "dev").and_then(words::device).ok_or(LineProblem::NamesNo("device like 8,0"))?;
        let transaction = after(said, "transaction").and_then(|number| number.parse().ok());
        let detail = transaction.ok_or(LineProblem::NamesNo("transaction"))?;
        Ok(self.output.push(Event { kind, device, detail, ..base })?)
    }

    /// `dev 8,1 ino 12 parent 2 datasync 1`, F2FS's with `dev = (8,1), ino = 12, ..`.
    fn file_sync_begins(&mut self, base: Event, said: &str) -> Result<(), LineProblem> {
        let call = if after(said, "datasync") == Some("1") { "fdatasync" } else { "fsync" };
        self.sync_begins(base, call, file(said)?)
    }

    /// `dev 8,1 ino 12 ret 0`
    fn file_sync_ends(&mut self, base: Event, said: &str) -> Result<(), LineProblem> {
        let result =
            after(said, "ret").and_then(|number| number.parse().ok()).ok_or(LineProblem::HasNo("result"))?;
        let file = file(said)?;
        self.in_call.entry(base.thread).or_insert((Text::NONE, file));
        self.sync_ends(base, result)
    }

    fn sync_begins(&mut self, base: Event, call: &str, file: FileKey) -> Result<(), LineProblem> {
        let name = self.output.keep(call);
        self.in_call.insert(base.thread, (name, file));
        Ok(self.output.push(Event { kind: EventKind::SyncBegin, file, name, ..base })?)
    }

    fn sync_ends(&mut self, base: Event, detail: i64) -> Result<(), LineProblem> {
        // One that began before the trace did.
        let (name, file) = self.in_call.remove(&base.thread).unwrap_or_default();
        Ok(self.output.push(Event { kind: EventKind::SyncEnd, file, name, detail, ..base })?)
    }

    fn finish(self) -> Result<Header, Stopped> {
        let mut inferred = vec![
            "Which file a request belongs to is unknown: ftrace's events do not say it.".to_owned(),
            "Writes without sectors but with PREFLUSH were taken for flushes.".to_owned(),
        ];
        inferred.push(match self.calls {
            true => "Sync calls were taken from system calls, of which ftrace tells no file.".to_owned(),
            false => {
                "Sync calls were taken from the filesystem's events; those of other filesystems are missing."
                    .to_owned()
            }
        });
        if !self.any_process {
            inferred.push(
                "Processes are unknown: the trace was recorded without the option record-tgid.".to_owned(),
            );
        }
        for (event, times) in &self.left_out {
            inferred.push(format!("{times} events called {} were left out.", words::excerpt(event)));
        }
        self.output.finish(Source::Ftrace, inferred)
    }
}

/// How many events were overwritten, from `# entries-in-buffer/entries-written: 10/200   #P:2`.
fn overwritten(comment: &str) -> Option<u64> {
    let (_, numbers) = comment.split_once("entries-in-buffer/entries-written:")?;
    let (held, written) = numbers.split_whitespace().next()?.split_once('/')?;
    let missing = written.parse::<u64>().ok()?.checked_sub(held.parse().ok()?)?;
    (missing > 0).then_some(missing)
}

/// The word behind another one; `=`, brackets' commas and the like do not count.
fn after<'a>(said: &'a str, wanted: &str) -> Option<&'a str> {
    let mut words =
        said.split([' ', '=']).map(|word| word.trim_end_matches(',')).filter(|word| !word.is_empty());
    words.find(|word| *word == wanted)?;
    words.next()
}

fn file(said: &str) -> Result<FileKey, LineProblem> {
    let device = after(said, "dev").and_then(words::device).ok_or(LineProblem::NamesNo("device like 8,0"))?;
    let inode =
        after(said, "ino").and_then(|number| number.parse().ok()).ok_or(LineProblem::NamesNo("inode"))?;
    Ok(FileKey { device, inode, generation: 0 })
}

const CALLS: [&str; 5] = ["fsync", "fdatasync", "sync", "syncfs", "msync"];

/// The call that begins: `sys_fsync(fd: 3)`, or `sys_enter_fsync: fd: 0x3` as trace-cmd prints it.
fn begins_call(event: &str, said: &str) -> Option<&'static str> {
    let name = event.strip_prefix("sys_enter_");
    let name = name.or_else(|| event.strip_prefix("sys_").filter(|_| said.starts_with('(')));
    CALLS.into_iter().find(|call| Some(*call) == name)
}

/// What a call returned: `sys_fsync -> 0x0`, or `sys_exit_fsync: 0x0`.
fn ends_call(event: &str, said: &str) -> Option<Result<i64, LineProblem>> {
    let name = event.strip_prefix("sys_exit_");
    let name = name.or_else(|| event.strip_prefix("sys_").filter(|_| said.starts_with("->")));
    CALLS.into_iter().find(|call| Some(*call) == name)?;
    let digits = said.trim_start_matches("->").trim().trim_start_matches("0x");
    // A negative errno is printed as the number of 64 bits that it is.
    let result = u64::from_str_radix(digits, 16).map(u64::cast_signed);
    Some(result.map_err(|_| words::is_no(said, "result of a call")))
}
