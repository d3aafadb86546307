//! Goal: tracefs names no other file, however often names come and go within a moment: each byte stands under a name that its file had
//! when it was written, or under none.
//! Method: seeded programs rename, link, exchange and remove a few names again and again. Each write goes to a place of its own, for which
//! the program notes the names that the file had. Some rename files of another filesystem, too: calls do not say on which they were.

mod trace;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use trace::runs::{self, number};
use trace::volume::{Volume, has_backend, joj, volume_or_skip};

/// Its words: seed, directory, file for the truth, how many acts, what it renames besides (`files`, `directories` or `elsewhere`), directory of
/// another filesystem. The truth: the names of the file of each written page.
const PROGRAM: &str = r#"
import ctypes, json, os, random, sys, time
seed, place, account, acts, kind, elsewhere = int(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4]), *sys.argv[5:7]
chance, truth, PAGE = random.Random(seed), {}, 4096
libc = ctypes.CDLL(None, use_errno=True)
os.chdir(place)
POOL = ['a', 'b', 'c', 'd', 'e', 'f', 'g']
# What directories are called now; names of files are (place in this list, name there).
directories = ['']
CALLED = ['p', 'q', 'r', 's', 't']
if kind == 'directories':
    for name in CALLED[:2]:
        os.mkdir(name)
        directories.append(name + '/')
files = [[os.open(name, os.O_RDWR), {(0, name)}] for name in POOL[:3]]

def path(name):
    return directories[name[0]] + name[1]

def all_names():
    return [(of, name) for of in range(len(directories)) for name in POOL]

def free():
    return [name for name in all_names() if not os.path.lexists(path(name))]

def write():
    file = chance.choice(files)
    page = len(truth)
    os.pwrite(file[0], b'w' * PAGE, page * PAGE)
    os.fdatasync(file[0])
    truth[page] = sorted('/' + path(name) for name in file[1])

def rename():
    file = chance.choice(files)
    before, now = chance.choice(sorted(file[1])), chance.choice(free())
    os.rename(path(before), path(now))
    file[1] = file[1] - {before} | {now}

def there_and_back():
    file = chance.choice(files)
    before, now = chance.choice(sorted(file[1])), chance.choice(free())
    for _ in range(chance.randint(1, 2)):
        os.rename(path(before), path(now))
        os.rename(path(now), path(before))
    if chance.random() < 0.5:
        os.rename(path(before), path(now))
        file[1] = file[1] - {before} | {now}

def link():
    file = chance.choice(files)
    name = chance.choice(free())
    os.link(path(sorted(file[1])[0]), path(name))
    file[1] = file[1] | {name}

def unlink():
    several = [file for file in files if len(file[1]) > 1]
    if several:
        file = chance.choice(several)
        name = chance.choice(sorted(file[1]))
        os.unlink(path(name))
        file[1] = file[1] - {name}

def swap(one, other):
    assert libc.renameat2(-100, one.encode(), -100, other.encode(), 2) == 0

def exchange():
    one, other = chance.sample(files, 2)
    names = [chance.choice(sorted(file[1])) for file in (one, other)]
    swap(*map(path, names))
    one[1], other[1] = one[1] - {names[0]} | {names[1]}, other[1] - {names[1]} | {names[0]}

def make():
    name = chance.choice(free())
    files.append([os.open(path(name), os.O_RDWR | os.O_CREAT | os.O_EXCL), {name}])

def rename_directory():
    of = chance.randrange(1, len(directories))
    now = chance.choice([name for name in CALLED if name + '/' not in directories]) + '/'
    os.rename(directories[of], now)
    directories[of] = now

def exchange_directories():
    swap(directories[1], directories[2])
    directories[1], directories[2] = directories[2], directories[1]

def other_filesystem():
    os.rename(elsewhere + '/x', elsewhere + '/y')
    os.rename(elsewhere + '/y', elsewhere + '/x')

def pause():
    time.sleep(chance.choice([0.01, 0.15]))

ACTS = [write] * 8 + [rename] * 4 + [there_and_back, link, link, unlink, unlink, exchange, pause]
if kind == 'elsewhere':
    open(elsewhere + '/x', 'w').close()
    ACTS += [other_filesystem]
if kind == 'directories':
    ACTS += [make] + [rename_directory] * 3 + [exchange_directories]
for _ in range(acts):
    act = chance.choice(ACTS)
    if len(free()) > 0 or act not in (rename, there_and_back, link, make):
        act()
json.dump(truth, open(account, 'w'))
"#;

const PAGE_BYTES: i64 = 4096;

/// What a program wrote: pages under a name that they had, those under none, and what stands under another.
fn run(volume: &Volume, seed: u64, kind: &str) -> (usize, usize, Vec<String>) {
    for entry in std::fs::read_dir(volume.path()).expect("the volume").flatten() {
        let _ = std::fs::remove_file(entry.path()).or_else(|_| std::fs::remove_dir_all(entry.path()));
    }
    for name in ["a", "b", "c"] {
        std::fs::write(volume.path().join(name), vec![1; 4 << 20]).expect("a file");
    }
    let (account, table, script) =
        (volume.beside("account.json"), volume.beside("runs.csv"), volume.beside("names.py"));
    let other = volume.beside("elsewhere");
    std::fs::create_dir_all(&other).expect("a directory");
    std::fs::write(&script, PROGRAM).expect("a script");
    let text = |path: &std::path::Path| path.display().to_string();
    let command = [
        "/usr/bin/python3".to_owned(),
        text(&script),
        seed.to_string(),
        text(&volume.path()),
        text(&account),
        "200".to_owned(),
        kind.to_owned(),
        text(&other),
    ];
    volume.settle();
    let export = format!("runs={}", table.display());
    let output = joj(volume, &["--backend", "tracefs", "--export", &export], &[], &command);
    assert!(output.status.success(), "seed {seed}: {}", String::from_utf8_lossy(&output.stderr));
    let truth: Value = serde_json::from_slice(&std::fs::read(&account).expect("an account")).expect("JSON");
    let truth: BTreeMap<i64, BTreeSet<String>> = serde_json::from_value(truth).expect("names by page");
    let mut told: BTreeMap<i64, String> = BTreeMap::new();
    for line in runs::read(&table) {
        if line["operation"] == "write" && line["class"] == "data" {
            let (first, bytes) = (number(&line, "file_offset"), number(&line, "byte_length"));
            told.extend(
                (first..first + bytes).step_by(4096).map(|at| (at / PAGE_BYTES, line["file_path"].clone())),
            );
        }
    }
    let (mut named, mut unnamed, mut wrong) = (0, 0, Vec::new());
    for (page, names) in &truth {
        match told.get(page).map(String::as_str) {
            None | Some("") => unnamed += 1,
            Some(name) if names.contains(name) => named += 1,
            Some(name) => wrong.push(format!("page {page}: {name}, not {names:?}")),
        }
    }
    (named, unnamed, wrong)
}

/// So many programs run on each filesystem.
fn seeds() -> u64 {
    std::env::var("JOJ_NAME_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(2)
}

#[test]
fn bytes_stand_under_a_name_that_their_file_had_or_under_none() {
    for kind in ["ext4", "xfs", "btrfs"] {
        let Some(volume) = volume_or_skip(kind).filter(|_| has_backend("tracefs")) else { return };
        let (mut named, mut unnamed) = (0, 0);
        for seed in 0..seeds() {
            let (with, without, wrong) = run(&volume, seed, "files");
            assert!(wrong.is_empty(), "{kind}, seed {seed}: {wrong:#?}");
            (named, unnamed) = (named + with, unnamed + without);
        }
        println!("{kind}: {named} pages under their name, {unnamed} under none");
        assert!(named > 0, "{kind}: {unnamed} pages under no name");
    }
}

/// A file below a directory gets another path when the directory is renamed. joj knows some of these moments only roughly, and gives no
/// name then. One of 6,348 pages was wrong all the same; before joj used changes in the order in which it saw them, one of eleven.
#[test]
fn directories_that_are_renamed_and_exchanged_leave_few_names_below_them_wrong() {
    let (mut pages, mut all_wrong) = (0, Vec::new());
    for kind in ["ext4", "xfs", "btrfs"] {
        let Some(volume) = volume_or_skip(kind).filter(|_| has_backend("tracefs")) else { return };
        for seed in 0..seeds() {
            let (named, unnamed, wrong) = run(&volume, seed, "directories");
            println!(
                "{kind}: {named} pages under their name, {unnamed} under none, {} under another",
                wrong.len()
            );
            pages += named + unnamed + wrong.len();
            all_wrong.extend(wrong);
        }
    }
    assert!(all_wrong.len() * 100 <= pages, "of {pages} pages: {all_wrong:#?}");
}

/// A thread that makes such calls all the time makes one while joj looks, too, which hides how many there were. Before joj counted them,
/// half of the pages were wrong.
#[test]
fn renames_on_another_filesystem_leave_few_names_wrong() {
    let Some(volume) = volume_or_skip("ext4").filter(|_| has_backend("tracefs")) else { return };
    let (mut pages, mut all_wrong) = (0, Vec::new());
    for seed in 0..seeds() {
        let (named, unnamed, wrong) = run(&volume, seed, "elsewhere");
        pages += named + unnamed + wrong.len();
        all_wrong.extend(wrong);
    }
    println!("{} of {pages} pages under another's name", all_wrong.len());
    assert!(all_wrong.len() * 50 <= pages, "of {pages} pages: {all_wrong:#?}");
}
