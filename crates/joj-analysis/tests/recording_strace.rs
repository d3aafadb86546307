//! Goal: what strace prints becomes the calls that the program made, on the files that it meant, and contents of none.
//! Method: short texts of every kind that strace has, beside the rows that they must become.

use joj_analysis::recording::Recording;
use joj_analysis::recording::call::{CallKind, RecordedCall};
use joj_analysis::recording::flags::{O_RDWR, O_TMPFILE};
use joj_analysis::recording::import::{TextFormat, strace};

fn import(text: &str) -> Recording {
    strace::import(text.as_bytes()).unwrap_or_else(|error| panic!("{error}"))
}

/// Each call as `word(description, path, offset, bytes) = result`, without what is 0 or empty.
fn rows(recording: &Recording) -> Vec<String> {
    let row = |call: &RecordedCall| {
        let paths = [call.path, call.second_path].map(|path| recording.texts.get(path).to_owned());
        let number =
            |name: &str, number: u64| if number == 0 { String::new() } else { format!("{name}{number}") };
        let words = [
            number("d", u64::from(call.description)),
            paths[0].clone(),
            paths[1].clone(),
            number("@", call.offset),
            number("+", call.bytes),
        ];
        let words: Vec<String> = words.into_iter().filter(|word| !word.is_empty()).collect();
        format!("{} {}({}) = {}", call.thread, call.kind.text(), words.join(" "), call.result)
    };
    recording.calls.iter().map(row).collect()
}

fn not_replayed(recording: &Recording) -> Vec<(String, u64)> {
    let facts = recording.header.recording.as_ref().expect("facts of a recording");
    facts.not_replayed.iter().map(|(what, calls)| (what.clone(), *calls)).collect()
}

#[test]
fn a_list_whose_buffers_are_left_out_is_as_long_as_what_was_moved() {
    let recording = import(
        r#"7 1700000000.000000 openat(AT_FDCWD</w>, "v", O_RDWR|O_CREAT, 0644) = 3</w/v>
7 1700000000.000100 writev(3</w/v>, [...], 2) = 30
7 1700000000.000200 writev(3</w/v>, [{iov_base=""..., iov_len=8}, ...], 2) = 30
7 1700000000.000300 readv(3</w/v>, [{iov_base=""..., iov_len=80}], 1) = 0
"#,
    );
    let bytes: Vec<u64> = recording.calls.iter().map(|call| call.bytes).collect();
    assert_eq!(bytes, [0, 30, 30, 80]);
}

#[test]
fn times_since_the_line_before_are_refused() {
    let text = "7      0.000000 open(\"/a\", O_RDONLY) = 3\n7      0.000100 close(3) = 0\n";
    let error = strace::import(text.as_bytes()).expect_err("strace -r").to_string();
    assert!(error.contains("run strace with -ttt or -tt"), "{error}");
}

#[test]
fn names_behind_a_chroot_stand_below_it() {
    let recording = import(
        r#"7 1700000000.000000 chroot("/cr") = 0
7 1700000000.000100 mkdir("/in", 0700) = 0
7 1700000000.000200 chdir("/in") = 0
7 1700000000.000300 getcwd("/in", 4096) = 4
7 1700000000.000400 mkdir("../../a", 0700) = 0
7 1700000000.000500 openat(AT_FDCWD</cr/in>, "b", O_WRONLY|O_CREAT, 0600) = 3</cr/in/b>
"#,
    );
    assert_eq!(rows(&recording), ["7 mkdir(/cr/in) = 0", "7 mkdir(/cr/a) = 0", "7 open(d1 /cr/in/b) = 3"]);
}

#[test]
fn a_thread_that_begins_an_execve_goes_on_as_its_process() {
    let recording = import(
        r#"7 1700000000.000000 openat(AT_FDCWD</w>, "a", O_WRONLY|O_CREAT, 0600) = 3</w/a>
7 1700000000.000050 openat(AT_FDCWD</w>, "b", O_WRONLY|O_CREAT|O_CLOEXEC, 0600) = 4</w/b>
7 1700000000.000100 clone3({flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_THREAD}, 88) = 8
7 1700000000.000200 futex(0x1, FUTEX_WAIT, 8, NULL <unfinished ...>
8 1700000000.000300 execve("/bin/sh", ["sh"], 0x7ffe /* 9 vars */ <unfinished ...>
7 1700000000.000400 +++ superseded by execve in pid 8 +++
7 1700000000.000400 <... execve resumed>) = 0
7 1700000000.000500 write(3</w/a>, "x", 1) = 1
7 1700000000.000600 +++ exited with 0 +++
"#,
    );
    let told = [
        "7 open(d1 /w/a) = 3",
        "7 open(d2 /w/b) = 4",
        "7 fork() = 8",
        "7 released(d2) = 0",
        // What comes now comes after what thread 8 did.
        "7 woken() = 8",
        "7 write(d1 +1) = 1",
        "7 released(d1) = 0",
    ];
    assert_eq!(rows(&recording), told);
    assert!(recording.calls.iter().all(|call| call.process == 7));
    assert_eq!(not_replayed(&recording), [("futex: its end is not in the text".to_owned(), 1)]);
}

/// A new directory has the name of one that is gone. strace marks that behind the bracket, and the working directory within.
#[test]
fn names_below_a_directory_that_is_gone_are_no_names_of_the_new_one() {
    let recording = import(
        r#"7 1700000000.000000 openat(3</w/d>(deleted), "f", O_RDWR|O_CREAT, 0600) = -1 ENOENT (No such file or directory)
7 1700000000.000100 unlinkat(3</w/d>(deleted), "f", 0) = -1 ENOENT (No such file or directory)
7 1700000000.000200 mkdir("g", 0700) = -1 ENOENT (No such file or directory)
7 1700000000.000300 openat(AT_FDCWD</w/d (deleted)>, "g", O_RDWR|O_CREAT, 0600) = -1 ENOENT (No such file or directory)
7 1700000000.000400 openat(AT_FDCWD</w/d (deleted)>, "../h", O_RDWR|O_CREAT, 0600) = 4</w/h>
7 1700000000.000500 write(5</w/old>(deleted), "x", 1) = 1
7 1700000000.000600 fchdir(3</w/d>(deleted)) = 0
7 1700000000.000700 unlink("k") = -1 ENOENT (No such file or directory)
"#,
    );
    // What has no name any more is a file without one in a replay, too.
    let told = ["7 held(d2 /) = 0", "7 mkdir(/start/g) = -2", "7 open(d1 /w/h) = 4", "7 write(d2 +1) = 1"];
    assert_eq!(rows(&recording), told);
    assert_eq!(recording.calls[0].flags, O_RDWR | O_TMPFILE);
    let gone = |name: &str, calls| (format!("{name}: a name in a directory that is gone"), calls);
    assert_eq!(not_replayed(&recording), [gone("openat", 2), gone("unlink", 1), gone("unlinkat", 1)]);
}

/// The calls of a program that uses plain names before and after the text says where it is.
fn placed(first: &str) -> (Vec<String>, Vec<String>) {
    let recording = import(&format!(
        r#"7 1700000000.000000 mkdir("sub", 0700) = 0
7 1700000000.000100 symlink("/start/x", "link") = 0
7 1700000000.000200 {first}
7 1700000000.000300 clone(child_stack=NULL, flags=SIGCHLD) = 8
8 1700000000.000400 unlink("gone") = 0
7 1700000000.000500 openat(AT_FDCWD</w/k>, "sub/f", O_WRONLY|O_CREAT, 0600) = 3</w/k/sub/f>
8 1700000000.000600 openat(AT_FDCWD</w/k>, "/etc/x", O_RDONLY) = -1 ENOENT (No such file or directory)
8 1700000000.000700 rename("sub", "sub2") = 0
8 1700000000.000800 linkat(AT_FDCWD</w/k>, "sub2/f", AT_FDCWD</w/k>, "g", 0) = 0
"#
    ));
    let names: Vec<String> = rows(&recording).into_iter().filter(|row| !row.contains("fork")).collect();
    (names, recording.header.inferred)
}

#[test]
fn the_directory_that_stands_beside_a_call_is_that_of_all_plain_names() {
    let (names, inferred) = placed(r#"access("a", F_OK) = 0"#);
    assert_eq!(
        names,
        [
            "7 mkdir(/w/k/sub) = 0",
            "7 symlink(/w/k/link /start/x) = 0",
            "7 access(/w/k/a) = 0",
            "8 unlink(/w/k/gone) = 0",
            "7 open(d1 /w/k/sub/f) = 3",
            "8 open(/etc/x) = -2",
            "8 rename(/w/k/sub /w/k/sub2) = 0",
            "8 link(/w/k/sub2/f /w/k/g) = 0",
        ]
    );
    // With a directory that the program entered by a plain name; by a whole one, nothing says where it was before.
    let (names, _) = placed(r#"chdir("k") = 0"#);
    assert_eq!(
        names[..3],
        ["7 mkdir(/w/sub) = 0", "7 symlink(/w/link /start/x) = 0", "8 unlink(/w/k/gone) = 0"]
    );
    let (names, told) = placed(r#"chdir("/w/k") = 0"#);
    assert_eq!(names[..2], ["7 mkdir(/start/sub) = 0", "7 symlink(/start/link /start/x) = 0"]);
    assert_eq!((inferred.len(), told.len()), (1, 2), "that it is without -T; and where it was: {told:?}");
}

#[test]
fn a_call_at_minus_one_is_where_the_description_stands() {
    let recording = import(
        r#"7 1700000000.000000 openat(AT_FDCWD</w>, "v", O_RDWR|O_CREAT, 0644) = 3</w/v>
7 1700000000.000100 pwritev2(3</w/v>, [{iov_base="a", iov_len=10}, {iov_base="b", iov_len=20}], 2, -1, 0) = 30
7 1700000000.000200 preadv2(3</w/v>, [{iov_base="", iov_len=10}], 1, -1, RWF_NOWAIT) = 0
7 1700000000.000250 fcntl(3</w/v>, F_SETFL, O_RDWR|O_APPEND) = 0
7 1700000000.000300 close(3</w/v>) = 0
"#,
    );
    assert_eq!(
        rows(&recording),
        [
            "7 open(d1 /w/v) = 3",
            "7 writev(d1 +30) = 30",
            "7 readv(d1 +10) = 0",
            "7 set_flags(d1) = 0",
            "7 close(d1) = 0"
        ]
    );
    let flags: Vec<u32> = recording.calls.iter().map(|call| call.flags).collect();
    assert_eq!(flags, [0o102, 0, 8, 0o2002, 0], "RWF_NOWAIT, O_APPEND");
}

#[test]
fn calls_have_their_file_place_length_and_result() {
    let recording = import(
        r#"7 1700000000.000000 openat(AT_FDCWD</w>, "a.db", O_RDWR|O_CREAT|O_CLOEXEC, 0644) = 3</w/a.db> <0.000010>
7 1700000000.000100 pwrite64(3</w/a.db>, "SECRET, \"x\") = 9"..., 4096, 8192) = 4096 <0.000020>
7 1700000000.000200 pread64(3</w/a.db>, "SECRET", 100, 24) = 6 <0.000020>
7 1700000000.000300 writev(3</w/a.db>, [{iov_base="iov_len=999", iov_len=24}, {iov_base="b", iov_len=1}], 2) = 25
7 1700000000.000400 fdatasync(3</w/a.db>) = 0 <0.002000>
7 1700000000.000500 rename("a.db", "../b.db") = 0 <0.000001>
7 1700000000.000600 newfstatat(3</w/a.db>, "", {st_mode=S_IFREG|0644, st_size=12288, ...}, AT_EMPTY_PATH) = 0
7 1700000000.000700 unlinkat(AT_FDCWD</w>, "sub", AT_REMOVEDIR) = -1 ENOENT (No such file or directory)
7 1700000000.000800 close(3</w/a.db>) = 0
"#,
    );
    assert_eq!(
        rows(&recording),
        [
            "7 open(d1 /w/a.db) = 3",
            "7 pwrite(d1 @8192 +4096) = 4096",
            "7 pread(d1 @24 +100) = 6",
            "7 writev(d1 +25) = 25",
            "7 fdatasync(d1) = 0",
            "7 rename(/w/a.db /b.db) = 0",
            "7 fstat(d1 +12288) = 0",
            "7 rmdir(/w/sub) = -2",
            "7 close(d1) = 0",
        ]
    );
    let header = &recording.header;
    assert_eq!((header.started_unix_ns, recording.calls[4].begin_ns), (1_700_000_000_000_000_000, 400_000));
    assert_eq!(recording.calls[4].duration_ns, 2_000_000);
    let texts: String = (0..u32::try_from(recording.texts.count()).unwrap())
        .map(|number| recording.texts.get(joj_analysis::trace::texts::Text(number)).to_owned())
        .collect();
    assert!(!format!("{header:?} {texts}").contains("SECRET"), "contents");
}

#[test]
fn descriptors_are_a_processes_and_descriptions_are_shared() {
    let recording = import(
        r#"1 00:00:00.000001 open("/a", O_RDWR) = 3
1 00:00:00.000002 dup(3) = 4
1 00:00:00.000003 fcntl(3, F_DUPFD_CLOEXEC, 10) = 10
1 00:00:00.000004 clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|SIGCHLD) = 2
2 00:00:00.000005 open("/b", O_RDONLY) = 5
2 00:00:00.000006 close(3) = 0
2 00:00:00.000007 fsync(4) = 0
2 00:00:00.000008 execve("/bin/x", ["x"], 0x7f /* 3 vars */) = 0
2 00:00:00.000009 write(10, "x", 1) = -1 EBADF (Bad file descriptor)
1 00:00:00.000010 close(3) = 0
1 00:00:00.000011 close(4) = 0
2 00:00:00.000012 +++ exited with 0 +++
1 00:00:00.000013 write(10, "x", 1) = 1
1 00:00:00.000014 +++ killed by SIGKILL +++
"#,
    );
    assert_eq!(
        rows(&recording),
        [
            "1 open(d1 /a) = 3",
            "1 dup(d1) = 4",
            "1 dup(d1) = 10",
            "1 fork() = 2",
            "2 open(d2 /b) = 5",
            "2 close(d1) = 0",
            "2 fsync(d1) = 0",
            "1 close(d1) = 0",
            "1 close(d1) = 0",
            "2 released(d2) = 0",
            "1 write(d1 +1) = 1",
            "1 released(d1) = 0",
        ]
    );
    let flags: Vec<u32> =
        recording.calls.iter().filter(|call| call.kind == CallKind::Close).map(|call| call.flags).collect();
    assert_eq!(
        flags,
        [0, 0, RecordedCall::STAYS_OPEN],
        "the third of three that open and dup made is open as 10 still"
    );
    assert_eq!(not_replayed(&recording), [("write: a descriptor whose opening was not seen".to_owned(), 1)]);
}

#[test]
fn an_inherited_descriptor_that_is_closed_leaves_the_file_open() {
    let recording = import(
        r#"1 00:00:00.000001 open("/a", O_RDWR) = 3
1 00:00:00.000002 vfork( <unfinished ...>
2 00:00:00.000003 close(3) = 0
2 00:00:00.000004 +++ exited with 0 +++
1 00:00:00.000005 <... vfork resumed>) = 2
1 00:00:00.000006 close(3) = 0
"#,
    );
    let closes: Vec<u32> =
        recording.calls.iter().filter(|call| call.kind == CallKind::Close).map(|call| call.flags).collect();
    assert_eq!(closes, [RecordedCall::STAYS_OPEN, 0]);
    assert_eq!(rows(&recording).iter().filter(|row| row.contains("fork")).count(), 1, "told once");
}

#[test]
fn a_close_under_way_closes_what_the_number_meant_when_it_began() {
    let recording = import(
        r#"1 00:00:00.000001 open("/a", O_RDWR) = 3
1 00:00:00.000002 clone(flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_THREAD) = 2
1 00:00:00.000003 close(3 <unfinished ...>
2 00:00:00.000004 open("/b", O_RDWR) = 3
1 00:00:00.000005 <... close resumed>) = 0
2 00:00:00.000006 fsync(3) = 0
"#,
    );
    let told = rows(&recording);
    assert_eq!(told[2..], ["1 close(d1) = 0", "2 open(d2 /b) = 3", "2 fsync(d2) = 0"]);
    assert_eq!(recording.calls[4].process, 1, "a thread of process 1");
}

#[test]
fn what_cannot_be_replayed_is_counted_and_told() {
    let recording = import(
        r#"9 23:59:59.999999 read(0</dev/pts/0<char 136:0>>, "x", 1) = 1
9 23:59:59.999999 write(5<pipe:[77]>, "x", 1) = 1
9 23:59:59.999999 read(6<TCP:[1.2.3.4:5->6.7.8.9:80]>, 0x7f, 5) = -1 EAGAIN (Resource temporarily unavailable)
9 00:00:00.000001 read(7</w/log>,  <unfinished ...>
9 00:00:00.000002 <... read resumed>0x7f, 5) = ? ERESTARTSYS (To be restarted if SA_RESTART is set)
9 00:00:00.000003 --- SIGALRM {si_signo=SIGALRM, si_code=SI_KERNEL} ---
9 00:00:00.000004 read(7</w/log>, "SECRET", 5) = 5
9 00:00:00.000005 mmap(NULL, 4096, PROT_READ|PROT_WRITE, MAP_SHARED, 7</w/log>, 0) = 0x7f
9 00:00:00.000006 io_uring_enter(8, 1, 1, 0, NULL, 8) = 1
9 00:00:00.000007 brk(NULL) = 0x55
9 00:00:00.000008 some_new_call(7) = 0
9 00:00:00.000008 ioctl(7</w/log>, BTRFS_IOC_CLONE or FICLONE, 8</w/old>) = 0
9 00:00:00.000008 bind(4, {sa_family=AF_UNIX, sun_path="/w/s"}, 110) = 0
9 00:00:00.000008 bind(4, {sa_family=AF_UNIX, sun_path=@"s"}, 4) = 0
9 00:00:00.000009 openat(AT_FDCWD, "/dev/null", O_WRONLY) = 4
9 00:00:00.000010 write(4, "x", 1) = 1
9 00:00:00.000011 fsync(7</w/log> <unfinished ...>
9 00:00:00.000012 +++ killed by SIGKILL +++
8 00:00:00.000011 pread64(7</w/log>,  <unfinished ...>
8 00:00:00.000012 <... pread64 resumed> <unfinished ...>) = ?
8 00:00:00.000013 +++ killed by SIGKILL +++
7 00:00:00.000011 newfstatat(AT_FDCWD, "/w/x",  <unfinished ...>
7 00:00:00.000012 <... newfstatat resumed>) = ? <unavailable>
7 00:00:00.000013 +++ killed by SIGKILL +++
"#,
    );
    assert_eq!(rows(&recording), ["9 held(d1 /w/log) = 0", "9 read(d1 +5) = 5", "9 released(d1) = 0"]);
    let told: Vec<String> =
        not_replayed(&recording).into_iter().map(|(what, calls)| format!("{calls} {what}")).collect();
    assert_eq!(
        told,
        [
            "1 bind",
            "1 bind: it makes the name of a socket",
            "1 calls that are not about files",
            "1 fsync: its end is not in the text",
            "1 io_uring_enter: reads and writes through it are not seen",
            "1 ioctl: it shares blocks of two files",
            "1 mmap: writes through it are not seen",
            "1 newfstatat: its end is not in the text",
            "1 openat: a device or what the kernel makes up",
            "1 pread64: its end is not in the text",
            "1 read: a device or what the kernel makes up",
            "1 read: a pipe, a socket or the like",
            "1 read: a signal interrupted it, and it began again",
            "1 some_new_call",
            "1 write: a device or what the kernel makes up",
            "1 write: a pipe, a socket or the like",
        ]
    );
    assert_eq!(recording.calls[1].begin_ns, 0, "the first call of the recording");
}

#[test]
fn what_changes_inodes_and_what_the_kernel_keeps_has_rows() {
    let recording = import(
        r#"1 00:00:00.000001 open("/a", O_RDWR|O_CREAT, 0644) = 3
1 00:00:00.000002 fchown(3, 0, 0) = 0
1 00:00:00.000003 utimensat(3, NULL, NULL, 0) = 0
1 00:00:00.000004 chmod("/a", 0600) = 0
1 00:00:00.000005 fchownat(AT_FDCWD, "/a", 5, 5, AT_SYMLINK_NOFOLLOW) = 0
1 00:00:00.000006 lchown("/a", 5, 5) = -1 EPERM (Operation not permitted)
1 00:00:00.000007 fadvise64(3, 4096, 0, POSIX_FADV_DONTNEED) = 0
1 00:00:00.000008 readahead(3, 0, 100) = 0
1 00:00:00.000009 openat(AT_FDCWD, "/proc/sys/vm/drop_caches", O_WRONLY|O_TRUNC) = 4
1 00:00:00.000010 dup2(4, 1) = 1
1 00:00:00.000011 write(1, "3", 1) = 1
"#,
    );
    let told: Vec<(CallKind, u32, u64, u64, u32, &str)> = recording
        .calls
        .iter()
        .map(|call| {
            let path = recording.texts.get(call.path);
            (call.kind, call.description, call.offset, call.bytes, call.flags, path)
        })
        .collect();
    assert_eq!(
        told[1..],
        [
            (CallKind::FsetAttributes, 1, 0, 0, RecordedCall::SETS_OWNER, ""),
            (CallKind::FsetAttributes, 1, 0, 0, RecordedCall::SETS_TIMES, ""),
            (CallKind::SetAttributes, 0, 0, 0, RecordedCall::SETS_MODE, "/a"),
            (CallKind::SetAttributes, 0, 0, 0, RecordedCall::SETS_OWNER | RecordedCall::OF_LINK, "/a"),
            (CallKind::Fadvise, 1, 4096, 0, 4, ""),
            (CallKind::Fadvise, 1, 0, 100, 3, ""),
            (CallKind::DropCaches, 0, 0, 0, 0, ""),
        ]
    );
    let left = not_replayed(&recording);
    let told: Vec<&str> = left.iter().map(|(what, _)| what.as_str()).collect();
    let switch = ["dup2", "openat"].map(|call| format!("{call}: the switch that drops the kernel's caches"));
    assert_eq!(told, [&switch[0], "lchown: it failed", &switch[1]]);
    // As long as the write, which the kernel does it in: the next call is that much later.
    let dropped = recording.calls.last().expect("the last row");
    assert_eq!(dropped.begin_ns, recording.calls[0].begin_ns + 10_000);
}

#[test]
fn relative_paths_begin_where_the_program_is() {
    let recording = import(
        r#"1 00:00:00.000001 open("x/y", O_RDONLY) = 3</home/me/x/y>
1 00:00:00.000002 access("z", R_OK) = 0
1 00:00:00.000003 chdir("/tmp") = 0
1 00:00:00.000004 symlink("../t", "l") = 0
1 00:00:00.000005 open("/data", O_RDONLY|O_DIRECTORY) = 4
1 00:00:00.000006 openat(4, "f", O_RDONLY) = 5
1 00:00:00.000007 fchdir(4) = 0
1 00:00:00.000008 mkdir("new", 0777) = 0
1 00:00:00.000009 openat2(AT_FDCWD, "g", {flags=O_RDONLY, resolve=0}, 24) = 6
"#,
    );
    let paths: Vec<&str> = recording.calls.iter().map(|call| recording.texts.get(call.path)).collect();
    assert_eq!(paths, ["/home/me/x/y", "/home/me/z", "/tmp/l", "/data", "/data/f", "/data/new", "/data/g"]);
    assert_eq!(recording.texts.get(recording.calls[2].second_path), "../t");
}

#[test]
fn a_wrong_line_is_named_with_its_column() {
    let good = "1 00:00:00.000001 open(\"/a\", O_RDWR) = 3\n";
    for (line, said) in [
        (
            "1 00:00:00.1 fsync(3 = 0",
            "line 2 at byte 41: column 25: it ends before the bracket behind its arguments",
        ),
        ("1 00:00:00.1 read(3, \"x\", y) = 1", "line 2 at byte 41: column 27: `y` is no number"),
        (
            "1 00:00:00.1 open(\"/b\", O_NEW) = 4",
            "line 2 at byte 41: column 25: `O_NEW` is no flags that joj knows",
        ),
        (
            "1 12:00 close(3) = 0",
            "line 2 at byte 41: column 3: `12:00` is no time; run strace with -ttt or -tt",
        ),
        ("1 00:00:00.1 <... read resumed>) = 0", "column 19: its call was not begun in an earlier line"),
        ("1 00:00:00.1 close(3) = -1 ENEW (New)", "column 28: `ENEW` is no error of Linux's"),
        ("1 00:00:00.1 fsync(x) = 0", "column 20: `x` is no descriptor"),
    ] {
        let error = strace::import(format!("{good}{line}\n").as_bytes()).unwrap_err().to_string();
        assert!(error.contains(said) && error.ends_with(&format!(": `{line}`")), "{line}: {error}");
    }
    let error = strace::import(format!("{good}1 00:00:00.1 fsync(").as_bytes()).unwrap_err().to_string();
    assert!(error.contains("line 2 at byte 41: the text was cut off"), "{error}");
}

#[test]
fn texts_of_strace_and_mobigen_are_told_apart() {
    for (begin, format) in [
        ("1 0 open /data/data O_RDWR 3\n", TextFormat::Mobigen),
        ("\n12 500 pwrite 3 0 4096\n", TextFormat::Mobigen),
        ("12 00:00:00.5 close(3) = 0\n", TextFormat::Strace),
        ("close(3) = 0\n", TextFormat::Strace),
        ("1 5 unknown 3\n", TextFormat::Strace),
    ] {
        assert_eq!(TextFormat::of(begin), format, "{begin}");
    }
}

#[test]
fn a_root_of_its_own_and_a_name_for_what_is_open() {
    let recording = import(
        r#"7 1700000000.000000 open("/d", O_RDONLY|O_DIRECTORY) = 3</d>
7 1700000000.000100 openat2(3</d>, "/../a", {flags=O_RDWR|O_CREAT, mode=0644, resolve=RESOLVE_IN_ROOT}, 24) = 4</d/a>
7 1700000000.000200 openat(AT_FDCWD</w>, "/d", O_WRONLY|O_TMPFILE, 0600) = 5</d/#7 (deleted)>
7 1700000000.000300 linkat(AT_FDCWD</w>, "/proc/self/fd/5", 3</d>, "b", AT_SYMLINK_FOLLOW) = 0
7 1700000000.000400 linkat(5</d/b>, "", AT_FDCWD</w>, "/d/c", AT_EMPTY_PATH) = 0
7 1700000000.000500 linkat(AT_FDCWD</w>, "/d/c", AT_FDCWD</w>, "/d/e", 0) = 0
"#,
    );
    assert_eq!(
        rows(&recording)[1..],
        [
            "7 open(d2 /d/a) = 4",
            "7 open(d3 /d) = 5",
            "7 link(d3 /d/b) = 0",
            "7 link(d3 /d/c) = 0",
            "7 link(/d/c /d/e) = 0"
        ]
    );
}
