//! Goal: requests over the same sectors, several of them under way at once, are each told once, with their own bytes and times.
//! Method: a model of the block layer with a fixed random seed: bios that overlap are merged, split, issued, put back and completed,
//! wholly or in parts. It keeps account of what it did, and attribution must come to the same from the events alone.

use std::collections::BTreeMap;

use joj_analysis::trace::event::{Event, EventKind, FileKey};
use joj_analysis::trace::texts::Texts;

mod attribution;

use attribution::{DISK, Seen, attributed_with, write};

const SECTOR: u64 = 512;

/// What the model's block layer does.
#[derive(Debug, Clone, Copy, Default)]
struct Ways {
    /// Bios next to each other become one request.
    merges: bool,
    /// A request has so many sectors at most; 0 for any number.
    most_sectors: u64,
    /// What was issued first is complete first.
    in_order: bool,
    /// Some are put back by the driver.
    requeues: bool,
    /// Some are completed in parts.
    parts: bool,
}

/// Random numbers: xorshift64.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }
}

/// A request of the model: the files of its bios, each with its first sector and how many there are.
#[derive(Debug, Clone)]
struct Modelled {
    pieces: Vec<(u64, u64, u64)>,
    issued_ns: u64,
}

impl Modelled {
    fn begin(&self) -> u64 {
        self.pieces[0].1
    }

    fn sectors(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.2).sum()
    }

    /// What is behind so many sectors.
    fn split(&mut self, at: u64) -> Self {
        let (mut left, mut rest) = (at, Vec::new());
        self.pieces.retain_mut(|(file, sector, sectors)| {
            let kept = left.min(*sectors);
            if kept < *sectors {
                rest.push((*file, *sector + kept, *sectors - kept));
            }
            (left, *sectors) = (left - kept, kept);
            kept > 0
        });
        Self { pieces: rest, issued_ns: self.issued_ns }
    }
}

/// What happened.
#[derive(Default)]
struct Account {
    events: Vec<Event>,
    /// First sector, sectors, times of issue and completion, and the files.
    requests: Vec<(u64, u64, u64, u64, Vec<u64>)>,
    /// Bytes of each file.
    files: BTreeMap<u64, u64>,
}

impl Account {
    fn tell(&mut self, kind: EventKind, sector: u64, sectors: u64) -> u64 {
        let time_ns = self.events.len() as u64 + 1;
        self.events.push(write(kind, time_ns, sector, sectors));
        time_ns
    }

    fn done(&mut self, request: &Modelled) {
        let completed_ns = self.tell(EventKind::Complete, request.begin(), request.sectors());
        let files = request.pieces.iter().map(|piece| piece.0).collect();
        self.requests.push((request.begin(), request.sectors(), request.issued_ns, completed_ns, files));
    }
}

/// A block layer that is handed `bios` bios, in 8 blocks of 8 sectors, each of a file of its own.
fn model(seed: u64, bios: u64, ways: Ways) -> Account {
    let mut random = Random(seed);
    let mut account = Account::default();
    let (mut waiting, mut under_way): (Vec<Modelled>, Vec<Modelled>) = (Vec::new(), Vec::new());
    let mut handed = 0;
    while handed < bios || !waiting.is_empty() || !under_way.is_empty() {
        match random.below(3) {
            0 if handed < bios && waiting.len() < 8 => {
                handed += 1;
                let sector = 8 * random.below(8);
                let sectors = 8 * (1 + random.below(3));
                account.tell(EventKind::Queue, sector, sectors);
                let file = FileKey { device: DISK, inode: handed, generation: 1 };
                account.events.last_mut().expect("it was told").file = file;
                account.files.insert(handed, sectors * SECTOR);
                let mut bio = Modelled { pieces: vec![(handed, sector, sectors)], issued_ns: 0 };
                while ways.most_sectors > 0 && bio.sectors() > ways.most_sectors {
                    let rest = bio.split(ways.most_sectors);
                    waiting.push(std::mem::replace(&mut bio, rest));
                }
                let fits = |one: &&mut Modelled| {
                    ways.merges && one.begin() + one.sectors() == bio.begin() && one.sectors() < 64
                };
                match waiting.iter_mut().find(fits) {
                    Some(before) => before.pieces.append(&mut bio.pieces),
                    None => waiting.push(bio),
                }
            }
            1 if !waiting.is_empty() && under_way.len() < 8 => {
                let mut request = waiting.remove(0);
                request.issued_ns = account.tell(EventKind::Issue, request.begin(), request.sectors());
                if ways.requeues && random.below(8) == 0 {
                    account.tell(EventKind::Requeue, request.begin(), request.sectors());
                    waiting.insert(0, request);
                } else {
                    under_way.push(request);
                }
            }
            2 if !under_way.is_empty() => {
                let at = if ways.in_order {
                    0
                } else {
                    usize::try_from(random.below(under_way.len() as u64)).unwrap_or(0)
                };
                let mut request = under_way.remove(at);
                let part = 8 * random.below(3);
                // Of which of two requests over the same sectors a part is, its event does not tell.
                let overlaps = |one: &Modelled| {
                    one.begin() < request.begin() + request.sectors()
                        && request.begin() < one.begin() + one.sectors()
                };
                if ways.parts && part > 0 && part < request.sectors() && !under_way.iter().any(overlaps) {
                    let rest = request.split(part);
                    under_way.insert(at, rest);
                }
                account.done(&request);
            }
            _ => {}
        }
    }
    account
}

fn seen_of(account: &Account) -> Seen {
    attributed_with(&Texts::default(), "ext4", &account.events)
}

/// Holds however requests are made of bios: their number, bytes, places and completions.
fn check_sums(account: &Account, seen: &Seen, label: &str) {
    let mut expected: Vec<_> = account.requests.iter().map(|one| (one.0, one.1, one.3)).collect();
    let completed = |one: &joj_analysis::trace::attribution::request::Request| one.completed_ns.unwrap_or(0);
    let mut found: Vec<_> =
        seen.requests.iter().map(|one| (one.sector, one.bytes / SECTOR, completed(one))).collect();
    expected.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, expected, "{label}");
    let mut files: BTreeMap<u64, u64> = BTreeMap::new();
    for request in &seen.requests {
        let of_runs: u64 = request.runs.iter().map(|run| run.bytes).sum();
        assert_eq!((of_runs, request.unissued), (request.bytes, false), "{label}: {request:?}");
        for run in &request.runs {
            *files.entry(run.file.inode).or_default() += run.bytes;
        }
    }
    assert_eq!(files, account.files, "{label}");
}

/// Holds unless the rest of a request and another one in its place change places.
fn check_time_in_the_device(account: &Account, seen: &Seen, label: &str) {
    let expected: u64 = account.requests.iter().map(|one| one.3 - one.2).sum();
    let found: u64 = seen.requests.iter().filter_map(|one| one.latency_ns()).sum();
    assert_eq!(found, expected, "{label}");
}

/// Holds where requests of one place and length are complete in the order of their issues.
fn check_times(account: &Account, seen: &Seen, label: &str) {
    let mut expected: Vec<_> = account.requests.iter().map(|one| (one.2, one.3)).collect();
    let mut found: Vec<_> =
        seen.requests.iter().map(|one| (one.issued_ns, one.completed_ns.unwrap_or(0))).collect();
    expected.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, expected, "{label}");
}

#[test]
fn requests_over_the_same_sectors_are_each_told_once() {
    for seed in 1..16 {
        for way in 0..32 {
            let ways = Ways {
                merges: way & 1 > 0,
                most_sectors: [0, 8, 16][way % 3],
                in_order: way & 2 > 0,
                requeues: way & 4 > 0,
                parts: way & 8 > 0,
            };
            let account = model(seed * 77, 60, ways);
            let (seen, label) = (seen_of(&account), format!("seed {seed}, {ways:?}"));
            check_sums(&account, &seen, &label);
            if !ways.parts || ways.in_order {
                check_time_in_the_device(&account, &seen, &label);
            }
            if ways.in_order {
                check_times(&account, &seen, &label);
            }
        }
    }
}

#[test]
fn each_request_has_the_bytes_of_its_own_bio() {
    for seed in 1..60 {
        let ways = Ways { in_order: true, requeues: seed % 2 == 0, ..Ways::default() };
        let account = model(seed * 191, 80, ways);
        let seen = seen_of(&account);
        let found: BTreeMap<_, Vec<_>> = seen
            .requests
            .iter()
            .map(|one| (one.issued_ns, one.runs.iter().map(|run| run.file.inode).collect()))
            .collect();
        let expected: BTreeMap<_, _> = account.requests.into_iter().map(|one| (one.2, one.4)).collect();
        assert_eq!(found, expected, "seed {seed}");
    }
}
