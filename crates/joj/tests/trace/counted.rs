//! What disks counted themselves, compared with what a trace saw.

use std::time::Duration;

use serde_json::Value;

/// How often the same is traced. Another program's sync(2) flushes the traced disk, too: just before or after a capture only the disk
/// counts that, where its counters are read a moment apart. What a capture misses, it misses each time.
const TRIES: usize = 4;
/// ext4 takes no inode of a file that was deleted in the last five seconds. Files made anew at once would have others, in another block
/// perhaps, which is logged, too.
const NEW_INODES: Duration = Duration::from_secs(6);

/// The disks of a summary whose own counters say otherwise: bytes, flushes, writes.
pub fn differences(summary: &Value) -> Vec<&Value> {
    let differs = |disk: &&Value| {
        let [bytes, flushes, requests, empty] =
            ["/written/bytes", "/flushes", "/written/requests", "/empty_flushes"]
                .map(|path| disk.pointer(path).and_then(Value::as_u64).expect("a number"));
        let counted =
            ["counted_written_bytes", "counted_flushes", "counted_writes"].map(|name| disk[name].as_u64());
        counted != [bytes, flushes, requests + empty].map(Some)
    };
    summary["disks"].as_array().expect("disks").iter().filter(differs).collect()
}

/// The first of some traces of the same with which the disks' counters agree, else the last.
pub fn agreeing<T>(mut trace: impl FnMut() -> T, summary: impl Fn(&T) -> &Value) -> T {
    let agrees = |traced: &T| differences(summary(traced)).is_empty();
    let mut traced = trace();
    for _ in 1..TRIES {
        if agrees(&traced) {
            break;
        }
        std::thread::sleep(NEW_INODES);
        traced = trace();
    }
    traced
}
