//! Goal: an NBD client gets its bytes, each answer at its completion and never earlier, whatever it sends.
//! Method: the protocol over a socket pair; with a clock that jumps to the time waited for, and with the machine's.

#![allow(clippy::unwrap_used, reason = "clippy exempts test functions, not the helpers they share")]

use std::io::{self, Read, Write};
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use joj_device::assembly::Assembly;
use joj_device::clock::{Clock, SystemClock, readable_within};
use joj_device::device::EmulatedDevice;
use joj_device::nbd::{Served, serve, transmission_flags};
use joj_device::request_log::LoggedRequest;

const READ: u16 = 0;
const WRITE: u16 = 1;
const DISCONNECT: u16 = 2;
const FLUSH: u16 = 3;
const TRIM: u16 = 4;
const WRITE_ZEROES: u16 = 6;

type Device = EmulatedDevice<Vec<LoggedRequest>>;

fn device(name: &str) -> Device {
    EmulatedDevice::new(&Assembly::named(name).unwrap(), 1 << 30, Vec::new())
}

fn request(command: u16, flags: u16, cookie: u64, offset: u64, len: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = 0x2560_9513u32.to_be_bytes().to_vec();
    bytes.extend(flags.to_be_bytes());
    bytes.extend(command.to_be_bytes());
    bytes.extend(cookie.to_be_bytes());
    bytes.extend(offset.to_be_bytes());
    bytes.extend(len.to_be_bytes());
    bytes.extend(data);
    bytes
}

/// (cookie, error) of the next answer, whose magic must be right.
fn answer(stream: &mut UnixStream) -> (u64, u32) {
    let mut head = [0; 16];
    stream.read_exact(&mut head).unwrap();
    assert_eq!(head[..4], 0x6744_6698u32.to_be_bytes());
    let error = u32::from_be_bytes(head[4..8].try_into().unwrap());
    (u64::from_be_bytes(head[8..].try_into().unwrap()), error)
}

/// Jumps to whatever time is waited for, when the client has nothing to say.
struct JumpingClock(u64);

impl Clock for JumpingClock {
    fn now_ns(&mut self) -> u64 {
        self.0
    }

    fn wait(&mut self, socket: BorrowedFd<'_>, until_ns: Option<u64>) -> io::Result<bool> {
        if readable_within(socket, until_ns.map(|_| Duration::ZERO))? {
            return Ok(true);
        }
        self.sleep_until(until_ns.unwrap_or(0));
        Ok(false)
    }

    fn sleep_until(&mut self, until_ns: u64) {
        self.0 = self.0.max(until_ns);
    }
}

/// Serves what `sent` holds on a jumping clock; the outcome, the client's end with the answers, the device.
fn serve_all(mut device: Device, sent: &[u8]) -> (io::Result<Served>, UnixStream, Device) {
    let (mut client, mut server) = UnixStream::pair().unwrap();
    client.write_all(sent).unwrap();
    client.shutdown(std::net::Shutdown::Write).unwrap();
    let served = serve(&mut server, &mut device, &mut JumpingClock(0));
    (served, client, device)
}

#[test]
fn bytes_come_back_and_every_command_is_answered() {
    let sent = [
        request(WRITE, 0, 1, 4096, 512, &[7; 512]),
        request(WRITE, 1, 2, 8192, 512, &[8; 512]),
        request(FLUSH, 0, 3, 0, 0, &[]),
        request(TRIM, 0, 4, 8192, 4096, &[]),
        request(WRITE_ZEROES, 0, 5, 4096, 256 * 2, &[]),
        request(READ, 0, 6, 4096, 512, &[]),
        request(DISCONNECT, 0, 7, 0, 0, &[]),
    ]
    .concat();
    let (served, mut client, device) = serve_all(device("galaxy-s5-emmc"), &sent);
    assert_eq!(served.unwrap(), Served { requests: 6, refused: 0, late_ns_max: 0 });
    for cookie in 1..=6 {
        assert_eq!(answer(&mut client), (cookie, 0));
    }
    let mut data = [1; 512];
    client.read_exact(&mut data).unwrap();
    assert_eq!(data, [0; 512]);
    let (_, log) = device.into_parts();
    assert_eq!(log.len(), 6);
}

#[test]
fn answers_come_in_the_order_of_completions() {
    // A program of 430 us and a cached read: the queue of the NVMe drive lets the second overtake.
    let sent = [
        request(WRITE, 0, 1, 0, 4096, &[1; 4096]),
        request(WRITE, 1, 2, 4096, 4096, &[2; 4096]),
        request(READ, 0, 3, 0, 512, &[]),
        request(DISCONNECT, 0, 4, 0, 0, &[]),
    ]
    .concat();
    let (served, mut client, _) = serve_all(device("nvme-consumer"), &sent);
    assert_eq!(served.unwrap().requests, 3);
    assert_eq!(answer(&mut client).0, 1);
    assert_eq!(answer(&mut client).0, 3, "the cached read waited for the FUA write");
}

#[test]
fn wrong_requests_get_einval_and_the_stream_goes_on() {
    let sent = [
        request(READ, 0, 1, 1 << 30, 512, &[]),
        request(WRITE, 0, 2, u64::MAX - 511, 512, &[1; 512]),
        request(WRITE, 0, 3, 1, 512, &[1; 512]),
        request(READ, 0, 4, 0, 0, &[]),
        request(99, 0, 5, 0, 512, &[]),
        request(READ, 0, 6, 0, u32::MAX / 512 * 512, &[]),
        request(FLUSH, 0, 7, 0, 0, &[]),
    ]
    .concat();
    let (served, mut client, _) = serve_all(device("ram"), &sent);
    assert_eq!(served.unwrap(), Served { requests: 1, refused: 6, late_ns_max: 0 });
    for cookie in 1..=6 {
        assert_eq!(answer(&mut client), (cookie, 22));
    }
    assert_eq!(answer(&mut client), (7, 0));
}

#[test]
fn a_client_of_another_protocol_ends_the_serving_with_a_reason() {
    let cases: [(&[u8], io::ErrorKind, &str); 3] = [
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", io::ErrorKind::InvalidData, "begins with"),
        (&request(READ, 0, 1, 0, 512, &[])[..20], io::ErrorKind::UnexpectedEof, "within a request"),
        (&request(WRITE, 0, 1, 0, u32::MAX, &[]), io::ErrorKind::InvalidData, "at most"),
    ];
    for (sent, kind, words) in cases {
        let error = serve_all(device("ram"), sent).0.unwrap_err();
        assert_eq!(error.kind(), kind);
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[test]
fn on_the_machines_clock_no_answer_comes_early_at_any_queue_depth() {
    let (mut client, mut server) = UnixStream::pair().unwrap();
    let serving = thread::spawn(move || {
        let mut device = device("galaxy-s3-emmc");
        let served = serve(&mut server, &mut device, &mut SystemClock::new()).unwrap();
        (served, device.into_parts().1)
    });
    let begin = Instant::now();
    for cookie in 0..20u64 {
        client.write_all(&request(WRITE, 1, cookie, cookie * 4096, 4096, &[3; 4096])).unwrap();
    }
    let answered: Vec<u128> = (0..20)
        .map(|cookie| {
            assert_eq!(answer(&mut client), (cookie, 0));
            begin.elapsed().as_nanos()
        })
        .collect();
    client.write_all(&request(DISCONNECT, 0, 0, 0, 0, &[])).unwrap();
    let (served, log) = serving.join().unwrap();
    assert_eq!(served.requests, 20);
    for (index, (answered_ns, logged)) in answered.iter().zip(&log).enumerate() {
        // 290 us each, one after another, counted from before the first was sent.
        let latency_ns = u128::from(logged.completion.done_ns - log[0].submitted_ns);
        assert!(*answered_ns >= latency_ns, "answer {index} after {answered_ns} ns, not {latency_ns}");
        assert!(latency_ns >= 290_000 * (u128::try_from(index).unwrap() + 1));
    }
}

#[test]
fn requests_of_128_kib_to_32_mib_go_both_ways() {
    let (mut client, mut server) = UnixStream::pair().unwrap();
    let serving =
        thread::spawn(move || serve(&mut server, &mut device("ram"), &mut SystemClock::new()).unwrap());
    for len in [128 * 1024u32, 32 * 1024 * 1024] {
        let data: Vec<u8> = (0..len).map(|at| (at % 251).to_le_bytes()[0]).collect();
        client.write_all(&request(WRITE, 0, 1, 512, len, &data)).unwrap();
        assert_eq!(answer(&mut client), (1, 0));
        client.write_all(&request(READ, 0, 2, 512, len, &[])).unwrap();
        assert_eq!(answer(&mut client), (2, 0));
        let mut read = vec![0; data.len()];
        client.read_exact(&mut read).unwrap();
        assert!(read == data, "other bytes than written, {len}");
    }
    drop(client);
    assert_eq!(serving.join().unwrap().requests, 4);
}

#[test]
fn the_kernel_is_told_of_flush_and_fua_only_where_there_is_a_cache() {
    let flags = |name: &str| transmission_flags(&Assembly::named(name).unwrap());
    assert_eq!(flags("galaxy-s5-emmc"), 1 | 4 | 8 | 32 | 64);
    assert_eq!(flags("kingston"), 1 | 32 | 64);
}
