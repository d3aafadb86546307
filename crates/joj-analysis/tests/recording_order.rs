//! Goal: a replay makes each call after those that it depends on, and begins with the files that the program found.
//! Method: short recordings; for each call what it waits for, and the trees before the first and after the last.

use joj_analysis::recording::Recording;
use joj_analysis::recording::call::{CallKind, RecordedCall};
use joj_analysis::recording::file_tree::{FileTree, TreeEntry};
use joj_analysis::recording::import::strace;
use joj_analysis::recording::order::{CallOrder, OrderFinder, Wait};
use joj_analysis::recording::whatif::forecast::{Forecast, recorded_ns};
use joj_analysis::trace::header::{Header, Source};

fn import(text: &str) -> Recording {
    strace::import(text.as_bytes()).unwrap_or_else(|error| panic!("{error}"))
}

fn order(recording: &Recording) -> CallOrder {
    let (mut tree, mut finder, mut texts) =
        (FileTree::default(), OrderFinder::default(), recording.texts.clone());
    for call in &recording.calls {
        let files = tree.apply(call, &recording.texts);
        finder.push(call, files, &mut texts);
    }
    finder.finish()
}

/// For each call the calls of other threads that it waits for: thread and count.
fn waits(recording: &Recording) -> Vec<Vec<(u32, u32)>> {
    let order = order(recording);
    let of = |call| {
        order.waits(call).iter().map(|wait| (order.thread_ids[wait.thread as usize], wait.calls)).collect()
    };
    (0..recording.calls.len()).map(of).collect()
}

fn trees(text: &str) -> [Vec<String>; 2] {
    let recording = import(text);
    let mut tree = FileTree::default();
    for call in &recording.calls {
        tree.apply(call, &recording.texts);
    }
    [tree.before(), tree.after()].map(|entries| {
        let told = entries.iter().map(|(path, entry)| match entry {
            TreeEntry::Directory => format!("{path}/"),
            TreeEntry::File(bytes) => format!("{path} {bytes}"),
            TreeEntry::Symlink(target) => format!("{path} -> {target}"),
            TreeEntry::HardLink(first) => format!("{path} = {first}"),
        });
        told.collect()
    })
}

#[test]
fn a_call_waits_for_its_file_its_path_and_its_directories() {
    let recording = import(
        r#"1 00:00:00.000001 mkdir("/d", 0777) = 0 <0.000001>
1 00:00:00.000010 open("/d/a", O_RDWR|O_CREAT) = 3 <0.000001>
1 00:00:00.000020 rename("/d/a", "/d/b") = 0 <0.000001>
2 00:00:00.000030 open("/d/b", O_RDONLY) = 4 <0.000001>
3 00:00:00.000040 open("/d/c", O_RDWR|O_CREAT) = 5 <0.000001>
1 00:00:00.000050 write(3, "x", 1) = 1 <0.000001>
2 00:00:00.000060 read(4, "x", 1) = 1 <0.000001>
3 00:00:00.000070 unlink("/d/c") = 0 <0.000001>
1 00:00:00.000080 unlink("/d/b") = 0 <0.000001>
2 00:00:00.000090 rmdir("/d") = 0 <0.000001>
2 00:00:00.000100 access("/other", R_OK) = 0 <0.000001>
"#,
    );
    assert_eq!(
        waits(&recording),
        [
            vec![],
            vec![],
            vec![],
            vec![(1, 3)],         // b was renamed
            vec![(1, 1)],         // its directory was made
            vec![(2, 1)],         // one file by two names
            vec![(1, 4)],         // written before it was read
            vec![],               // its own
            vec![(2, 2)],         // read before it was unlinked
            vec![(1, 5), (3, 2)], // the directory was emptied
            vec![],
        ]
    );
}

#[test]
fn calls_that_only_look_do_not_wait_for_each_other() {
    let recording = import(
        r#"1 00:00:00.000001 open("/a", O_RDONLY) = 3 <0.000001>
2 00:00:00.000010 access("/a", R_OK) = 0 <0.000001>
2 00:00:00.000020 open("/a", O_RDWR) = 4 <0.000001>
1 00:00:00.000030 read(3, "x", 1) = 1 <0.000001>
3 00:00:00.000040 truncate("/a", 0) = 0 <0.000001>
1 00:00:00.000050 read(3, "", 1) = 0 <0.000001>
2 00:00:00.000060 stat("/a", {st_mode=S_IFREG|0644, st_size=0}) = 0 <0.000001>
2 00:00:00.000070 write(4, "x", 1) = 1 <0.000001>
1 00:00:00.000080 close(3) = 0 <0.000001>
"#,
    );
    let expected = [
        vec![],
        vec![],
        vec![],
        vec![],
        vec![(1, 2), (2, 2)], // what both looked at is changed
        vec![(3, 1)],
        vec![(3, 1)],
        vec![(1, 3)], // a look of thread 1, and the change that thread 2 knows of
        vec![(2, 4)],
    ];
    assert_eq!(waits(&recording), expected);
}

#[test]
fn calls_that_were_under_way_together_do_not_wait_for_each_other() {
    let recording = import(
        r#"1 00:00:00.000001 open("/a", O_RDWR) = 3 <0.000001>
2 00:00:00.000002 clone(flags=CLONE_FILES) = 4 <0.000001>
1 00:00:00.000010 fsync(3</a>) = 0 <0.000100>
2 00:00:00.000050 fsync(3</a>) = 0 <0.000020>
1 00:00:00.000200 fsync(3</a>) = 0 <0.000001>
"#,
    );
    // Thread 2 has a description of its own (held), of the same file.
    let waits = waits(&recording);
    let names: Vec<&str> = recording.calls.iter().map(|call| call.kind.text()).collect();
    assert_eq!(names, ["held", "open", "fork", "fsync", "fsync", "fsync"]);
    assert_eq!(waits[4], [(1, 1)], "for the open, not for the flush that was under way");
    assert_eq!(waits[5], [(2, 3)], "for that of thread 2, which was over");
}

#[test]
fn a_thread_begins_after_what_made_it() {
    let recording = import(
        r#"1 00:00:00.000001 access("/a", R_OK) = 0 <0.000001>
1 00:00:00.000005 clone(flags=CLONE_FILES) = 2 <0.000050>
2 00:00:00.000010 access("/b", R_OK) = 0 <0.000001>
"#,
    );
    assert_eq!(waits(&recording)[2], [(1, 2)]);
}

/// One thread syncs; one hands on that this is done, without a call of its own; a third one then opens a file.
#[test]
fn a_woken_thread_goes_on_after_what_its_waker_did_last() {
    let row = |thread, kind, begin_ns, duration_ns, result| RecordedCall {
        begin_ns,
        duration_ns,
        kind,
        thread,
        result,
        ..RecordedCall::default()
    };
    let calls = vec![
        row(1, CallKind::Fork, 10, 0, 2),
        row(1, CallKind::Fork, 20, 0, 3),
        row(1, CallKind::Fork, 30, 0, 4),
        row(3, CallKind::Sync, 100, 5_000, 0),
        row(2, CallKind::Woken, 5_200, 0, 3),
        row(1, CallKind::Woken, 5_300, 0, 2),
        row(1, CallKind::Sync, 5_400, 100, 0),
        // Its second sync is under way: what is over is the first.
        row(3, CallKind::Sync, 5_600, 5_000, 0),
        row(1, CallKind::Woken, 6_000, 0, 3),
        // It made no call: there is its begin.
        row(1, CallKind::Woken, 7_000, 0, 4),
        // Nobody knows this one.
        row(1, CallKind::Woken, 8_000, 0, 77),
        row(1, CallKind::Sync, 8_100, 100, 0),
    ];
    let recording = Recording { calls, ..Recording::default() };
    let order = order(&recording);
    assert_eq!(order.thread_ids, [1, 3, 2]);
    let waits: Vec<&[Wait]> = (0..recording.calls.len()).map(|call| order.waits(call)).collect();
    let for_one = |thread, calls| vec![Wait { thread, calls }];
    assert_eq!(waits[4], [for_one(0, 1), for_one(1, 1)].concat(), "its own begin, and the sync");
    assert_eq!(waits[5], for_one(2, 1), "who handed it on, and so the sync");
    assert_eq!(waits[8], for_one(1, 1));
    assert!([6, 9, 10, 11].iter().all(|call| waits[*call].is_empty()), "{waits:?}");
    let wakers = [(4, 1, 1), (5, 2, 1), (8, 1, 1), (9, 0, 3)];
    for (call, thread, calls) in wakers {
        let waker = order.wakeups.get(&call).map(|wakeup| wakeup.waker);
        assert_eq!(waker, Some(Wait { thread, calls }), "row {call}");
    }
    assert_eq!(order.wakeups.len(), wakers.len());
    // So long after its waker's last call. Think time counts from the wake-up, and where nobody is known, from what was before.
    let after_ns = [4, 5, 8, 9].map(|call| order.wakeups[&call].after_ns);
    assert_eq!(after_ns, [100, 100, 900, 6_970]);
    assert_eq!([6, 11].map(|call| order.ready_ns[call]), [5_300, 7_000]);
}

/// The second process asks at 30, and gets the lock 40 behind the unlock.
#[test]
fn who_waits_for_a_lock_does_nothing_by_itself_meanwhile() {
    let lock = |at: u32, process: u32, kind: &str, start: u32, found: &str| {
        let asked = format!("l_type=F_{kind}, l_whence=SEEK_SET, l_start={start}, l_len=1");
        format!("{process} 00:00:00.{at:06} fcntl(3, F_SETLK, {{{asked}}}) = {found} <0.000002>\n")
    };
    let open =
        |at: u32, process: u32| format!("{process} 00:00:00.{at:06} open(\"/d/a\", O_RDWR) = 3 <0.000001>\n");
    let failed = "-1 EAGAIN (Resource temporarily unavailable)";
    let [asks, gets] = [lock(30, 2, "WRLCK", 7, failed), lock(140, 2, "WRLCK", 7, "0")];
    let calls = |between: &str, unlock: String| {
        [
            open(1, 1),
            open(10, 2),
            lock(20, 1, "WRLCK", 7, "0"),
            asks.clone(),
            lock(60, 2, "RDLCK", 9, "0"),
            between.to_owned(),
            unlock,
            gets.clone(),
        ]
        .concat()
    };
    let look = "2 00:00:00.000080 pread64(3, \"x\", 8, 0) = 8 <0.000001>\n";
    let write = "2 00:00:00.000080 pwrite64(3, \"x\", 8, 0) = 8 <0.000001>\n";
    let unlock = || lock(100, 1, "UNLCK", 7, "0");
    let found = order(&import(&calls(look, unlock())));
    let wakeup = found.wakeups[&7];
    let unlocked = Wait { thread: 0, calls: 3 };
    assert_eq!((wakeup.waker, wakeup.own_ns), (unlocked, 0));
    assert_eq!((wakeup.asked_ns, wakeup.after_ns), (72_000, 40_000));
    assert_eq!(wakeup.asked, Wait { thread: 1, calls: 2 });
    // It asked at 30 for a lock that is given back at 102, 66, 48, 20.
    let gets = [102, 66, 48, 20].map(|unlocked_us| wakeup.goes_on_ns(unlocked_us * 1000, 30_000, 32_000));
    assert_eq!(gets, [142_000, 106_000, 68_000, 32_000], "after a fourth of the wait half as long");
    assert_eq!(found.ready_ns[3..], [10_000, u64::MAX, u64::MAX, 21_000, u64::MAX]);
    for (what, text) in [
        ("it does something else meanwhile", calls(write, unlock())),
        ("another byte", calls(look, lock(100, 1, "UNLCK", 8, "0"))),
        ("its own process gave it back", calls(look, lock(100, 2, "UNLCK", 7, "0"))),
        ("given back before", calls(look, lock(25, 1, "UNLCK", 7, "0"))),
    ] {
        let found = order(&import(&text));
        assert!(found.wakeups.is_empty() && !found.ready_ns.contains(&u64::MAX), "{what}");
    }
    // Between the unlock and its last question it asks for something else of the file, too.
    let again = [unlock(), lock(120, 2, "RDLCK", 9, "0")].concat();
    let last = "2 00:00:00.000150 pwrite64(3, \"x\", 8, 0) = 8 <0.000001>\n";
    let recording = import(&[calls(look, again), last.to_owned()].concat());
    let durations_ns: Vec<u64> = recording.calls.iter().map(|call| call.duration_ns).collect();
    let elapsed_ns = Forecast::of(&recording.calls, &order(&recording), &durations_ns, |_| 0).elapsed_ns;
    assert_eq!(elapsed_ns, recorded_ns(&recording.calls), "as recorded it takes as long as recorded");
    let close = "1 00:00:00.000100 close(3) = 0 <0.000002>\n";
    assert_eq!(
        order(&import(&calls(look, close.to_owned()))).wakeups[&7].waker,
        unlocked,
        "a close gives back"
    );
}

#[test]
fn the_tree_before_has_what_is_used_and_not_made() {
    let [before, after] = trees(
        r#"1 00:00:00.000001 open("/d/old", O_RDWR) = 3
1 00:00:00.000002 pread64(3, "x", 4096, 8192) = 4096
1 00:00:00.000003 open("/d/new", O_RDWR|O_CREAT|O_EXCL) = 4
1 00:00:00.000004 pwrite64(4, "x", 100, 1000) = 100
1 00:00:00.000005 access("/d/none", F_OK) = -1 ENOENT (No such file or directory)
1 00:00:00.000006 open("/d/none", O_RDWR|O_CREAT) = 5
1 00:00:00.000007 open("/d/doubtful", O_RDWR|O_CREAT) = 6
1 00:00:00.000008 open("/d/found", O_RDWR|O_CREAT) = 7
1 00:00:00.000009 read(7, "x", 10) = 10
1 00:00:00.000010 stat("/d/dir", {st_mode=S_IFDIR|0755, st_size=4096}) = 0
1 00:00:00.000011 unlink("/d/gone") = 0
1 00:00:00.000012 open("/d/log", O_WRONLY|O_APPEND) = 8
1 00:00:00.000013 lseek(8, 0, SEEK_END) = 500
1 00:00:00.000014 write(8, "x", 5) = 5
1 00:00:00.000015 truncate("/d/old", 100) = 0
1 00:00:00.000016 fallocate(4, 0, 0, 5000) = 0
1 00:00:00.000017 fallocate(4, FALLOC_FL_KEEP_SIZE, 0, 50000) = 0
1 00:00:00.000018 open("/d/first", O_RDWR) = 9
1 00:00:00.000019 pwrite64(9, "x", 1, 700) = 1
"#,
    );
    assert_eq!(
        before,
        ["/d/", "/d/dir/", "/d/first 700", "/d/found 10", "/d/gone 0", "/d/log 500", "/d/old 12288"]
    );
    let left =
        ["/d/", "/d/dir/", "/d/doubtful 0", "/d/first 701", "/d/found 10", "/d/log 505", "/d/new 5000"];
    assert_eq!(after, [&left[..], &["/d/none 0", "/d/old 100"]].concat());
}

/// Each call below a name fails before another thread makes that name, or takes away what was in the way.
#[test]
fn who_makes_a_directory_waits_for_calls_that_did_not_find_it() {
    let makers = [
        r#"mkdir("/d", 0777) = 0"#,
        r#"symlink("e", "/d") = 0"#,
        r#"rename("/e", "/d") = 0"#,
        r#"link("/e", "/d") = 0"#,
        r#"open("/d", O_RDWR|O_CREAT, 0666) = 3"#,
    ];
    for maker in makers {
        let recording = import(&format!(
            "1 00:00:00.000001 open(\"/d/a/x\", O_RDWR|O_CREAT, 0666) = -1 ENOENT (No such file) <0.000001>\n\
             2 00:00:00.000010 {maker} <0.000001>\n"
        ));
        assert_eq!(waits(&recording), [vec![], vec![(1, 1)]], "{maker}");
    }
}

#[test]
fn what_two_make_at_the_same_time_was_not_there_before() {
    let text = r#"1 00:00:00.000001 mkdir("/d/a", 0777) = -1 EEXIST (File exists) <0.000009>
1 00:00:00.000012 symlink("x", "/d/b") = -1 EEXIST (File exists) <0.000009>
2 00:00:00.000002 mkdir("/d/a", 0777) = 0 <0.000001>
2 00:00:00.000013 symlink("x", "/d/b") = 0 <0.000001>
1 00:00:00.000022 open("/d/e", O_RDWR|O_CREAT|O_EXCL, 0666) = -1 EEXIST (File exists) <0.000009>
2 00:00:00.000023 open("/d/e", O_RDWR|O_CREAT|O_EXCL, 0666) = 3 <0.000001>
2 00:00:00.000030 mkdir("/d/c", 0777) = -1 EEXIST (File exists) <0.000001>
2 00:00:00.000040 unlink("/d/c") = 0 <0.000001>
2 00:00:00.000050 mkdir("/d/c", 0777) = 0 <0.000001>
"#;
    let [before, after] = trees(text);
    assert_eq!(before, ["/d/", "/d/c 0"]);
    assert_eq!(after, ["/d/", "/d/a/", "/d/b -> /d/x", "/d/c/", "/d/e 0"]);
}

#[test]
fn renames_links_and_directories_move_what_is_in_them() {
    let [before, after] = trees(
        r#"1 00:00:00.000001 open("/d/s/f", O_RDWR) = 3
1 00:00:00.000002 rename("/d/s", "/d/t") = 0
1 00:00:00.000003 open("/d/t/f", O_RDWR) = 4
1 00:00:00.000004 write(4, "x", 7) = 7
1 00:00:00.000005 link("/d/t/f", "/d/h") = 0
1 00:00:00.000006 symlink("t/f", "/d/l") = 0
1 00:00:00.000007 open("/d/l", O_RDWR|O_TRUNC) = 5
1 00:00:00.000008 write(5, "x", 9) = 9
1 00:00:00.000009 mkdir("/d/e", 0777) = 0
1 00:00:00.000010 renameat2(AT_FDCWD, "/d/e", AT_FDCWD, "/d/t", RENAME_EXCHANGE) = 0
1 00:00:00.000011 open("/d/x", O_RDWR|O_CREAT|O_EXCL) = 6
1 00:00:00.000012 rename("/d/x", "/d/h") = 0
"#,
    );
    assert_eq!(before, ["/d/", "/d/s/", "/d/s/f 0"]);
    assert_eq!(after, ["/d/", "/d/e/", "/d/e/f 9", "/d/h 0", "/d/l -> /d/t/f", "/d/t/"]);
}

#[test]
fn a_write_behind_the_end_says_nothing_of_a_file_that_was_not_there_or_whose_end_is_known() {
    let [before, after] = trees(
        r#"1 00:00:00.000001 open("/d/new", O_RDWR|O_CREAT) = 3
1 00:00:00.000002 pwrite64(3, "x", 1, 300000000) = 1
1 00:00:00.000003 pread64(3, "x", 4096, 100000) = 4096
1 00:00:00.000004 open("/d/sought", O_RDWR|O_CREAT) = 4
1 00:00:00.000005 fstat(4, {st_mode=S_IFREG|0644, st_size=0}) = 0
1 00:00:00.000006 lseek(4, 700000, SEEK_SET) = 700000
1 00:00:00.000007 write(4, "x", 1) = 1
1 00:00:00.000008 open("/d/database", O_RDWR|O_CREAT) = 5
1 00:00:00.000009 pread64(5, "x", 100, 0) = 100
1 00:00:00.000010 pwrite64(5, "x", 4096, 8192) = 4096
1 00:00:00.000011 open("/d/short", O_RDWR) = 6
1 00:00:00.000012 read(6, "x", 10) = 3
1 00:00:00.000013 pwrite64(6, "x", 1, 1000) = 1
1 00:00:00.000014 stat("/d/stat", {st_mode=S_IFREG|0644, st_size=9}) = 0
1 00:00:00.000015 open("/d/stat", O_RDWR|O_CREAT) = 7
1 00:00:00.000016 pwrite64(7, "x", 1, 5000) = 1
1 00:00:00.000017 open("/d/end", O_RDWR) = 8
1 00:00:00.000018 lseek(8, 0, SEEK_END) = 20
1 00:00:00.000019 pwrite64(8, "x", 1, 5000) = 1
"#,
    );
    assert_eq!(before, ["/d/", "/d/database 8192", "/d/end 20", "/d/short 3", "/d/stat 9"]);
    let left = ["/d/", "/d/database 12288", "/d/end 5001", "/d/new 300000001", "/d/short 1001"];
    assert_eq!(after, [&left[..], &["/d/sought 700001", "/d/stat 5001"]].concat());
}

/// O_CREAT is the importer's then.
#[test]
fn of_a_file_whose_name_was_lost_the_first_write_tells_the_size() {
    let mut recording = import(
        r#"1 00:00:00.000001 open("/d/lost", O_RDWR|O_CREAT) = 3
1 00:00:00.000002 pwrite64(3, "x", 1, 8192) = 1
"#,
    );
    recording.calls[0].flags |= RecordedCall::LOST_NAME;
    let mut tree = FileTree::default();
    for call in &recording.calls {
        tree.apply(call, &recording.texts);
    }
    assert_eq!(tree.before().get("/d/lost"), Some(&TreeEntry::File(8192)));
}

/// The link is there, and what it names is not.
#[test]
fn an_open_that_follows_no_link_opens_the_link() {
    let [before, after] = trees(
        r#"1 00:00:00.000001 symlink("none", "/d/l") = 0
1 00:00:00.000002 open("/d/l", O_PATH|O_NOFOLLOW) = 3
1 00:00:00.000003 fstat(3, {st_mode=S_IFLNK|0777, st_size=4}) = 0
1 00:00:00.000004 open("/d/l", O_RDWR|O_CREAT) = 4
1 00:00:00.000005 unlink("/d/none") = 0
1 00:00:00.000006 open("/d/l", O_PATH|O_NOFOLLOW|O_CLOEXEC) = 5
"#,
    );
    assert_eq!(
        (before, after),
        (vec!["/d/".to_owned()], vec!["/d/".to_owned(), "/d/l -> /d/none".to_owned()])
    );
}

/// What the program reads there came by a call that no replay makes.
#[test]
fn a_live_recording_without_a_file_says_that_it_was_not_there() {
    let recording = import(
        r#"1 00:00:00.000001 open("/d/new", O_RDWR|O_CREAT) = 3
1 00:00:00.000002 pread64(3, "x", 4096, 0) = 4096
"#,
    );
    let before = |source, version| {
        let header = Header { source, version, ..Header::default() };
        let mut tree = FileTree::of(&header);
        for call in &recording.calls {
            tree.apply(call, &recording.texts);
        }
        tree.before().contains_key("/d/new")
    };
    let live = [(Source::Bpf, 5), (Source::Ptrace, 4)].map(|(source, version)| before(source, version));
    let others = [(Source::Strace, 5), (Source::Mobigen, 5), (Source::Bpf, 3)]
        .map(|(source, version)| before(source, version));
    assert_eq!((live, others), ([false; 2], [true; 3]));
}
