//! Goal: with eBPF, calls and SQLite's commits through an overlay are those of the filesystem that has its upper directory. Files made
//! through it stand under their names there, or under none.
//! Method: programs that know what they call, on an overlay whose upper directory lies on the traced volume.

mod trace;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use trace::runs::{number, read};
use trace::volume::{Volume, has_backend, joj, run, volume_or_skip};

/// 10 fsync, 7 fdatasync, 5 writes with O_DSYNC; then 11 commits.
const CALLS: &str = "
import os, sqlite3, sys
name = sys.argv[1] + '/file'
file = os.open(name, os.O_RDWR | os.O_CREAT, 0o600)
for number in range(17):
    os.pwrite(file, b'x' * 4096, number * 4096)
    os.fsync(file) if number < 10 else os.fdatasync(file)
durable = os.open(name, os.O_WRONLY | os.O_DSYNC)
for number in range(5):
    os.pwrite(durable, b'y' * 4096, number * 4096)
connection = sqlite3.connect(sys.argv[1] + '/test.db', isolation_level=None)
connection.execute('PRAGMA synchronous=FULL')
connection.execute('CREATE TABLE t(a)')
for _ in range(10):
    connection.execute('INSERT INTO t VALUES(1)')
";

/// Makes each of these files anew where the lower directory has one, and writes to it at once, and again later. Overlayfs makes it in its
/// work directory, and renames it.
const OVER_LOWER_FILES: &str = "
import os, sys, time
names = [sys.argv[1] + '/%d' % number for number in range(int(sys.argv[2]))]
files = []
for name in names:
    os.unlink(name)
    files.append(os.open(name, os.O_RDWR | os.O_CREAT, 0o600))
    os.pwrite(files[-1], b'x' * 4096, 0)
    os.fsync(files[-1])
time.sleep(0.5)
for file in files:
    os.pwrite(file, b'y' * 4096, 4096)
    os.fsync(file)
";
const LOWER_FILES: usize = 20;

/// Mounted over a volume; gone with the value.
struct Overlay(PathBuf);

impl Overlay {
    fn over(volume: &Volume) -> Result<Self, String> {
        let [lower, merged] = ["lower", "merged"].map(|name| volume.beside(name));
        let [upper, work] = ["upper", "work"].map(|name| volume.path().join(name));
        for directory in [&lower, &merged, &upper, &work] {
            std::fs::create_dir(directory).map_err(|error| error.to_string())?;
        }
        for number in 0..LOWER_FILES {
            std::fs::write(lower.join(number.to_string()), "lower").map_err(|error| error.to_string())?;
        }
        let named = |name: &str, path: &Path| format!("{name}={}", path.display());
        let options = [named("lowerdir", &lower), named("upperdir", &upper), named("workdir", &work)];
        let mut mount = Command::new("mount");
        run(mount.args(["-t", "overlay", "overlay", "-o", &options.join(",")]).arg(&merged))?;
        Ok(Self(merged))
    }
}

impl Drop for Overlay {
    fn drop(&mut self) {
        let _ = run(Command::new("umount").arg(&self.0));
    }
}

#[test]
fn calls_and_commits_through_an_overlay_are_those_of_the_file_below() {
    for kind in ["ext4", "xfs", "btrfs"] {
        let Some(volume) = volume_or_skip(kind).filter(|_| has_backend("bpf")) else { return };
        let overlay = match Overlay::over(&volume) {
            Ok(overlay) => overlay,
            Err(reason) => return println!("skipped: no overlay here: {reason}"),
        };
        let json = volume.beside("summary.json");
        let command = ["/usr/bin/python3", "-c", CALLS, &overlay.0.display().to_string()].map(str::to_owned);
        let options = ["--backend", "bpf", "--json", &json.display().to_string()];
        let output = joj(&volume, &options, &[], &command);
        assert!(output.status.success(), "{kind}: {}", String::from_utf8_lossy(&output.stderr));
        let summary: Value = serde_json::from_slice(&std::fs::read(&json).expect("a summary")).expect("JSON");
        let calls = |call: &str, file_type: &str| {
            let groups = summary["sync_calls"].as_array().expect("calls").iter();
            let mut own = groups.filter(|group| group["call"] == call && group["file_type"] == file_type);
            own.next().map_or(0, |group| group["calls"].as_u64().expect("a number"))
        };
        let of_file = ["fsync", "fdatasync", "pwrite64"].map(|call| calls(call, "other"));
        assert_eq!(of_file, [10, 7, 5], "{kind}: {summary}");
        assert_eq!(summary["commits"]["total"], 11, "{kind}");
        // The journal twice, the database, and the directory that the journal's name is in.
        let of_sqlite = ["rollback-journal", "sqlite-database", "directory"];
        assert_eq!(
            of_sqlite.map(|file_type| calls("fdatasync", file_type)),
            [22, 11, 11],
            "{kind}: {summary}"
        );
        let files = summary["files"].as_array().expect("files");
        assert!(files.iter().any(|file| file["path"] == "/upper/test.db"), "{kind}: {files:?}");
    }
}

#[test]
fn a_file_made_over_a_lower_one_has_no_name_of_the_work_directory() {
    for (kind, backend) in ["ext4", "xfs", "btrfs"].iter().flat_map(|kind| [(kind, "bpf"), (kind, "tracefs")])
    {
        let Some(volume) = volume_or_skip(kind).filter(|_| has_backend(backend)) else { return };
        let overlay = match Overlay::over(&volume) {
            Ok(overlay) => overlay,
            Err(reason) => return println!("skipped: no overlay here: {reason}"),
        };
        let table = volume.beside("runs.csv");
        let (place, export) = (overlay.0.display().to_string(), format!("runs={}", table.display()));
        let command =
            ["/usr/bin/python3", "-c", OVER_LOWER_FILES, &place, &LOWER_FILES.to_string()].map(str::to_owned);
        let options = ["--backend", backend, "--json", "/dev/null", "--export", &export];
        let output = joj(&volume, &options, &[], &command);
        assert!(output.status.success(), "{kind}: {}", String::from_utf8_lossy(&output.stderr));
        let written = read(&table).into_iter();
        let written = written.filter(|line| line["operation"] == "write" && line["class"] == "data");
        let mut later = 0;
        for line in written {
            let is_named = line["file_path"].starts_with("/upper/");
            let is_later = number(&line, "file_offset") == 4096;
            let may_have_none = backend == "tracefs" && !is_later && line["file_path"].is_empty();
            assert!(is_named || may_have_none, "{kind}, {backend}: {line:?}");
            later += usize::from(is_later);
        }
        assert_eq!(later, LOWER_FILES, "{kind}, {backend}");
    }
}
