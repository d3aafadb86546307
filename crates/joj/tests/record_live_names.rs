//! Goal: each recorded call is on the file that the kernel took, whatever its name, its directory and its flags.
//! Method: programs in C work in a directory. A replay of their recordings leaves the same names, kinds and sizes there.

mod record;
mod replay;

use std::path::{Path, PathBuf};

use record::same_tree::{comes_out_the_same, comes_out_the_same_from_strace, with_files_before};
use record::{methods, record_command};
use replay::{Scratch, replay, told};

#[test]
fn writes_that_append_append() {
    comes_out_the_same(
        "append",
        r#"
static char block[1000];
int main(int words, char **word) {
    DO(chdir(word[1]));
    int file, other;
    DO(file = open("one", O_WRONLY | O_CREAT, 0644));
    DO(write(file, block, 100));
    DO(other = dup(file));
    DO(fcntl(other, F_SETFL, O_APPEND));
    DO(lseek(file, 0, SEEK_SET));
    DO(write(file, block, 10));
    DO(pwrite(file, block, 20, 0));
    DO(fcntl(file, F_SETFL, 0));
    DO(pwrite(other, block, 30, 0));
    DO(lseek(other, 5, SEEK_SET));
    DO(write(other, block, 7));
    DO(open("two", O_WRONLY | O_CREAT, 0644));
    DO(file = open("two", O_WRONLY));
    struct iovec part = {block, 40};
    DO(pwritev2(file, &part, 1, 0, 0));
    DO(pwritev2(file, &part, 1, 3, RWF_APPEND));
    DO(write(file, block, 2));
    DO(pwritev2(file, &part, 1, -1, RWF_APPEND));
    DO(write(file, block, 9));
    return 0;
}
"#,
    );
}

#[test]
fn what_failed_for_the_program_alone_is_not_made() {
    comes_out_the_same(
        "failed",
        r#"#include <signal.h>
#include <sys/resource.h>
static char block[5000];
int main(int words, char **word) {
    struct rlimit few = {1000, 1000};
    int file, failed = chdir(word[1]);
    DO(file = open("one", O_WRONLY | O_CREAT, 0644));
    signal(SIGXFSZ, SIG_IGN), setrlimit(RLIMIT_FSIZE, &few);
    DO(write(file, block, 5000));
    failed += write(file, block, 10) + ftruncate(file, 2000) + open("two/", O_WRONLY | O_CREAT, 0644);
    return failed + writev(file, &(struct iovec){(void *)1, 100}, 1) != -4; }
"#,
    );
}

#[test]
fn names_follow_a_directory_that_is_renamed() {
    comes_out_the_same(
        "renamed",
        r#"
static void make(int directory, const char *name, int bytes) {
    static char block[1000];
    int file;
    DO(file = openat(directory, name, O_WRONLY | O_CREAT, 0644));
    DO(write(file, block, bytes));
    close(file);
}
static void *in_directory(void *nothing) {
    make(AT_FDCWD, "of_thread", 3);
    return nothing;
}
int main(int words, char **word) {
    int top, a, inside, gone;
    pthread_t thread;
    DO(chdir(word[1]));
    DO(top = open(".", O_RDONLY | O_DIRECTORY));
    DO(mkdir("a", 0755));
    DO(mkdir("a/b", 0755));
    DO(mkdir("ab", 0755));
    DO(a = open("a", O_RDONLY | O_DIRECTORY));
    DO(inside = open("a/b", O_RDONLY | O_DIRECTORY));
    DO(chdir("a/b"));
    DO(renameat(top, "a", top, "c"));
    make(a, "one", 1);
    make(inside, "two", 2);
    DO(pthread_create(&thread, NULL, in_directory, NULL));
    pthread_join(thread, NULL);
    make(AT_FDCWD, "../up", 4);
    DO(mkdirat(top, "a", 0755));
    make(top, "a/new", 5);
    make(a, "three", 6);
    DO(syscall(SYS_renameat2, top, "a", top, "c", 2)); /* RENAME_EXCHANGE */
    make(a, "four", 7);
    make(AT_FDCWD, "five", 8);
    make(top, "c/six", 9);
    DO(mkdirat(top, "gone", 0755));
    DO(gone = openat(top, "gone", O_RDONLY | O_DIRECTORY));
    DO(unlinkat(top, "gone", AT_REMOVEDIR));
    DO(mkdirat(top, "gone", 0755));
    if (openat(gone, "lost", O_WRONLY | O_CREAT, 0644) >= 0) return 1;
    make(top, "gone/there", 10);
    if (fork() == 0) {
        make(AT_FDCWD, "of_child", 11);
        DO(renameat(top, "a/b", top, "d"));
        make(AT_FDCWD, "of_child_too", 12);
        _exit(0);
    }
    int status;
    DO(wait(&status));
    make(AT_FDCWD, "seven", 13);
    return status;
}
"#,
    );
}

#[test]
fn what_was_made_below_a_directory_is_found_by_its_new_name() {
    comes_out_the_same(
        "made-and-renamed",
        r#"
static void make(const char *name, int bytes) {
    static char block[1000];
    int file;
    DO(file = open(name, O_WRONLY | O_CREAT | O_EXCL, 0644));
    DO(write(file, block, bytes));
    close(file);
}
int main(int words, char **word) {
    int file;
    struct stat status;
    DO(chdir(word[1]));
    DO(mkdir("tmp", 0755));
    DO(mkdir("tmp/deep", 0755));
    make("tmp/deep/f", 6);
    make("tmp/g", 7);
    DO(rename("tmp", "final"));
    DO(file = open("final/deep/f", O_RDONLY));
    DO(stat("final/g", &status));
    DO(mkdir("tmp", 0755));
    make("tmp/g", 8);
    DO(rename("tmp", "final/q"));
    DO(open("final/q/g", O_RDONLY));
    return 0;
}
"#,
    );
}

#[test]
fn names_of_a_process_with_another_root_stand_below_it() {
    comes_out_the_same(
        "root",
        r#"
static void make(const char *name, int bytes) {
    static char block[1000];
    int file;
    DO(file = open(name, O_WRONLY | O_CREAT, 0644));
    DO(write(file, block, bytes));
    close(file);
}
int main(int words, char **word) {
    int status;
    DO(chdir(word[1]));
    DO(mkdir("jail", 0755));
    DO(mkdir("jail/in", 0755));
    if (fork() == 0) {
        if (chroot("jail")) _exit(77);
        make("/in/whole", 1);
        make("jail/in/plain", 2);
        DO(chdir("/in"));
        make("../../up", 3);
        DO(symlink("/in", "link"));
        make("link/through", 4);
        DO(rename("/in", "/on"));
        if (fork() == 0) {
            make("/on/of_child", 5);
            _exit(0);
        }
        DO(wait(&status));
        _exit(status);
    }
    DO(wait(&status));
    make("outside", 6);
    return WEXITSTATUS(status);
}
"#,
    );
}

#[test]
fn names_have_the_same_bytes_whatever_they_are() {
    let source = r#"
static const char *names[] = {"Übung", "a\nb", "<x>", "\"q\"", "back\\slash", "\\303", "\\xff", "a, b", "(c", "x -> y", " ", "1<2"};
int main(int words, char **word) {
    int file, directory;
    char longest[256] = {0};
    memset(longest, 255, 255);
    DO(chdir(word[1]));
    DO(mkdir("\xff\xfe", 0755));
    DO(symlink("\xff\xfe", "link\x80"));
    DO(file = open("link\x80/\\xff", O_WRONLY | O_CREAT, 0644));
    DO(write(file, word, 5));
    DO(open(longest, O_WRONLY | O_CREAT | O_EXCL, 0644));
    DO(rename("\xff\xfe/\\xff", "\xff\xfe/\xff"));
    for (int which = 0; which < 12; which++) {
        DO(mkdir(names[which], 0755));
        DO(directory = open(names[which], O_RDONLY | O_DIRECTORY));
        DO(file = openat(directory, names[which], O_WRONLY | O_CREAT, 0644));
        DO(write(file, word, which));
        DO(chdir(names[which]));
        DO(file = openat(AT_FDCWD, "below", O_WRONLY | O_CREAT, 0644));
        DO(mkdirat(directory, "taken", 0755));
        DO(unlinkat(directory, "taken", AT_REMOVEDIR));
        DO(fsync(file));
        DO(chdir(".."));
    }
    return 0;
}
"#;
    comes_out_the_same("bytes", source);
    comes_out_the_same_from_strace("bytes", source);
}

#[test]
fn a_thread_that_unshares_its_descriptors_closes_its_own() {
    comes_out_the_same(
        "unshare",
        r#"
static char block[1000];
static int one, two;
static pthread_barrier_t turn;
static void *apart(void *way) {
    if (way) {
        DO(syscall(SYS_close_range, one, one, 2)); /* CLOSE_RANGE_UNSHARE */
    } else {
        DO(unshare(CLONE_FILES | CLONE_FS));
        DO(close(two));
        DO(chdir("of_thread"));
    }
    int file;
    DO(file = open(way ? "b" : "a", O_WRONLY | O_CREAT, 0644));
    DO(write(file, block, 5));
    pthread_barrier_wait(&turn);
    pthread_barrier_wait(&turn);
    DO(write(file, block, 6));
    return NULL;
}
int main(int words, char **word) {
    DO(chdir(word[1]));
    DO(mkdir("of_thread", 0755));
    DO(one = open("one", O_WRONLY | O_CREAT, 0644));
    DO(two = open("two", O_WRONLY | O_CREAT, 0644));
    for (long way = 0; way < 2; way++) {
        pthread_t thread;
        int other;
        pthread_barrier_init(&turn, NULL, 2);
        if (pthread_create(&thread, NULL, apart, (void *)way)) return 1;
        pthread_barrier_wait(&turn);
        DO(write(one, block, 10));
        DO(write(two, block, 20));
        DO(other = open(way ? "c" : "d", O_WRONLY | O_CREAT, 0644));
        DO(write(other, block, 7));
        pthread_barrier_wait(&turn);
        pthread_join(thread, NULL);
        DO(write(other, block, 8));
        DO(close(other));
    }
    DO(write(one, block, 30));
    DO(close(one));
    return 0;
}
"#,
    );
}

#[test]
fn names_through_links_are_those_to_which_they_lead() {
    let prepare = |place: &Path| {
        std::fs::create_dir_all(place.join("real/sub")).expect("directories");
        std::fs::write(place.join("real/old"), [0; 99]).expect("a file");
        for (target, link) in [("real", "before"), ("before/sub", "deep"), ("real/old", "file")] {
            std::os::unix::fs::symlink(target, place.join(link)).expect("a link");
        }
    };
    with_files_before(
        "links",
        prepare,
        r#"
static void make(int directory, const char *name, int bytes) {
    static char block[1000];
    int file;
    DO(file = openat(directory, name, O_WRONLY | O_CREAT, 0644));
    DO(write(file, block, bytes));
    DO(close(file));
}
int main(int words, char **word) {
    char whole[5000];
    struct stat status;
    int directory;
    DO(chdir(word[1]));
    make(AT_FDCWD, "before/one", 1);
    make(AT_FDCWD, "deep/../two", 2);
    DO(rename("before/one", "deep/three"));
    make(AT_FDCWD, "file", 200);
    DO(stat("before/sub/three", &status));
    if (status.st_size != 1) return 1;
    DO(symlink("real/sub", "made"));
    make(AT_FDCWD, "made/four", 4);
    make(AT_FDCWD, "made/../five", 5);
    snprintf(whole, sizeof whole, "%s/made", word[1]);
    DO(symlink(whole, "whole"));
    make(AT_FDCWD, "whole/six", 6);
    DO(symlink("made/new", "dangling"));
    make(AT_FDCWD, "dangling", 7);
    DO(mkdir("links", 0755));
    DO(symlink("../real", "links/up"));
    DO(rename("links", "moved"));
    make(AT_FDCWD, "moved/up/eight", 8);
    DO(link("moved/up", "up"));
    if (open("up/x", O_RDONLY) >= 0) return 1;
    DO(unlink("up"));
    DO(directory = open("moved/up", O_RDONLY | O_DIRECTORY));
    make(directory, "sub/nine", 9);
    DO(symlink("real", "other"));
    DO(rename("other", "made"));
    make(AT_FDCWD, "made/ten", 10);
    DO(chdir("moved/up/sub"));
    make(AT_FDCWD, "../eleven", 11);
    DO(truncate("../../made/ten", 3));
    DO(lstat("../../whole", &status));
    DO(unlink("../../whole"));
    DO(mkdir("../../whole", 0755));
    make(AT_FDCWD, "../../whole/twelve", 12);
    return 0;
}
"#,
    );
}

#[test]
fn a_directory_may_be_the_root_and_an_open_file_may_get_a_name() {
    comes_out_the_same(
        "root",
        r#"
#include <linux/openat2.h>
static char block[1000];
static int in(int directory, const char *name, int flags, int resolve) {
    struct open_how how = {.flags = flags, .mode = flags & O_CREAT ? 0644 : 0, .resolve = resolve};
    return syscall(SYS_openat2, directory, name, &how, sizeof how);
}
int main(int words, char **word) {
    int directory, file;
    char name[100];
    DO(chdir(word[1]));
    DO(mkdir("root", 0755));
    DO(mkdir("root/sub", 0755));
    DO(symlink("/sub", "root/link"));
    DO(directory = open("root", O_RDONLY | O_DIRECTORY));
    if ((file = in(directory, "/../sub/../one", O_WRONLY | O_CREAT, RESOLVE_IN_ROOT)) < 0) return errno == ENOSYS ? 77 : 1;
    DO(write(file, block, 1));
    DO(file = in(directory, "link/two", O_RDWR | O_CREAT, RESOLVE_IN_ROOT));
    DO(write(file, block, 2));
    DO(file = in(AT_FDCWD, "three", O_WRONLY | O_CREAT | O_APPEND, 0));
    DO(pwrite(file, block, 3, 500));
    if ((file = open(".", O_WRONLY | O_TMPFILE, 0644)) < 0) return 77;
    DO(write(file, block, 4));
    snprintf(name, sizeof name, "/proc/self/fd/%d", file);
    DO(linkat(AT_FDCWD, name, directory, "four", AT_SYMLINK_FOLLOW));
    DO(write(file, block, 40));
    DO(file = open("root", O_RDWR | O_TMPFILE, 0644));
    DO(write(file, block, 5));
    if (linkat(file, "", AT_FDCWD, "five", AT_EMPTY_PATH) < 0 && errno != ENOENT) return 1;
    return 0;
}
"#,
    );
}

/// A directory in memory, on a filesystem of its own, that goes.
struct InMemory(PathBuf);

impl Drop for InMemory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What a filesystem has besides changes what it writes: the files of another one are not put next to those that a program changes.
#[test]
fn files_of_a_filesystem_that_is_only_read_lie_apart_in_a_replay() {
    use std::os::unix::fs::MetadataExt;
    let scratch = Scratch::new("live-names-apart");
    let other = InMemory(Path::new("/dev/shm").join(format!("joj-live-names-apart-{}", std::process::id())));
    if std::fs::create_dir(&other.0).is_err() {
        eprintln!("skipped: there is no /dev/shm");
        return;
    }
    let device = |place: &Path| std::fs::metadata(place).expect("it is there").dev();
    if device(&other.0) == device(scratch.as_ref()) {
        eprintln!("skipped: the temporary directory is on the same filesystem as /dev/shm");
        return;
    }
    std::fs::write(other.0.join("read"), [1; 5000]).expect("a file");
    let place = scratch.file("place");
    std::fs::create_dir(&place).expect("a directory");
    let copy = "cat \"$1/read\" > copy; cat \"$1/missing\" 2> /dev/null; mv copy copied";
    let both = "echo more >> \"$1/read\"";
    for method in methods() {
        // Where both are changed they lie together.
        for (script, apart) in [(copy.to_owned(), true), (format!("{copy}; {both}"), false)] {
            let script = format!("cd \"$0\"; {script}");
            let recording = scratch.file(&format!("{method}.joj"));
            let command: [&dyn AsRef<std::ffi::OsStr>; 5] = [&"/bin/sh", &"-c", &script, &place, &other.0];
            let (code, said) = told(&record_command(method, &recording, &command));
            assert_eq!(code, Some(0), "{method}: {said}");
            let replayed = replay(&recording, scratch.as_ref(), &["--order", "fast", "--check"]);
            assert_eq!(replayed["differences"], serde_json::json!([]), "{method}: {replayed}");
            assert_eq!(replayed["files_apart"].as_u64().expect("a count") > 0, apart, "{method}: {replayed}");
            let kinds = replayed["by_call"].as_object().expect("calls");
            assert!(kinds.values().all(|kind| kind["differ"] == 0), "{method}: {replayed:#}");
        }
    }
}
