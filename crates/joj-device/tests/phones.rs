//! Goal: the phones of ATC'13 and WALDIO cost what was measured, with the requests that ext4 of their time sent.
//! Method: the requests of one operation, and the time of the host as the descriptions' sources name it. Rows marked `fit` are
//! those the numbers come from (10 % is the promise; the card was fitted to all of Table 2 at once, and a row that says another
//! bound is off by more); all others are predictions (25 %).
//! `cargo test -p joj-device --test phones -- --nocapture` prints the table.

#![allow(clippy::unwrap_used, reason = "clippy exempts test functions, not the helpers they share")]

use joj_device::assembly::Assembly;
use joj_device::request::Request;
use joj_device::workload::{Bench, MIB, sequential};

const KB: u64 = 1024;

fn bench(name: &str) -> Bench {
    Bench::new(&Assembly::named(name).unwrap(), 8192 * MIB)
}

/// Operations a second of `requests`, repeated, with `host_us` of the host in each.
fn rate(device: &str, requests: &[Request], host_us: u64) -> f64 {
    let (mut bench, repeats) = (bench(device), 200);
    let device_ns: u64 = (0..repeats).map(|_| bench.nanoseconds(requests.to_vec())).sum();
    1e9 / (device_ns as f64 / f64::from(repeats) + host_us as f64 * 1e3)
}

fn compare(row: &str, paper: f64, model: f64, promise: f64) {
    let ratio = model / paper;
    println!("{row:66} {paper:8.1} {model:8.1} {ratio:5.2}");
    assert!((ratio - 1.0).abs() <= promise, "{row}: {model:.1}, the paper has {paper}");
}

/// Writes of these sizes in KiB, far from each other.
fn writes(sizes_kb: &[u64]) -> Vec<Request> {
    (0..).zip(sizes_kb).map(|(index, kb)| Request::write(index * 64 * 1024 * KB, kb * KB)).collect()
}

#[test]
fn galaxy_s3_syncs_as_atc_13_table_1() {
    let sync = [&writes(&[4, 8])[..], &[Request::flush(), Request::write_fua(1 << 30, 4 * KB)]].concat();
    let model = rate("galaxy-s3-emmc", &sync, 200);
    compare("fit: ATC'13 Table 1, 4 KB random write + fsync/s, one thread", 1002.0, model, 0.1);
}

/// Writes that go on where those before them ended, as those of a journal and of a log-structured filesystem.
struct Stream {
    next: u64,
}

impl Stream {
    fn at(mib: u64) -> Self {
        Stream { next: mib * MIB }
    }

    fn append(&mut self, kb: u64) -> Request {
        self.next += kb * KB;
        Request::write(self.next - kb * KB, kb * KB)
    }

    /// The last page is written again, with what it had no room for, and more behind it.
    fn append_from_last_page(&mut self, kb: u64) -> Request {
        self.next -= 4 * KB;
        self.append(kb)
    }
}

/// Operations a second on the card of ATC'13, with the time of the host as `joj lab` has it.
fn card(host_us: u64, mut requests: impl FnMut(&mut Stream, &mut Stream) -> Vec<Request>) -> f64 {
    let (mut bench, repeats) = (bench("transcend-card-s3"), 500);
    let (mut data, mut log) = (Stream::at(130), Stream::at(512));
    let device_ns: u64 = (0..repeats).map(|_| bench.nanoseconds(requests(&mut data, &mut log))).sum();
    1e9 / (device_ns as f64 / f64::from(repeats) + host_us as f64 * 1e3)
}

/// Pages of the database, each where it is.
fn pages(count: u64) -> Vec<Request> {
    (0..count).map(|page| Request::write(MIB + page * 8 * KB, 4 * KB)).collect()
}

/// Places and sizes are those that `joj lab` traced of today's kernel.
#[test]
fn transcend_card_inserts_as_atc_13_table_2() {
    let truncate = card(270, |data, log| {
        let journal = [data.append(16), log.append(20), log.append(4)];
        [&journal[..], &pages(3), &[log.append(8), log.append(4)]].concat()
    });
    compare("fit: ATC'13 Table 2, EXT4 TRUNCATE insert/s, 8 writes 64 KB", 39.0, truncate, 0.1);
    let update = card(70, |_, log| [&pages(2)[..], &[log.append(8), log.append(4)]].concat());
    compare("fit: the same, update/s, 4 writes 20 KB", 102.0, update, 0.2);
    let wal = card(120, |data, log| vec![data.append_from_last_page(12), log.append(16), log.append(4)]);
    compare("fit: ATC'13 Table 2, EXT4 WAL insert/s, 3 writes 32 KB", 76.0, wal, 0.1);
    let f2fs = card(120, |data, log| vec![data.append(12), log.append(4)]);
    compare("fit: ATC'13 Table 2, F2FS WAL insert/s, 2 writes 16 KB", 149.0, f2fs, 0.2);
    let outside = card(1_120, |data, _| vec![data.append_from_last_page(12)]);
    compare("fit: EXT4 WAL, journal elsewhere (1 ms), insert/s, 1 write 12 KB", 92.0, outside, 0.6);
    assert!(wal < outside && outside < f2fs, "the order of the rows");
}

#[test]
fn galaxy_s5_commits_as_waldio_table_2() {
    let phone = |requests: &[Request]| rate("galaxy-s5-emmc", requests, 250);
    let commit = [Request::flush(), Request::write_fua(1 << 30, 4 * KB)];
    let wal = phone(&[&writes(&[8, 16])[..], &commit].concat());
    compare("fit: WALDIO Table 2, WAL insert/s", 587.0, wal, 0.1);
    let flushed = phone(&[&writes(&[4])[..], &[Request::flush()]].concat());
    compare("WALDIO Table 2, FS without group synch, 4 KB + flush", 1219.0, flushed, 0.25);
    let durable = phone(&[Request::write_fua(0, 4 * KB)]);
    compare("WALDIO Table 2, PD without group synch, 4 KB reliable write", 1290.0, durable, 0.25);
    compare("WALDIO Table 2, NS without group synch, 4 KB", 2907.0, phone(&writes(&[4])), 0.25);
    assert!(wal < flushed && flushed < durable, "the order of the rows");
}

#[test]
fn galaxy_s5_writes_as_waldio_fig_6() {
    let rate = |bytes: u64| {
        let requests = (0..2048).map(|index| Request::write(index * bytes, bytes));
        bench("galaxy-s5-emmc").rate(requests)
    };
    compare("fit: WALDIO Fig. 6, sequential writes of 512 bytes, MB/s", 2.0, rate(512), 0.1);
    compare("fit: WALDIO Fig. 6, of 16 KB, MB/s", 70.0, rate(16 * KB), 0.1);
    let large = bench("galaxy-s5-emmc").rate(sequential(256 << 20, Request::write));
    assert!(large > 70.0, "{large:.1} MB/s with large writes");
    let (half, page) = (rate(2 * KB), rate(4 * KB));
    assert!(page > 2.5 * half, "no step at 4 KB: {half:.1} MB/s, {page:.1} MB/s");
    println!("{:66} {:>8} {:8.1}", "WALDIO Fig. 6, of 4 KB, MB/s", "", page);
    println!("{:66} {:>8} {:8.1}", "WALDIO Fig. 6, of 8 KB, MB/s", "", rate(8 * KB));
    println!("{:66} {:>8} {:8.1}", "WALDIO Fig. 6, of 128 KB, MB/s (above 70)", "", large);
}
