//! Serves an emulated device to a client of NBD: the Linux kernel behind NBD_SET_SOCK, or a test.
//!
//! ```text
//! pending   answers that wait for their time
//! wire      the bytes of requests and replies
//! ```
//!
//! One thread: requests are taken as they arrive and handed to the model at that time; each is answered at its
//! completion, in the order of completions, never earlier.

mod pending;
mod wire;

use std::io::{self, Read, Write};
use std::os::fd::AsFd;

use crate::assembly::Assembly;
use crate::clock::Clock;
use crate::device::EmulatedDevice;
use crate::number::index;
use crate::request::{Request, RequestKind};
use crate::request_log::RequestSink;
use pending::Pending;
use wire::{Command, Header};

/// Bytes asked of the socket at once.
const READ_BYTES: usize = 256 * 1024;
/// Largest data of one request; the kernel sends at most 32 MiB.
const DATA_BYTES_MAX: u32 = 64 * 1024 * 1024;

/// What was served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Served {
    /// Requests answered without an error.
    pub requests: u64,
    /// Requests answered with one.
    pub refused: u64,
    /// Latest answer behind its completion, nanoseconds: how well the clock was kept.
    pub late_ns_max: u64,
}

/// The flags that NBD_SET_FLAGS must get, so that the kernel sends what the device has: flush and FUA only beside a volatile cache.
pub fn transmission_flags(assembly: &Assembly) -> u64 {
    let mut flags = wire::HAS_FLAGS | wire::SEND_TRIM | wire::SEND_WRITE_ZEROES;
    if assembly.has_volatile_cache() {
        flags |= wire::SEND_FLUSH;
    }
    if assembly.offers_fua() {
        flags |= wire::SEND_FUA;
    }
    flags
}

/// Answers the client until it disconnects; what was asked before that is answered first.
///
/// # Errors
/// The socket's, the clock's or the log's; `InvalidData` where the client does not speak the protocol (the stream cannot be followed
/// any more), `UnexpectedEof` where it ends within a request. The device is sound in each case.
pub fn serve<T, S>(
    stream: &mut T,
    device: &mut EmulatedDevice<S>,
    clock: &mut dyn Clock,
) -> io::Result<Served>
where
    T: Read + Write + AsFd,
    S: RequestSink,
{
    let received = vec![0; READ_BYTES];
    let mut session =
        Session { device, received, input: Vec::new(), pending: Pending::default(), refused: 0 };
    let (mut served, mut open) = (Served::default(), true);
    loop {
        let now_ns = clock.now_ns();
        while let Some((done_ns, reply)) = session.pending.take_due(now_ns) {
            stream.write_all(&reply)?;
            served.requests += 1;
            served.late_ns_max = served.late_ns_max.max(now_ns - done_ns);
        }
        let until_ns = session.pending.next_ns();
        if !open && until_ns.is_none() {
            served.refused = session.refused;
            served.requests -= session.refused;
            return Ok(served);
        }
        if open {
            if clock.wait(stream.as_fd(), until_ns)? {
                open = session.take(stream, clock.now_ns())?;
            }
        } else {
            // The client has said its last word, so its socket has nothing to be waited for.
            clock.sleep_until(until_ns.unwrap_or(now_ns));
        }
    }
}

struct Session<'device, S: RequestSink> {
    device: &'device mut EmulatedDevice<S>,
    /// Filled anew by each read: clearing a fresh one would cost an emulated machine more than the request.
    received: Vec<u8>,
    /// Bytes that are no complete request yet.
    input: Vec<u8>,
    pending: Pending,
    refused: u64,
}

impl<S: RequestSink> Session<'_, S> {
    /// Reads once and submits every request that is complete; false at the client's end.
    fn take(&mut self, stream: &mut impl Read, now_ns: u64) -> io::Result<bool> {
        let count = stream.read(&mut self.received)?;
        self.input.extend_from_slice(&self.received[..count]);
        if count == 0 {
            let cut = "the client's stream ends within a request";
            let whole = self.input.is_empty();
            return if whole { Ok(false) } else { Err(io::Error::new(io::ErrorKind::UnexpectedEof, cut)) };
        }
        let mut used = 0;
        while let Some(header) = Header::read(&self.input[used..])? {
            if header.command == Command::Disconnect {
                return Ok(false);
            }
            let end = used + wire::HEADER_BYTES + index(u64::from(header.data_bytes(DATA_BYTES_MAX)?));
            if end > self.input.len() {
                break;
            }
            let mut data = self.input[used + wire::HEADER_BYTES..end].to_vec();
            self.submit(header, &mut data, now_ns)?;
            used = end;
        }
        self.input.drain(..used);
        Ok(true)
    }

    fn submit(&mut self, header: Header, data: &mut Vec<u8>, now_ns: u64) -> io::Result<()> {
        let fua = header.fua;
        let kind = match header.command {
            Command::Read if header.len_bytes <= DATA_BYTES_MAX => Some(RequestKind::Read),
            Command::Write => Some(RequestKind::Write { fua }),
            Command::Flush => Some(RequestKind::Flush),
            Command::Trim => Some(RequestKind::Trim),
            Command::WriteZeroes => Some(RequestKind::WriteZeroes { fua }),
            Command::Read | Command::Disconnect | Command::Unknown => None,
        };
        let Some(kind) = kind else {
            self.refuse(header, now_ns);
            return Ok(());
        };
        let request = match kind {
            RequestKind::Flush => Request::flush(),
            _ => Request { kind, offset_bytes: header.offset_bytes, len_bytes: u64::from(header.len_bytes) },
        };
        if kind == RequestKind::Read {
            data.resize(index(request.len_bytes), 0);
        }
        match self.device.submit(now_ns, request, data) {
            Ok(completion) => {
                let payload: &[u8] = if kind == RequestKind::Read { data } else { &[] };
                self.pending.add(completion.done_ns, wire::reply(header.cookie, 0, payload));
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => self.refuse(header, now_ns),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn refuse(&mut self, header: Header, now_ns: u64) {
        self.refused += 1;
        self.pending.add(now_ns, wire::reply(header.cookie, wire::EINVAL, &[]));
    }
}
