//! Goal: each call that may change a file is in the recording, or is counted as not replayed, whoever records it.
//! Method: a program in C makes the calls that no recording has, most of them in vain; all have to be counted under their names.

mod record;
mod replay;

use std::collections::BTreeSet;
use std::path::Path;

use record::{methods, program, record_command};
use replay::{Scratch, joj, told};

/// Makes each of these calls once. What needs a right or a filesystem of some kind may fail: those are counted, too.
const CALLS: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>
int main(int words, char **word) {
    if (chdir(word[1])) return 1;
    int from = open("from", O_RDWR | O_CREAT, 0644), to = open("to", O_RDWR | O_CREAT, 0644);
    if (write(from, "12345678", 8) != 8) return 1;
    lseek(from, 0, SEEK_SET);
    int pipes[2];
    if (pipe(pipes)) return 1;

    // Only asks, and one of a terminal's: neither is counted.
    int flags = 0;
    ioctl(from, FS_IOC_GETFLAGS, &flags);
    ioctl(from, 0x5401, 0);
    // Of what is no file: not counted.
    ioctl(pipes[0], FICLONE, from);
    int is_cloned = !ioctl(to, FICLONE, from);
    int is_flagged = !ioctl(to, FS_IOC_SETFLAGS, &flags);
    printf("%d %d\n", is_cloned, is_flagged);

    struct sockaddr_un address = {AF_UNIX, "socket"}, unseen = {AF_UNIX, "\0unseen"};
    if (bind(socket(AF_UNIX, SOCK_STREAM, 0), (void *)&address, sizeof(address))) return 2;
    // Has no name in a directory: not counted.
    if (bind(socket(AF_UNIX, SOCK_STREAM, 0), (void *)&unseen, 12)) return 2;
    char *memory = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, from, 0);
    memory[0] = 'x';
    msync(memory, 4096, MS_SYNC);
    copy_file_range(from, 0, to, 0, 2, 0);
    sendfile(to, from, 0, 2);
    splice(from, 0, pipes[1], 0, 2, 0);
    setxattr("to", "user.a", "b", 1, 0);
    syscall(463, AT_FDCWD, "to", 0, "user.b", 0, 0);
    syscall(466, AT_FDCWD, "to", 0, "user.b");
    syscall(469, AT_FDCWD, "to", 0, 0, 0);
    mknod("fifo", S_IFIFO | 0644, 0);
    flock(from, LOCK_EX);
    syscall(SYS_open_by_handle_at, -1, 0, 0);
    syscall(SYS_io_uring_setup, 0, 0);
    syscall(SYS_io_submit, 0, 0, 0);
    syscall(SYS_mount, 0, "nowhere", 0, 0, 0);
    syscall(SYS_umount2, "nowhere", 0);
    syscall(SYS_pivot_root, "nowhere", "nowhere");
    syscall(SYS_setns, -1, 0);
    return 0;
}
"#;

#[test]
fn a_call_that_changes_a_file_is_recorded_or_counted() {
    let scratch = Scratch::new("live-counts");
    let Some(program) = program(&scratch, "program", CALLS) else { return };
    let directory: &Path = scratch.as_ref();
    for method in methods() {
        let (place, recording) = (scratch.file(method), scratch.file(&format!("{method}.joj")));
        std::fs::create_dir(&place).expect("a directory");
        let output = record_command(method, &recording, &[&program, &place]);
        let (code, said) = told(&output);
        assert_eq!(code, Some(0), "{method}: {said}");
        let results = String::from_utf8_lossy(&output.stdout).into_owned();
        let (cloned, flagged) = results.trim().split_once(' ').expect("two words");
        let replayed = joj(&[&"replay", &recording, &directory, &"--order", &"fast", &"--json", &"-"]);
        let replayed: serde_json::Value = serde_json::from_slice(&replayed.stdout).expect("JSON");
        let counted = replayed["not_replayed"].as_object().expect("counts").clone();
        let mut wanted = BTreeSet::from([
            ("bind: it makes the name of a socket", 1),
            ("msync", 1),
            ("mmap: writes through it are not seen", 1),
            ("copy_file_range", 1),
            ("sendfile", 1),
            ("splice", 1),
            ("setxattr", 4),
            ("mknod", 1),
            ("flock", 1),
            ("open_by_handle_at", 1),
            ("io_uring_setup: reads and writes through it are not seen", 1),
            ("io_submit: reads and writes through it are not seen", 1),
            ("mount", 3),
            ("setns", 1),
        ]);
        let in_vain = u64::from(cloned == "0") + u64::from(flagged == "0");
        wanted.extend((cloned == "1").then_some(("ioctl: it shares blocks of two files", 1)));
        wanted.extend((flagged == "1").then_some(("ioctl: it may change a file or its attributes", 1)));
        wanted.extend((in_vain > 0).then_some(("ioctl: it failed", in_vain)));
        let found: BTreeSet<(&str, u64)> = counted
            .iter()
            .filter(|(name, _)| name.as_str() != "calls that are not about files")
            .map(|(name, calls)| (name.as_str(), calls.as_u64().unwrap_or(0)))
            .collect();
        // What the C library opens and maps at its start differs.
        let is_of_a_start = |(name, _): &(&str, u64)| {
            name.starts_with("mmap: reads") || name.contains("pipe, a socket") || name.contains("device")
        };
        let found: BTreeSet<_> = found.into_iter().filter(|one| !is_of_a_start(one)).collect();
        assert_eq!(found, wanted, "{method}");
    }
}
