//! Goal: memory that belongs to no file is called what it is, or unattributed: it is no metadata for that.
//! Method: memory that goes to a swap file, and the parity of a Btrfs with RAID 5, each of a size that only it has.

mod trace;

use std::path::PathBuf;
use std::process::Command;

use trace::runs::{Line, number, read};
use trace::volume::{Volume, has_backend, joj, or_skip, run, volume_or_skip};

const MIB: i64 = 1 << 20;

/// Eight MiB of memory that go to swap: of tmpfs (1: MAP_SHARED), or a program's own (2: MAP_PRIVATE).
const SWAP_OUT: &str = "
import mmap, os, sys
MADV_PAGEOUT, MAP_ANONYMOUS = 21, 32
memory = mmap.mmap(-1, 8 << 20, flags=int(sys.argv[1]) | MAP_ANONYMOUS)
memory[:] = os.urandom(8 << 20)
memory.madvise(MADV_PAGEOUT)
";

/// Used for swap before all else; no more with the value.
struct SwapFile(PathBuf);

impl SwapFile {
    fn on(volume: &Volume) -> Result<Self, String> {
        let path = volume.path().join("swap");
        // A file with holes is none.
        run(Command::new("dd")
            .args(["if=/dev/zero", "bs=1M", "count=32"])
            .arg(format!("of={}", path.display())))?;
        run(Command::new("chmod").arg("600").arg(&path))?;
        run(Command::new("mkswap").arg(&path))?;
        volume.settle();
        run(Command::new("swapon").args(["--priority", "32767"]).arg(&path))?;
        Ok(Self(path))
    }
}

impl Drop for SwapFile {
    fn drop(&mut self) {
        let _ = run(Command::new("swapoff").arg(&self.0));
    }
}

fn written(volume: &Volume, backend: &str, command: &[&str]) -> Vec<Line> {
    let table = volume.beside("runs.csv");
    let export = format!("runs={}", table.display());
    let command: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
    let output =
        joj(volume, &["--backend", backend, "--export", &export, "--json", "/dev/null"], &[], &command);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    read(&table).into_iter().filter(|line| line["operation"] == "write").collect()
}

fn bytes_of(lines: &[Line], class: &str) -> i64 {
    lines.iter().filter(|line| line["class"] == class).map(|line| number(line, "byte_length")).sum()
}

#[test]
fn memory_that_goes_to_a_swap_file_is_neither_metadata_nor_data_of_nobody() {
    for kind in ["ext4", "xfs"] {
        let Some(volume) = volume_or_skip(kind).filter(|_| has_backend("bpf")) else { return };
        let _swap = match SwapFile::on(&volume) {
            Ok(swap) => swap,
            Err(reason) => return println!("skipped: no swap here: {reason}"),
        };
        for sharing in ["1", "2"] {
            let lines = written(&volume, "bpf", &["/usr/bin/python3", "-c", SWAP_OUT, sharing]);
            // Other memory may go there, too, and some of ours may come back first.
            let swapped = bytes_of(&lines, "unattributed");
            assert!(swapped >= 6 * MIB, "{kind}, {sharing}: {swapped} bytes: {lines:?}");
            let others = bytes_of(&lines, "metadata") + bytes_of(&lines, "data");
            assert!(others < MIB, "{kind}, {sharing}: {others} bytes: {lines:?}");
        }
    }
}

#[test]
fn parity_is_neither_metadata_nor_data() {
    let volume = or_skip(Volume::with_parity()).filter(|_| has_backend("bpf"));
    let Some(volume) = volume else { return };
    let file = format!("of={}", volume.path().join("file").display());
    let lines = written(&volume, "bpf", &["dd", "if=/dev/urandom", &file, "bs=1M", "count=8", "conv=fsync"]);
    assert_eq!(bytes_of(&lines, "data"), 8 * MIB, "{lines:?}");
    // Of each two pieces of 64 KiB there is a third.
    assert!(bytes_of(&lines, "unattributed") >= 4 * MIB, "{lines:?}");
    assert!(bytes_of(&lines, "metadata") < MIB, "{lines:?}");
}
