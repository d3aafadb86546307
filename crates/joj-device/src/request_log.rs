//! What the device was asked and when, as it happens: to memory, as text, or with its data in dm-log-writes form.

use std::io::{self, BufRead, Write};

use crate::model::{Completion, Detail};
use crate::request::{Request, RequestKind};

/// A request with its times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoggedRequest {
    /// What was asked.
    pub request: Request,
    /// When it reached the device, nanoseconds.
    pub submitted_ns: u64,
    /// When the device took it, when it was done, and where the time went.
    pub completion: Completion,
}

impl LoggedRequest {
    /// The same where the device has no volatile cache: a power cut takes nothing that was done.
    #[must_use]
    pub const fn durable(mut self) -> LoggedRequest {
        self.request.kind = match self.request.kind {
            RequestKind::Write { .. } => RequestKind::Write { fua: true },
            RequestKind::Trim | RequestKind::WriteZeroes { .. } => RequestKind::WriteZeroes { fua: true },
            kind => kind,
        };
        self
    }
}

/// Takes requests in order of their submission, with the data of writes.
pub trait RequestSink {
    /// One request; `data` is empty for all but writes.
    ///
    /// # Errors
    /// The log's file; what it has of this request is unknown afterwards.
    fn record(&mut self, logged: &LoggedRequest, data: &[u8]) -> io::Result<()>;
}

/// No log.
impl RequestSink for () {
    fn record(&mut self, _logged: &LoggedRequest, _data: &[u8]) -> io::Result<()> {
        Ok(())
    }
}

/// A log that was asked for, or not.
impl<S: RequestSink> RequestSink for Option<S> {
    fn record(&mut self, logged: &LoggedRequest, data: &[u8]) -> io::Result<()> {
        self.as_mut().map_or(Ok(()), |sink| sink.record(logged, data))
    }
}

/// Two logs.
impl<A: RequestSink, B: RequestSink> RequestSink for (A, B) {
    fn record(&mut self, logged: &LoggedRequest, data: &[u8]) -> io::Result<()> {
        self.0.record(logged, data)?;
        self.1.record(logged, data)
    }
}

/// In memory, without data: tests and `what-if`.
impl RequestSink for Vec<LoggedRequest> {
    fn record(&mut self, logged: &LoggedRequest, _data: &[u8]) -> io::Result<()> {
        self.push(*logged);
        Ok(())
    }
}

/// First line of a text log.
const NAMES: &str = "submitted_ns\tstart_ns\tdone_ns\tkind\toffset_bytes\tlen_bytes\tfua";

/// A line for each request, without data; the first line names the columns. Constant memory.
#[derive(Debug)]
pub struct TextLog<W: Write> {
    out: W,
}

impl<W: Write> TextLog<W> {
    /// Begins with the line of names.
    ///
    /// # Errors
    /// The file's.
    pub fn new(mut out: W) -> io::Result<Self> {
        writeln!(out, "{NAMES}")?;
        Ok(TextLog { out })
    }

    /// The file, with everything handed to it.
    ///
    /// # Errors
    /// The file's; lines may be missing at its end.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }
}

impl<W: Write> RequestSink for TextLog<W> {
    fn record(&mut self, logged: &LoggedRequest, _data: &[u8]) -> io::Result<()> {
        let Request { kind, offset_bytes, len_bytes } = logged.request;
        let (word, fua) = match kind {
            RequestKind::Read => ("read", false),
            RequestKind::Write { fua } => ("write", fua),
            RequestKind::Flush => ("flush", false),
            RequestKind::Trim => ("trim", false),
            RequestKind::WriteZeroes { fua } => ("write-zeroes", fua),
        };
        writeln!(
            self.out,
            "{}\t{}\t{}\t{word}\t{offset_bytes}\t{len_bytes}\t{}",
            logged.submitted_ns,
            logged.completion.start_ns,
            logged.completion.done_ns,
            u8::from(fua)
        )
    }
}

/// Reads what a [`TextLog`] wrote; each completion's detail is empty, because the text has none.
///
/// # Errors
/// The file's, or `InvalidData` with the line that is damaged: nothing of such a log is used.
pub fn read_text(input: impl BufRead) -> io::Result<Vec<LoggedRequest>> {
    let mut lines = input.lines();
    if lines.next().transpose()?.as_deref() != Some(NAMES) {
        let message = "no request log: the first line does not name its columns";
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    let damaged = |number: usize| {
        let message = format!("line {} of the request log is damaged or cut off", number + 2);
        io::Error::new(io::ErrorKind::InvalidData, message)
    };
    let read = |(number, line): (usize, io::Result<String>)| parse(&line?).ok_or_else(|| damaged(number));
    lines.enumerate().map(read).collect()
}

fn parse(line: &str) -> Option<LoggedRequest> {
    let cells: Vec<&str> = line.split('\t').collect();
    let [submitted, start, done, kind, offset, len, fua] = cells[..] else { return None };
    let fua = match fua {
        "0" => false,
        "1" => true,
        _ => return None,
    };
    let kind = match kind {
        "read" => RequestKind::Read,
        "write" => RequestKind::Write { fua },
        "flush" => RequestKind::Flush,
        "trim" => RequestKind::Trim,
        "write-zeroes" => RequestKind::WriteZeroes { fua },
        _ => return None,
    };
    let number = |cell: &str| cell.parse::<u64>().ok();
    let request = Request { kind, offset_bytes: number(offset)?, len_bytes: number(len)? };
    let (start_ns, done_ns) = (number(start)?, number(done)?);
    let completion = Completion { start_ns, done_ns, detail: Detail::default() };
    Some(LoggedRequest { request, submitted_ns: number(submitted)?, completion })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_times_and_the_request() {
        let mut log = TextLog::new(Vec::new()).unwrap();
        let completion = Completion { start_ns: 11, done_ns: 12, detail: Detail::default() };
        let logged = LoggedRequest { request: Request::write_fua(512, 1024), submitted_ns: 10, completion };
        log.record(&logged, &[0; 1024]).unwrap();
        let text = String::from_utf8(log.finish().unwrap()).unwrap();
        assert_eq!(text.lines().nth(1), Some("10\t11\t12\twrite\t512\t1024\t1"));
        assert_eq!(read_text(text.as_bytes()).unwrap(), [logged]);
    }

    #[test]
    fn a_damaged_text_log_is_refused_with_its_line() {
        assert!(read_text(&b"something else\n"[..]).unwrap_err().to_string().contains("first line"));
        for line in
            ["1\t2\t3\twrite\t512\t10", "1\t2\t3\tpaint\t512\t1024\t0", "1\t2\t3\tread\t512\t1024\t2", ""]
        {
            let error = read_text(format!("{NAMES}\n{line}\n").as_bytes()).unwrap_err();
            assert!(error.to_string().contains("line 2"), "{line:?}: {error}");
        }
    }
}
