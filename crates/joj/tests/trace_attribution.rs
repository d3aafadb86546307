//! Goal: each written block belongs to the file that it was written for, also when that is deleted and its inode used again;
//! and two ways of capturing say the same of each.
//! Method: SQLite's DELETE mode on a fresh ext4, whose journal file is another file in each transaction.

mod trace;

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::Value;
use trace::runs::{Line, number, read, written_blocks, written_parts_of_blocks};
use trace::volume::{Volume, has_backend, joj, or_skip, volume_or_skip};

const TRANSACTIONS: u32 = 1_000;

#[test]
fn each_journal_of_a_thousand_transactions_is_a_file_of_its_own() {
    let Some(volume) = volume_or_skip("ext4").filter(|_| has_backend("bpf")) else { return };
    let table = volume.beside("runs.csv");
    let export = format!("runs={}", table.display());
    let options = ["--backend", "bpf", "--export", &export, "--json", "/dev/null"];
    let output = joj(&volume, &options, &[], &volume.inserts("DELETE", TRANSACTIONS));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = read(&table);
    let written = |line: &&HashMap<String, String>| line["operation"] == "write" && line["class"] == "data";
    let mut transactions_of_journal: HashMap<(i64, i64), HashSet<i64>> = HashMap::new();
    for line in lines.iter().filter(written) {
        let path = &line["file_path"];
        assert!(path == "/test.db" || path == "/test.db-journal", "a block of {path:?}: {line:?}");
        assert_eq!(line["file_deleted"], "0", "written before it was deleted: {line:?}");
        if path == "/test.db-journal" {
            let file = (number(line, "file_inode"), number(line, "file_generation"));
            let transactions = transactions_of_journal.entry(file).or_default();
            // Another test's sync(2) has a kernel thread write a block now and then, for no transaction.
            if line["queued_by"].starts_with("python") {
                transactions.insert(number(line, "sqlite_work"));
            }
        }
    }
    // One more for CREATE TABLE. A journal's blocks are all of the one transaction that made it.
    assert_eq!(transactions_of_journal.len(), TRANSACTIONS as usize + 1, "files");
    let shared: Vec<_> =
        transactions_of_journal.iter().filter(|(_, transactions)| transactions.len() > 1).collect();
    assert!(shared.is_empty(), "journals that several transactions wrote to: {shared:?}");
    let of_none = transactions_of_journal.values().filter(|transactions| transactions.is_empty()).count();
    assert!(of_none < 10, "{of_none} journals that no transaction wrote to");
    let inodes: HashSet<i64> = transactions_of_journal.keys().map(|(inode, _)| *inode).collect();
    assert!(inodes.len() < 20, "inodes are used again, or this test shows nothing: {}", inodes.len());
}

#[test]
fn both_ways_of_capturing_say_the_same_of_each_block() {
    check_both("ext4", written_blocks);
}

/// Of ext4's log tracefs sees no parts.
#[test]
fn both_ways_of_capturing_say_the_same_of_each_block_and_tree_of_btrfs() {
    check_both("btrfs", written_parts_of_blocks);
}

#[test]
fn both_ways_of_capturing_see_the_same_sync_calls() {
    for kind in ["ext4", "xfs", "btrfs"] {
        let volume = volume_or_skip(kind).filter(|_| has_backend("bpf") && has_backend("tracefs"));
        let Some(volume) = volume else { continue };
        // tracefs may hear of a name too late to know what its file is for.
        let counted = |backend: &str| {
            let mut calls = sync_calls(&volume, backend, &volume.inserts("DELETE", 40)).0;
            // sync(2) means every filesystem, and any program may call it.
            calls.retain(|(call, _, _)| call != "sync");
            let count = |is_one: &dyn Fn(&str) -> bool| {
                calls.iter().filter(|(_, what, _)| is_one(what)).map(|(_, _, calls)| calls).sum::<u64>()
            };
            (count(&|what| what == "directory"), count(&|what| what != "directory"))
        };
        let [seen_by_bpf, seen_by_tracefs] = ["bpf", "tracefs"].map(counted);
        // SQLite's own: the journal twice, the database, and the directory that the journal's name is in.
        assert!(seen_by_bpf.0 >= 41 && seen_by_bpf.1 >= 41 * 3, "{kind}: {seen_by_bpf:?}");
        assert_eq!(seen_by_tracefs, seen_by_bpf, "{kind}");
    }
}

/// (directory): ten files of 4 KiB, each synced and deleted. Then what is no file's: targets of links, directories, attributes in a block
/// and, where the filesystem takes them, in an inode.
const NO_FILES: &str = "
import os, sys
place = sys.argv[1]
for number in range(10):
    path = f'{place}/file{number}'
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    os.write(file, os.urandom(4096))
    os.fsync(file)
    os.close(file)
    os.unlink(path)
    os.symlink('t' * 1000, f'{place}/link{number}')
    os.makedirs(f'{place}/directory{number}/' + 'n' * 200)
    for name, value in (('block', 3000), ('inode', 20000)):
        try:
            os.setxattr(f'{place}/directory{number}', 'user.' + name, os.urandom(value))
        except OSError:
            pass
os.sync()
";

#[test]
fn what_is_in_no_file_is_no_data_with_either_way_of_capturing() {
    let volumes = [("ext4", &["-O", "ea_inode"][..]), ("ext4", &[]), ("xfs", &[]), ("btrfs", &[])];
    for (kind, make) in volumes {
        let Some(volume) = or_skip(Volume::create_with(kind, make, "noatime")) else { continue };
        for backend in ["bpf", "tracefs"].into_iter().filter(|backend| has_backend(backend)) {
            let place = volume.path().join(backend);
            std::fs::create_dir(&place).expect("a directory");
            volume.settle();
            let table = volume.beside("runs.csv");
            let export = format!("runs={}", table.display());
            let place = place.display().to_string();
            let command = ["/usr/bin/python3", "-c", NO_FILES, &place].map(str::to_owned);
            let options = ["--backend", backend, "--export", &export, "--json", "/dev/null"];
            let output = joj(&volume, &options, &[], &command);
            assert!(output.status.success(), "{backend}: {}", String::from_utf8_lossy(&output.stderr));
            let lines = read(&table);
            let written = lines.iter().filter(|line| line["operation"] == "write" && line["class"] == "data");
            let mut files: BTreeMap<&str, i64> = BTreeMap::new();
            for line in written {
                *files.entry(&line["file_path"]).or_default() += number(line, "byte_length");
            }
            let names: Vec<String> = (0..10).map(|number| format!("/{backend}/file{number}")).collect();
            let expected: BTreeMap<&str, i64> = names.iter().map(|name| (name.as_str(), 4096)).collect();
            assert_eq!(files, expected, "{kind} {make:?} {backend}");
        }
    }
}

/// Writes five times with O_DSYNC, through the page cache.
const DURABLE_WRITES: &str = "
import os, sys
file = os.open(sys.argv[1] + '/durable', os.O_WRONLY | os.O_CREAT | os.O_DSYNC, 0o600)
for _ in range(5):
    os.write(file, b'x' * 4096)
";

#[test]
fn durable_writes_are_calls_of_their_own_whose_end_is_told_or_said_to_be_missing() {
    for kind in ["ext4", "xfs", "btrfs"] {
        let Some(volume) = volume_or_skip(kind).filter(|_| has_backend("tracefs")) else { continue };
        let place = volume.path().display().to_string();
        let command = ["/usr/bin/python3", "-c", DURABLE_WRITES, &place].map(str::to_owned);
        let (mut calls, inferred) = sync_calls(&volume, "tracefs", &command);
        // sync(2) means every filesystem, and any program may call it.
        calls.retain(|(call, _, _)| call != "sync");
        let told = inferred.iter().any(|limit| limit.contains("O_DSYNC") && limit.contains(&place));
        let expected = vec![("durable write".to_owned(), "other".to_owned(), 5)];
        assert_eq!((calls, told), (expected, kind != "ext4"), "{kind}: {inferred:?}");
    }
}

/// Sync calls by call and type of file, and what the capture says that it infers or lacks.
fn sync_calls(
    volume: &Volume,
    backend: &str,
    command: &[String],
) -> (Vec<(String, String, u64)>, Vec<String>) {
    let json = volume.beside("calls.json");
    let output = joj(volume, &["--backend", backend, "--json", &json.display().to_string()], &[], command);
    assert!(output.status.success(), "{backend}: {}", String::from_utf8_lossy(&output.stderr));
    let summary: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&json).expect("a summary")).expect("JSON");
    let text = |value: &serde_json::Value| value.as_str().expect("a text").to_owned();
    let calls = summary["sync_calls"].as_array().expect("calls").iter();
    let mut calls: Vec<_> = calls
        .map(|one| (text(&one["call"]), text(&one["file_type"]), one["calls"].as_u64().expect("a number")))
        .collect();
    calls.sort();
    (calls, summary["header"]["inferred"].as_array().expect("limits").iter().map(text).collect())
}

/// What the journal's checkpoint writes in its place is the filesystem's metadata by its flags, whatever it is.
#[test]
fn both_ways_of_capturing_say_the_same_of_each_block_where_the_journal_has_the_data() {
    // Of a copy in the log tracefs does not see whose it is.
    let blocks = |lines: &[Line]| {
        let mut blocks = written_blocks(lines);
        for (_, class, inode, generation, _) in &mut blocks {
            if class == "journal" {
                (*inode, *generation) = (0, 0);
            }
        }
        blocks
    };
    let small_journal = ["-J", "size=4"];
    check_both_on(or_skip(Volume::create_with("ext4", &small_journal, "noatime,data=journal")), blocks);
}

/// Where the first of two captures has what the other one has not, or the other way round. What two processors hand over at one moment has a
/// time of its own in each capture, so neighbours may have changed places: that is no difference. The other one may go on for longer.
fn first_difference<Block: Ord + Clone>(one: &[Block], other: &[Block]) -> Option<usize> {
    const NEIGHBOURS: usize = 512;
    // What the first did not see any more may be missing at its end, and nowhere else.
    const ON_THEIR_WAY: i64 = 32;
    const NEAR_END: usize = 32;
    // What only one of the two had since they were the same last: how often, less than nothing for the other one.
    let mut waiting: BTreeMap<&Block, i64> = BTreeMap::new();
    let mut from = 0;
    for at in 0.. {
        if waiting.is_empty() {
            from = at;
        }
        let of_both = [(one.get(at), 1), (other.get(at), -1)];
        for (block, times) in of_both.into_iter().filter_map(|(block, times)| Some((block?, times))) {
            let all = waiting.entry(block).or_default();
            *all += times;
            if *all == 0 {
                waiting.remove(block);
            }
        }
        let is_over = at + 1 >= one.len();
        if is_over && waiting.values().all(|times| *times < 0) {
            let others: i64 = -waiting.values().sum::<i64>();
            let is_at_end = others <= ON_THEIR_WAY && one.len().saturating_sub(from) <= NEAR_END;
            return (others > 0 && !is_at_end).then_some(from);
        }
        if at - from >= NEIGHBOURS || is_over && at >= other.len() {
            return Some(from);
        }
    }
    None
}

#[test]
fn captures_differ_in_blocks_and_not_in_the_order_of_neighbours() {
    let blocks: Vec<u32> = (0..3_000).collect();
    let swapped = |at: usize| {
        let mut blocks = blocks.clone();
        blocks.swap(at, at + 1);
        blocks
    };
    assert_eq!(first_difference(&blocks, &blocks), None);
    for at in [0, 1, 511, 512, 513, 2_998] {
        assert_eq!(first_difference(&swapped(at), &blocks), None, "{at}");
    }
    let mut twice = swapped(100);
    twice.swap(611, 612);
    assert_eq!(first_difference(&twice, &blocks), None);
    // The last of the first is not the last of the other one.
    assert_eq!(first_difference(&[1, 3], &[1, 2, 3, 4]), None);
    assert_eq!(first_difference(&[1, 5], &[1, 2, 3, 4]), Some(1));
    assert_eq!(first_difference(&blocks, &blocks[..2_000]), Some(2_000));
    assert_eq!(first_difference(&[&blocks[..2_900], &[2_999]].concat(), &blocks), Some(2_900));
    assert_eq!(first_difference(&[&blocks[..2_900], &blocks[2_901..]].concat(), &blocks), Some(2_900));
    let mut far = blocks.clone();
    far.swap(100, 700);
    assert_eq!(first_difference(&far, &blocks), Some(100));
    let mut other = blocks.clone();
    other[1_234] = 7;
    assert_eq!(first_difference(&other, &blocks), Some(1_234));
}

fn check_both<Block: Ord + Clone + std::fmt::Debug>(kind: &str, blocks: fn(&[Line]) -> Vec<Block>) {
    check_both_on(volume_or_skip(kind), blocks);
}

fn check_both_on<Block: Ord + Clone + std::fmt::Debug>(
    volume: Option<Volume>,
    blocks: fn(&[Line]) -> Vec<Block>,
) {
    let Some(volume) = volume.filter(|_| has_backend("bpf") && has_backend("tracefs")) else {
        return;
    };
    for mode in ["DELETE", "WAL", "PERSIST"] {
        let tables = ["inner.csv", "outer.csv"].map(|name| volume.beside(name));
        let [inner, outer] = [&tables[0], &tables[1]].map(|path| format!("runs={}", path.display()));
        // The outer capture's command is the inner capture.
        let mut command: Vec<String> =
            [env!("CARGO_BIN_EXE_joj"), "trace", "--backend", "bpf", "--json", "/dev/null"]
                .map(str::to_owned)
                .into();
        command.extend([
            "--device".to_owned(),
            volume.path().display().to_string(),
            "--export".to_owned(),
            inner,
            "--".to_owned(),
        ]);
        // More than the journal takes where it has the data: it must write them to their places.
        let more = "\"$@\" && dd if=/dev/zero of=\"$0/more\" bs=64k count=250 conv=fsync status=none";
        command.extend(["sh", "-c", more].map(str::to_owned));
        command.push(volume.path().display().to_string());
        command.extend(volume.inserts(mode, 50));
        // What was made before a capture began, only one of the two ways knows whole.
        volume.settle();
        let options = ["--backend", "tracefs", "--export", &outer, "--json", "/dev/null"];
        let output = joj(&volume, &options, &[], &command);
        assert!(output.status.success(), "{mode}: {}", String::from_utf8_lossy(&output.stderr));
        let [inner, outer] = tables.map(|table| blocks(&read(&table)));
        assert!(inner.len() > 200, "{mode}: {} blocks", inner.len());
        // What was on its way when the inner one began or ended is in the outer one only.
        let first = outer.iter().position(|block| Some(block) == inner.first()).unwrap_or_else(|| {
            panic!("{mode}: {:?} is none of {:?}", inner.first(), &outer[..outer.len().min(40)])
        });
        let outer = &outer[first..];
        let shown = first_difference(&inner, outer).map(|at| (at, inner.get(at), outer.get(at)));
        assert_eq!(shown, None, "{mode}: (eBPF, tracefs)");
    }
}

#[test]
fn names_that_are_no_text_stay_names_of_different_files() {
    let Some(volume) = volume_or_skip("ext4") else { return };
    let script = "import os, sys
place = sys.argv[1].encode()
for name, pages in ((b'\\xff.bin', 1), (b'\\xfe.bin', 2), ('\\ufffd.bin'.encode(), 4)):
    file = os.open(place + b'/' + name, os.O_RDWR | os.O_CREAT, 0o600)
    os.write(file, os.urandom(4096 * pages))
    os.fsync(file)
";
    for backend in ["bpf", "tracefs"].into_iter().filter(|backend| has_backend(backend)) {
        let json = volume.beside("names.json");
        let place = volume.path().join(backend);
        std::fs::create_dir(&place).expect("a directory");
        volume.settle();
        let command = ["/usr/bin/python3", "-c", script, place.to_str().expect("UTF-8")].map(str::to_owned);
        let options = ["--backend", backend, "--json", json.to_str().expect("UTF-8")];
        let output = joj(&volume, &options, &[], &command);
        assert!(output.status.success(), "{backend}: {}", String::from_utf8_lossy(&output.stderr));
        let summary: Value = serde_json::from_slice(&std::fs::read(&json).expect("JSON")).expect("JSON");
        let files = summary["files"].as_array().expect("files").iter();
        let told: Vec<(&str, u64)> = files
            .map(|file| {
                (file["path"].as_str().expect("a path"), file["written"]["bytes"].as_u64().expect("bytes"))
            })
            .filter(|(path, _)| path.ends_with(".bin"))
            .collect();
        let name = |name: &str| format!("/{backend}/{name}.bin");
        let names = [name("\u{fffd}"), name("\\xfe"), name("\\xff")];
        let expected: Vec<(&str, u64)> = names.iter().map(String::as_str).zip([16384, 8192, 4096]).collect();
        assert_eq!(told, expected, "{backend}");
    }
}
