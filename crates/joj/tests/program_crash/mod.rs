//! What a run of `joj crash` sees of this machine and of the runs before it.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;
use std::time::UNIX_EPOCH;

use joj_analysis::lab::program_crash::Finding;

use crate::replay::Scratch;
use crate::{only, run};

/// Says `left` where an earlier run left something outside of /data, and leaves it.
const LEAVES: &str = "for place in /. /tmp /run /dev /dev/shm /mnt; do test -e $place/left && left=\"$left $place\"; done; \
                      test $(wc -l < /proc/sysvipc/shm) = 1 || left=\"$left shm\"; \
                      test $(cat /proc/sys/kernel/hostname) = left && left=\"$left hostname\"; \
                      mount -t tmpfs none /mnt && mount -o remount,rw / && touch /left /tmp/left /run/left /dev/left /dev/shm/left /mnt/left && \
                      ipcmk -M 4096 > /dev/null && echo left > /proc/sys/kernel/hostname || exit 3; \
                      test -z \"$left\" || { echo left: $left; exit 2; }";
/// What a directory has. How many names, bytes and blocks a directory itself has, the copy in memory does not tell (docs/crash.md).
const LISTED: &str = "find . -type f -exec cat {} + ; test twice -ef again && echo one file; find . -printf '%p %y %m %U:%G %T@ %l\\n' | \
                      LC_ALL=C sort; find . -not -type d -printf '%p %n %s %b\\n' | LC_ALL=C sort; wc -l < /proc/mounts";
#[test]
fn what_a_run_leaves_outside_of_data_is_gone_before_the_next_in_the_lab() {
    let scratch = Scratch::new("crash-leaves");
    let check =
        format!("{LEAVES}; test $JOJ_LINES = 0 || test -s f || exit 1; /sbin/fsfreeze -f /data || exit 4");
    let options = ["--check", &check, "--states", "3", "--jobs", "1"];
    let Some((result, code)) =
        run(&scratch, &options, &format!("{LEAVES}; echo v > f; sync f; sync .; echo 1"))
    else {
        return;
    };
    let volume = only(&result);
    assert_eq!((volume.count(Finding::Kept), code), (volume.states.len(), Some(0)), "{:?}", volume.broken);
    assert!(volume.states.len() > 1, "no check ran behind another one");
}

/// Mounts of each kind below /data, one on top of another, a frozen one that somebody waits to write to, and one in namespaces of a process
/// that stays; and a file that is swapped to.
const LEAVES_MOUNTS: &str = "mkdir -p m n o/upper o/work o/m r s q && touch ns && mount -t tmpfs none m && mount --bind /etc n && mount -t tmpfs none m && \
                             mkdir m/deep && mount --bind s m/deep && mount -t overlay none -o lowerdir=s,upperdir=o/upper,workdir=o/work o/m && \
                             dd if=/dev/zero of=swap bs=4096 count=64 2>/dev/null && chmod 600 swap && sync swap && /sbin/mkswap swap >/dev/null && \
                             /sbin/swapon swap && unshare --mount=ns true && /sbin/mkfs.ext4 -qF /dev/ram0 && mount /dev/ram0 r && \
                             { unshare -m sh -c 'mount -t tmpfs none q && exec sleep 1000 <q >/dev/null' & /sbin/fsfreeze -f r; } && \
                             { echo x 2>/dev/null >r/x & mount -t tmpfs none r; }";

#[test]
fn what_a_run_leaves_mounted_below_data_is_gone_with_it_in_the_lab() {
    let scratch = Scratch::new("crash-mounts");
    let check = format!("test $JOJ_LINES = 0 || test -s f || exit 1; {LEAVES_MOUNTS} || exit 4");
    let options = ["--check", &check, "--states", "3", "--jobs", "1"];
    let script = format!("echo v > f; sync f; sync .; echo 1; {LEAVES_MOUNTS}");
    let Some((result, code)) = run(&scratch, &options, &script) else { return };
    let volume = only(&result);
    assert_eq!(volume.failure, None);
    assert_eq!((volume.count(Finding::Kept), code), (volume.states.len(), Some(0)), "{:?}", volume.broken);
    assert!(volume.states.len() > 1, "no check ran behind another one");
    assert_eq!(volume.run.as_ref().and_then(|run| run.exit_code), Some(0), "{:?}", volume.run);
}

/// A directory with all that is unusual, and what its list is on this machine.
fn unusual_directory(at: &Path) {
    let script = "mkdir closed shared deep deep/er && echo one > twice && ln twice again && echo old > old && ln -s old link && mkfifo fifo && \
                  touch \"$(printf 'no\\377utf8')\" && echo own > deep/own && chmod 4755 old && chmod 2771 shared && chmod 700 closed && \
                  touch -h -d '2002-01-01' link && touch -d '2001-02-03 04:05:06.789' old closed shared deep/er deep .";
    fs::create_dir_all(at).expect("a directory");
    let made = Command::new("sh").args(["-c", script]).current_dir(at).status().expect("a shell");
    assert!(made.success());
}

/// It is listed and read by the program, by the check where nothing is cut, and in each state.
#[test]
fn a_directory_of_this_machine_is_the_same_in_each_look_in_the_lab() {
    let scratch = Scratch::new("crash-unusual");
    // Not below /tmp, which is the command's own.
    let own = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("unusual-{}", std::process::id()));
    unusual_directory(&own.join("directory"));
    let listed =
        |mounts: &str| format!("cd {}/directory; {}", own.display(), LISTED.replace("/proc/mounts", mounts));
    let expected = Command::new("sh").args(["-c", &listed("/dev/null")]).output().expect("a shell").stdout;
    // The last line is of the mounts, which are the machine's.
    fs::write(own.join("expected"), &expected[..expected.len() - 2]).expect("a file");
    let look = format!(
        "({}) > $HOME/listed; head -n -1 $HOME/listed | cmp - {}/expected",
        listed("/proc/mounts"),
        own.display()
    );
    let check =
        format!("{look} || exit 2; test $JOJ_LINES = 0 || test $(cat mounts) = $(tail -n 1 $HOME/listed)");
    let options = ["--check", &check, "--states", "4", "--jobs", "1"];
    let run = run(
        &scratch,
        &options,
        &format!("{look} && tail -n 1 $HOME/listed > mounts && sync mounts . && echo same"),
    );
    fs::remove_dir_all(&own).expect("removed");
    let Some((result, code)) = run else { return };
    let volume = only(&result);
    assert_eq!((volume.count(Finding::Kept), code), (volume.states.len(), Some(0)), "{:?}", volume.broken);
    assert_eq!(volume.run.as_ref().map(|run| run.lines), Some(1), "the program saw something else");
}

/// The program reads a file, and its recording is taken again: with the same file, and with another one as long and as old.
#[test]
fn a_file_of_the_program_that_changed_since_it_was_recorded_is_named_in_the_lab() {
    let scratch = Scratch::new("crash-changed");
    // Not below /tmp, which is the command's own.
    let own = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("changed-{}", std::process::id()));
    fs::create_dir_all(&own).expect("a directory");
    // The name is no UTF-8.
    let read = own.join(OsStr::from_bytes(b"read\xff"));
    let name = own.join("read").display().to_string() + "\\xff";
    let recordings = scratch.file("kept");
    let options = ["--check", "true", "--states", "2", "--recordings", recordings.to_str().expect("text")];
    let script = format!("cat \"$(printf '{}/read\\377')\" > file; sync file; echo one", own.display());
    let mut changed = Vec::new();
    for text in ["first", "first", "other"] {
        if fs::read_to_string(&read).ok().as_deref() != Some(text) {
            fs::write(&read, text).expect("a file");
            let file = fs::File::options().write(true).open(&read).expect("a file");
            file.set_modified(UNIX_EPOCH).expect("a time");
        }
        changed
            .extend(run(&scratch, &options, &script).map(|(result, _)| only(&result).changed_files.clone()));
    }
    fs::remove_dir_all(&own).expect("removed");
    assert!(changed.is_empty() || changed == [vec![], vec![], vec![name]], "{changed:?}");
}
