//! Goal: what joj says of SQLite's commits is what SQLite did and what the disk counted, on every filesystem, with every
//! journal mode, either backend, and the mount options that change what is written.
//! Method: one program commits in all journal modes, one database each. A preloaded library keeps an account of its writes and
//! syncs: how often each file was synced, and how many pages each sync had to write. That is the truth, beside the disks' counters.

mod trace;

use std::collections::BTreeMap;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use trace::counted::agreeing;
use trace::inserts::Traced;
use trace::volume::{Volume, has_backend, or_skip, volume_or_skip};

const MODES: [&str; 6] = ["delete", "truncate", "persist", "memory", "wal", "off"];

/// (directory, journal modes ..): nine transactions that write in each, and one that finds nothing to write.
const PROGRAM: &str = r#"
import os, sqlite3, sys
for mode in sys.argv[2:]:
    connection = sqlite3.connect(sys.argv[1] + '/' + mode + '.db', isolation_level=None)
    connection.execute('PRAGMA journal_mode=' + mode)
    connection.execute('PRAGMA synchronous=FULL')
    connection.execute('CREATE TABLE t(a INTEGER PRIMARY KEY, b)')
    for row in range(6):
        connection.execute('INSERT INTO t(b) VALUES(?)', ('x' * 3000,))
    for row in range(3):
        connection.execute('UPDATE t SET b = ? WHERE a = ?', ('y' * 3000, row))
os._exit(0)
"#;

/// Of each file, by name.
#[derive(Debug, Default, PartialEq)]
struct Account {
    /// Calls, by call and type of file.
    syncs: BTreeMap<(String, String), u64>,
    /// Bytes that they had to write, by file. The wal-index is never synced.
    bytes: BTreeMap<String, u64>,
}

/// The account that the library kept of the files in a directory.
fn kept(directory: &str, account: &str) -> Account {
    let mut truth = Account::default();
    for line in account.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        let [call, name, pages] = fields[..] else { panic!("{line}") };
        let file_type = match name {
            "." => "directory",
            _ if name.ends_with("-journal") => "rollback-journal",
            _ if name.ends_with("-wal") => "write-ahead-log",
            _ => "sqlite-database",
        };
        *truth.syncs.entry((call.to_owned(), file_type.to_owned())).or_default() += 1;
        let bytes = pages.parse::<u64>().expect("a number") * 4096;
        if bytes > 0 {
            *truth.bytes.entry(format!("{directory}/{name}")).or_default() += bytes;
        }
    }
    truth
}

/// What joj says of the same.
fn told(traced: &Traced) -> Account {
    let mut told = Account::default();
    for calls in traced.summary["sync_calls"].as_array().expect("sync calls") {
        let text = |name: &str| calls[name].as_str().expect("a text").to_owned();
        // Of another program: sync(2) means every filesystem.
        if text("call") == "sync" {
            continue;
        }
        told.syncs.insert((text("call"), text("file_type")), calls["calls"].as_u64().expect("a number"));
    }
    for file in traced.summary["files"].as_array().expect("files") {
        let (path, bytes) = (file["path"].as_str().expect("a path"), &file["written"]["bytes"]);
        if bytes != 0 && !path.ends_with("-shm") {
            let name = path.trim_start_matches('/').to_owned();
            *told.bytes.entry(name).or_default() += bytes.as_u64().expect("a number");
        }
    }
    told
}

/// How many commits each database had.
fn commits(traced: &Traced) -> BTreeMap<String, usize> {
    let mut commits = BTreeMap::new();
    for commit in &traced.commits {
        let file = commit["file"].as_str().expect("a path").trim_start_matches('/');
        *commits.entry(file.trim_end_matches("-shm").to_owned()).or_default() += 1;
    }
    commits
}

/// `has_data_in_place`: each page that a sync writes goes once to a block of its file, as it is.
fn check(volume: Result<Volume, String>, name: &str, has_data_in_place: bool) {
    let Some(volume) = or_skip(volume) else { return };
    for backend in ["bpf", "tracefs"].into_iter().filter(|backend| has_backend(backend)) {
        let which = format!("{name}, {backend}");
        let (account, script) = (volume.beside("account"), volume.beside("commits.py"));
        std::fs::write(&script, PROGRAM).expect("a script");
        let place = volume.path().join(backend);
        let environment = [("LD_PRELOAD", volume.accountant()), ("JOJ_ACCOUNT", account.clone())];
        let program =
            ["/usr/bin/python3".into(), script, place.clone()].map(|path| path.display().to_string());
        let command: Vec<String> = program.into_iter().chain(MODES.map(str::to_owned)).collect();
        let trace = || {
            let _ = std::fs::remove_file(&account);
            let _ = std::fs::remove_dir_all(&place);
            std::fs::create_dir(&place).expect("a directory");
            Traced::command(&volume, backend, &which, &environment, &command)
        };
        let traced = agreeing(trace, |traced| &traced.summary);
        traced.nothing_is_missing(&which);
        let of_mode = |mode: &str| (format!("{backend}/{mode}.db"), if mode == "wal" { 10 } else { 9 });
        // What turns the log on is a commit, too.
        assert_eq!(commits(&traced), MODES.map(of_mode).into(), "{which}");
        let mut truth = kept(backend, &std::fs::read_to_string(&account).expect("an account"));
        let mut told = told(&traced);
        if !has_data_in_place {
            [&mut truth, &mut told].into_iter().for_each(|account| account.bytes.clear());
        }
        assert_eq!(told, truth, "{which}");
    }
}

#[test]
fn ext4_and_its_mount_options() {
    for (name, make, mount, has_data_in_place) in [
        ("ext4", [].as_slice(), "noatime", true),
        ("ext4, discard", &[], "noatime,discard", true),
        ("ext4, data=writeback", &[], "noatime,data=writeback", true),
        ("ext4, data=journal", &[], "noatime,data=journal", false),
        ("ext4, fast commits", &["-O", "fast_commit"], "noatime", true),
    ] {
        check(Volume::create_with("ext4", make, mount), name, has_data_in_place);
    }
    check(Volume::with_journal_elsewhere("ext4"), "ext4, journal elsewhere", true);
}

#[test]
fn xfs_and_its_mount_options() {
    for (name, mount) in [("XFS", "noatime"), ("XFS, discard", "noatime,discard")] {
        check(Volume::create_with("xfs", &[], mount), name, true);
    }
    check(Volume::with_journal_elsewhere("xfs"), "XFS, log elsewhere", true);
}

#[test]
fn btrfs_and_its_mount_options() {
    for (name, mount, has_data_in_place) in [
        ("Btrfs, small files in its trees", "noatime", false),
        ("Btrfs", "noatime,max_inline=0", true),
        ("Btrfs, discard=sync", "noatime,max_inline=0,discard=sync", true),
        ("Btrfs, nodatacow", "noatime,max_inline=0,nodatacow", true),
        ("Btrfs, compress-force", "noatime,compress-force=zstd", false),
    ] {
        check(Volume::create_with("btrfs", &[], mount), name, has_data_in_place);
    }
}

/// Runs joj as nobody with these capabilities, of which it has no other: `cap_bpf,cap_perfmon`.
fn joj_as_nobody(capabilities: &str, arguments: &[String]) -> Output {
    let granted: String = capabilities
        .split(',')
        .filter_map(|one| one.strip_prefix("cap_"))
        .map(|one| format!(",+{one}"))
        .collect();
    let sets = ["inh-caps", "ambient-caps", "bounding-set"].map(|set| format!("--{set}=-all{granted}"));
    let mut joj = Command::new("setpriv");
    joj.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).args(sets);
    joj.arg(env!("CARGO_BIN_EXE_joj")).args(arguments).output().expect("setpriv")
}

/// What a capture placed, and what it said that it could not see.
fn placed(json: &Path) -> [Value; 4] {
    let summary: Value = serde_json::from_slice(&std::fs::read(json).expect("a summary")).expect("JSON");
    let written = |table: &Value| -> Value {
        let rows = table.as_array().expect("a table").iter();
        rows.map(|row| serde_json::json!([row["label"], row["path"], row["written"]["bytes"]])).collect()
    };
    let counts = &summary["counts"];
    [
        written(&counts["parts"]),
        written(&summary["files"]),
        counts["written_by_evidence"].clone(),
        summary["header"]["inferred"].clone(),
    ]
}

#[test]
fn with_the_capabilities_that_joj_asks_for_nobody_captures_as_root_does() {
    if Command::new("setpriv").arg("--version").output().is_err() {
        return println!("skipped: there is no setpriv");
    }
    for kind in ["ext4", "xfs", "btrfs"] {
        let Some(volume) = volume_or_skip(kind).filter(|_| has_backend("bpf")) else { continue };
        let everybody =
            |path: &Path| std::fs::set_permissions(path, PermissionsExt::from_mode(0o777)).expect("its mode");
        [volume.path(), volume.beside("")].iter().for_each(|path| everybody(path));
        let arguments = |name: &str| {
            let (json, mounted) =
                (volume.beside(name).display().to_string(), volume.path().display().to_string());
            let file = format!("{mounted}/{name}.db");
            let write = format!(
                "dd if=/dev/zero of={file} bs=16k count=2 oflag=direct conv=fsync && rm {file} && sync -f {mounted}"
            );
            let words = [
                "trace",
                "--backend",
                "bpf",
                "--device",
                &mounted,
                "--json",
                &json,
                "--",
                "/bin/sh",
                "-c",
                &write,
            ];
            words.map(str::to_owned)
        };
        let refused = joj_as_nobody("", &arguments("x"));
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success(), "{said}");
        let capabilities =
            said.split("setcap ").nth(1).and_then(|rest| rest.split("+ep").next()).expect("a hint");
        let placed = [("root", None), ("nobody", Some(capabilities))].map(|(name, capabilities)| {
            // The same name, or directories differ.
            let arguments = arguments("x");
            volume.settle();
            let output = match capabilities {
                Some(capabilities) => joj_as_nobody(capabilities, &arguments),
                None => Command::new(env!("CARGO_BIN_EXE_joj")).args(&arguments).output().expect("joj"),
            };
            assert!(output.status.success(), "{kind}, {name}: {}", String::from_utf8_lossy(&output.stderr));
            let placed = placed(&volume.beside("x"));
            std::fs::remove_file(volume.beside("x")).expect("a summary");
            placed
        });
        let [root, nobody] = &placed;
        assert_eq!(
            (&nobody[1], &nobody[3]),
            (&root[1], &root[3]),
            "{kind}: files, and what could not be seen"
        );
        // What else a sync of the filesystem writes is not always the same; that it is placed is.
        assert!(nobody[2][2] == 0 && nobody[1].to_string().contains("/x.db"), "{kind}: {nobody:?}");
        let journal = |placed: &[Value; 4]| -> Vec<String> {
            let labels = placed[0].as_array().expect("parts").iter().map(|row| row[0].to_string());
            // The journal's own superblock is written when its tail moves, whoever captures.
            let is_of_commits =
                |label: &String| label.starts_with("\"journal") && label != "\"journal: journal superblock\"";
            labels.filter(is_of_commits).collect()
        };
        assert_eq!(journal(nobody), journal(root), "{kind}: parts of its log");
    }
}
