//! Goal: `waldio_persist=auto` writes past the page cache only while no other process has the database open.
//! Method: the same commits, first alone, then beside a second process that holds a connection, then alone again;
//! `waldio_status` counts the durable writes.

use std::process::Command;

const PYTHON: &str = "/usr/bin/python3";

const PROGRAM: &str = r#"
import sqlite3, subprocess, sys
library, path = sys.argv[1:]
loader = sqlite3.connect(":memory:")
loader.enable_load_extension(True)
loader.load_extension(library)
db = sqlite3.connect(path, isolation_level=None)
db.execute("PRAGMA journal_mode=WAL")
db.execute("PRAGMA synchronous=FULL")
db.execute("CREATE TABLE t(a)")

def status(name):
    return db.execute("SELECT value FROM waldio_status WHERE name = ?", (name,)).fetchone()[0]

def commits():
    before = status("durable_writes")
    for number in range(50):
        db.execute("INSERT INTO t VALUES (?)", (number,))
    return status("durable_writes") - before

if status("persist") != "fua":
    print("skipped: no direct I/O here, persist is", status("persist"))
    sys.exit(0)
alone = commits()
other = subprocess.Popen(
    [sys.executable, "-c", "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); "
     "db.execute('SELECT count(*) FROM t').fetchone(); print('open', flush=True); sys.stdin.read()", path],
    stdin=subprocess.PIPE, stdout=subprocess.PIPE)
other.stdout.readline()
beside = commits()
other.stdin.close()
other.wait()
again = commits()
print(alone, beside, again, db.execute("SELECT count(*) FROM t").fetchone()[0])
"#;

#[test]
fn direct_writes_stop_while_another_process_has_the_database_open() {
    let executable = std::env::current_exe().unwrap();
    // In deps/, where cargo puts what it built for this test; a folder up there may be an older one.
    let library = executable.with_file_name("libwaldio.so");
    // Beside the test, not in /tmp, which may be a tmpfs.
    let folder = library.with_file_name(format!("real-alone-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let output = Command::new(PYTHON).args(["-c", PROGRAM]).arg(&library).arg(folder.join("a.db")).output();
    std::fs::remove_dir_all(&folder).unwrap();
    let output = match output {
        Ok(output) => output,
        Err(error) => {
            eprintln!("skipped: {PYTHON}: {error}");
            return;
        }
    };
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    if text.starts_with("skipped:") {
        eprint!("{text}");
        return;
    }
    // The first commit after a change of the way is never a direct one: what precedes it must be durable first.
    let counts: Vec<u64> = text.split_whitespace().map(|word| word.parse().unwrap()).collect();
    assert!((48..=50).contains(&counts[0]), "alone: {text}");
    assert_eq!(counts[1], 0, "beside another process: {text}");
    assert!((48..=50).contains(&counts[2]), "alone again: {text}");
    assert_eq!(counts[3], 150);
}
