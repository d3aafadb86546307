//! Goal: each written byte of a file belongs to that file, whatever a program does with files, with either backend.
//! Method: seeded programs create, rename, remove, cut and punch files, and take out or put in a piece in the middle. They write through the page cache, past it, with O_DSYNC and
//! through memory. A sync follows each write, so that the program knows what goes to the disk: its own account is the truth.

mod trace;

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;
use trace::volume::{Volume, has_backend, joj, volume_or_skip};

/// (seed, directory, file for the account, how many acts). A file's account stands under the name that it had when it was written to,
/// its last one where it has none any more.
const PROGRAM: &str = r#"
import ctypes, json, mmap, os, random, sys
seed, place, account, acts = int(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
chance, written, PAGE = random.Random(seed), {}, 4096
buffer = mmap.mmap(-1, 8 * PAGE)
buffer.write(os.urandom(8 * PAGE))
libc = ctypes.CDLL(None, use_errno=True)
files, names = [], 0          # [descriptor, name, pages]

def wrote(name, pages):
    written[name] = written.get(name, 0) + pages * PAGE

def path(name):
    return place + '/' + name

def new_name():
    global names
    # Names are used again, and so are inode numbers.
    names += 1
    free = [name for name in ('a', 'b', 'x.db', 'x.db-journal', 'x.db-wal', 'n%d' % names) if not os.path.exists(path(name))]
    return chance.choice(free)

def pages(limit=8):
    return chance.randint(1, limit)

def create():
    name = new_name()
    files.append([os.open(path(name), os.O_RDWR | os.O_CREAT, 0o600), name, 0])
    buffered(files[-1])

def buffered(file):
    count, at = pages(), chance.randint(0, file[2])
    os.pwrite(file[0], buffer[:count * PAGE], at * PAGE)
    os.fsync(file[0]) if chance.random() < 0.5 else os.fdatasync(file[0])
    file[2] = max(file[2], at + count)
    wrote(file[1], count)

def direct(file):
    again = os.open('/proc/self/fd/%d' % file[0], os.O_RDWR | os.O_DIRECT)
    count, at = pages(), chance.randint(0, file[2])
    os.pwritev(again, [memoryview(buffer)[:count * PAGE]], at * PAGE)
    os.fsync(again)
    os.close(again)
    file[2] = max(file[2], at + count)
    wrote(file[1], count)

def durable(file):
    again = os.open('/proc/self/fd/%d' % file[0], os.O_RDWR | os.O_DSYNC)
    count, at = pages(), chance.randint(0, file[2])
    os.pwrite(again, buffer[:count * PAGE], at * PAGE)
    os.close(again)
    file[2] = max(file[2], at + count)
    wrote(file[1], count)

def mapped(file):
    # All of it: the kernel writes whole folios, which may be larger than the pages that were touched.
    with mmap.mmap(file[0], file[2] * PAGE) as memory:
        for at in range(file[2]):
            memory[at * PAGE:(at + 1) * PAGE] = buffer[:PAGE]
        memory.flush()
    wrote(file[1], file[2])

def rename(file):
    name = new_name()
    os.rename(path(file[1]), path(name))
    file[1] = name
    buffered(file)

def link(file):
    # With two names either would do: it is written to with one.
    name = new_name()
    os.link(path(file[1]), path(name))
    os.unlink(path(name))
    buffered(file)

def cut(file):
    file[2] = chance.randint(0, file[2])
    os.ftruncate(file[0], file[2] * PAGE)
    os.fsync(file[0])

def punch(file):
    if file[2] > 1:
        keep_size_punch_hole = 3
        libc.fallocate(file[0], keep_size_punch_hole, ctypes.c_long(0), ctypes.c_long(PAGE))
        os.fsync(file[0])

def shift(file):
    # Not on Btrfs.
    if file[2] > 2:
        mode = chance.choice([8, 32])        # FALLOC_FL_COLLAPSE_RANGE, _INSERT_RANGE
        at = ctypes.c_long(chance.randint(0, file[2] - 2) * PAGE)
        if libc.fallocate(file[0], mode, at, ctypes.c_long(PAGE)) == 0:
            file[2] += 1 if mode == 32 else -1
        os.fsync(file[0])

def remove(file):
    os.unlink(path(file[1]))
    if chance.random() < 0.5:
        buffered(file)        # it has no name any more
    os.close(file[0])
    files.remove(file)

for _ in range(acts):
    if len(files) < 2 or chance.random() < 0.15:
        create()
        continue
    file = chance.choice(files)
    act = chance.choice([buffered, buffered, direct, durable, mapped, rename, link, cut, punch, shift, remove, remove])
    if act is mapped and file[2] == 0:
        act = buffered
    act(file)
for file in list(files):
    remove(file)
json.dump(written, open(account, 'w'))
"#;

/// Bytes by name.
type Account = BTreeMap<String, u64>;

/// What the programs say, and what joj says, of one run: of a program in each of these directories, all at once.
fn run(volume: &Volume, backend: &str, places: &[&str], seed: u64, acts: u64) -> (Account, Account, u64) {
    let (json, script) = (volume.beside("summary.json"), volume.beside("files.py"));
    std::fs::write(&script, PROGRAM).expect("a script");
    let text = |path: &std::path::Path| path.display().to_string();
    let account = |place: &str| volume.beside(&format!("account{place}.json"));
    let mut programs = String::new();
    for place in places {
        let [script, inside, account] =
            [&script, &volume.path().join(place), &account(place)].map(|path| text(path));
        programs += &format!("/usr/bin/python3 '{script}' {seed} '{inside}' '{account}' {acts} & ");
    }
    let command = ["/bin/sh", "-c", &(programs + "wait")].map(str::to_owned);
    let output = joj(volume, &["--backend", backend, "--json", &text(&json)], &[], &command);
    assert!(output.status.success(), "{backend}, seed {seed}: {}", String::from_utf8_lossy(&output.stderr));
    let read = |path: &std::path::Path| -> Value {
        serde_json::from_slice(&std::fs::read(path).expect("a file")).expect("JSON")
    };
    let mut truth = Account::new();
    for place in places {
        let of_one: Account = serde_json::from_value(read(&account(place))).expect("an account");
        let inside = |name: String| if place.is_empty() { name } else { format!("{place}/{name}") };
        truth.extend(of_one.into_iter().map(|(name, bytes)| (inside(name), bytes)));
    }
    let summary = read(&json);
    assert_eq!(
        (&summary["lost"], &summary["files_not_named"]),
        (&Value::from(0), &Value::from(0)),
        "{backend}, seed {seed}"
    );
    let mut told = Account::new();
    let mut nameless = 0;
    for file in summary["files"].as_array().expect("files") {
        let bytes = file["written"]["bytes"].as_u64().expect("bytes");
        // The account is by names alone: what tells files of one name apart does not count.
        let path = file["path"].as_str().expect("a path").split(" (").next();
        match path.and_then(|path| path.strip_prefix('/')) {
            Some(name) if bytes > 0 => *told.entry(name.to_owned()).or_default() += bytes,
            Some(_) => {}
            None => nameless += bytes,
        }
    }
    (truth, told, nameless)
}

/// How many programs for each filesystem, and how long they are.
const PROGRAMS: u64 = 2;
const ACTS: u64 = 60;
/// On a busy machine tracefs looks late, and says that it does not know: three captures in a row did.
const TRIES_OF_TRACEFS: usize = 12;

fn programs() -> u64 {
    std::env::var("JOJ_FILE_PROGRAMS").ok().and_then(|text| text.parse().ok()).unwrap_or(PROGRAMS)
}

/// `tries`: one of so many captures must know all names. No capture gives bytes to another file.
fn knows_whose_each_byte_is(backend: &str, tries: usize) {
    for kind in ["ext4", "xfs", "btrfs"] {
        let Some(volume) = volume_or_skip(kind).filter(|_| has_backend(backend)) else { continue };
        for seed in 0..programs() {
            knows_it_of(&volume, backend, &[""], seed, tries);
        }
    }
}

fn knows_it_of(volume: &Volume, backend: &str, places: &[&str], seed: u64, tries: usize) {
    // The table names 25 files.
    let acts = ACTS / places.len() as u64;
    let mut captured = run(volume, backend, places, seed, acts);
    for _ in 1..tries {
        let (truth, told, nameless) = &captured;
        let is_of = |(name, bytes): (&String, &u64)| truth.get(name).is_some_and(|all| bytes <= all);
        let all = told.values().sum::<u64>() + nameless;
        assert!(told.iter().all(is_of), "{backend}, {places:?}, seed {seed}: {told:?}, not {truth:?}");
        assert_eq!(all, truth.values().sum::<u64>(), "{backend}, {places:?}, seed {seed}");
        if *nameless > 0 {
            captured = run(volume, backend, places, seed, acts);
        }
    }
    let (truth, told, nameless) = captured;
    assert_eq!((told, nameless), (truth, 0), "{backend}, {places:?}, seed {seed}");
}

/// Files of two have the same inode numbers, and get and lose them at the same time.
#[test]
fn files_of_subvolumes_are_told_apart() {
    for (backend, tries) in [("bpf", 1), ("tracefs", TRIES_OF_TRACEFS)] {
        let Some(volume) = volume_or_skip("btrfs").filter(|_| has_backend(backend)) else { continue };
        for place in ["one", "two"] {
            let made =
                Command::new("btrfs").args(["subvolume", "create"]).arg(volume.path().join(place)).output();
            assert!(made.expect("btrfs").status.success());
        }
        std::fs::create_dir(volume.path().join("none")).expect("a directory");
        for seed in 0..programs() {
            knows_it_of(&volume, backend, &["one", "none", "two"], seed, tries);
        }
    }
}

#[test]
fn ebpf_knows_whose_each_byte_is() {
    knows_whose_each_byte_is("bpf", 1);
}

#[test]
fn tracefs_knows_whose_each_byte_is() {
    knows_whose_each_byte_is("tracefs", TRIES_OF_TRACEFS);
}
