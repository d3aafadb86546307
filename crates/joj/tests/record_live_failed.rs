//! Goal: a call that failed changes nothing in a replay either, whatever it was that made it fail.
//! Method: programs in C make such calls in a directory. A replay of their recordings leaves the same names, kinds and sizes there, and no
//! call that it makes comes out differently.

mod record;
mod replay;

use std::path::Path;

use record::same_tree::{comes_out_the_same, comes_out_the_same_from_strace, with_files_before};

/// The kernel wants a directory where `/.`, `/..` or a last slash stands behind a name. A recording has names without them.
const SHORTENED: &str = r#"
int main(int words, char **word) {
    struct stat status;
    int file;
    DO(chdir(word[1]));
    DO(file = open("c", O_RDWR | O_CREAT, 0644));
    DO(write(file, "12345", 5));
    DO(mkdir("m", 0755));
    DO(symlink("m", "lm"));
    DO(symlink("gone", "lg"));
    DO(symlink("missing/../c", "lc"));
    FAILS(open("missing/../new", O_RDWR | O_CREAT, 0644), ENOENT);
    FAILS(open("lc", O_RDWR | O_TRUNC), ENOENT);
    FAILS(rename("missing/../c", "d"), ENOENT);
    FAILS(rename("c", "missing/../d"), ENOENT);
    FAILS(rename("c", "c/../d"), ENOTDIR);
    FAILS(link("c", "missing/../d"), ENOENT);
    FAILS(unlink("missing/../c"), ENOENT);
    FAILS(stat("missing/../c", &status), ENOENT);
    FAILS(access("missing/../c", F_OK), ENOENT);
    FAILS(truncate("c/../c", 0), ENOTDIR);
    FAILS(mkdir("c/../n", 0755), ENOTDIR);
    FAILS(symlink("x", "c/./l"), ENOTDIR);
    FAILS(open("new/", O_RDWR | O_CREAT, 0644), EISDIR);
    FAILS(stat("c/", &status), ENOTDIR);
    FAILS(lstat("c/", &status), ENOTDIR);
    FAILS(truncate("c/", 0), ENOTDIR);
    FAILS(unlink("c/"), ENOTDIR);
    FAILS(rename("c/", "d"), ENOTDIR);
    FAILS(rename("c", "d/"), ENOTDIR);
    FAILS(symlink("c", "s/"), ENOENT);
    FAILS(link("c/", "e"), ENOTDIR);
    FAILS(rmdir("m/."), EINVAL);
    FAILS(rename("m/.", "n"), EBUSY);
    FAILS(mkdir("k/.", 0755), ENOENT);
    FAILS(rmdir("lm/"), ENOTDIR);
    FAILS(rename("lm/", "lq"), ENOTDIR);
    FAILS(mkdir("lg/", 0755), EEXIST);
    FAILS(rmdir("m/.."), ENOTEMPTY);
    DO(mkdir("m/sub/", 0755));
    DO(mkdir("m/../other", 0755));
    DO(rename("m/", "moved/"));
    DO(truncate("moved/./../moved/../c", 3));
    return 0;
}
"#;

#[test]
fn what_failed_at_a_name_that_asks_for_a_directory_is_not_made() {
    comes_out_the_same("shortened", SHORTENED);
    comes_out_the_same_from_strace("shortened", SHORTENED);
}

/// `f`, `g` and the like have as many bytes as their place in the alphabet says.
fn files(place: &Path) {
    for (name, bytes) in
        [("f", 6), ("g", 7), ("h", 8), ("i", 9), ("j", 10), ("k", 11), ("l", 12), ("n", 14), ("o", 15)]
    {
        std::fs::write(place.join(name), vec![b'a'; bytes]).expect("a file");
    }
    for name in ["d", "e", "full"] {
        std::fs::create_dir(place.join(name)).expect("a directory");
    }
    std::fs::write(place.join("full/file"), "1").expect("a file");
    for (link, target) in [("a", "b"), ("b", "a")] {
        std::os::unix::fs::symlink(target, place.join(link)).expect("a link");
    }
}

/// What is in the way is there in the replay, or the call is not made.
#[test]
fn what_failed_because_of_what_was_there_is_not_made() {
    with_files_before(
        "in-the-way",
        files,
        r#"
int main(int words, char **word) {
    struct stat status;
    int file;
    DO(chdir(word[1]));
    FAILS(symlink("x", "f"), EEXIST);
    FAILS(link("f", "g"), EEXIST);
    DO(file = open("f", O_WRONLY | O_APPEND));
    DO(write(file, "1", 1));
    FAILS(syscall(SYS_renameat2, AT_FDCWD, "g", AT_FDCWD, "h", 1), EEXIST);
    FAILS(rename("d", "i"), ENOTDIR);
    FAILS(rmdir("j"), ENOTDIR);
    FAILS(mkdir("j", 0755), EEXIST);
    FAILS(open("k/x", O_RDWR | O_CREAT, 0644), ENOTDIR);
    FAILS(stat("k/x", &status), ENOTDIR);
    FAILS(mkdir("k/y", 0755), ENOTDIR);
    FAILS(open("a", O_RDWR | O_CREAT, 0644), ELOOP);
    FAILS(open("a", O_RDWR | O_NOFOLLOW), ELOOP);
    FAILS(open("l", O_RDWR | O_CREAT | O_EXCL, 0644), EEXIST);
    FAILS(mkdir("e", 0755), EEXIST);
    FAILS(mkdir("o", 0755), EEXIST);
    DO(unlink("o"));
    FAILS(rename("n", "missing/n"), ENOENT);
    DO(file = open("n", O_WRONLY | O_APPEND));
    DO(write(file, "12", 2));
    FAILS(rmdir("full"), ENOTEMPTY);
    DO(file = open("made", O_RDWR | O_CREAT, 0644));
    DO(write(file, "123", 3));
    FAILS(mkdir("made", 0755), EEXIST);
    FAILS(symlink("f", "made"), EEXIST);
    FAILS(openat(file, "x", O_RDWR | O_CREAT, 0644), ENOTDIR);
    if ((file = open(".", O_RDWR | O_TMPFILE, 0644)) >= 0)
        FAILS(openat(file, "y", O_RDWR | O_CREAT, 0644), ENOTDIR);
    const char *seen[] = {"d", "i", "k", "full", "full/file"};
    for (int which = 0; which < 5; which++) DO(stat(seen[which], &status));
    return 0;
}
"#,
    );
}

/// In strace's text nobody says what is in the way: the calls are not made where the text's other calls say that they would work.
#[test]
fn what_failed_at_files_that_the_program_made_fails_again() {
    let source = r#"
int main(int words, char **word) {
    struct stat status;
    int file;
    DO(chdir(word[1]));
    DO(file = open("c", O_RDWR | O_CREAT, 0644));
    FAILS(mkdir("c", 0755), EEXIST);
    FAILS(symlink("c", "c"), EEXIST);
    FAILS(stat("c/x", &status), ENOTDIR);
    FAILS(openat(file, "x", O_RDWR | O_CREAT, 0644), ENOTDIR);
    FAILS(rmdir("c"), ENOTDIR);
    DO(mkdir("d", 0755));
    FAILS(rename("d", "c"), ENOTDIR);
    FAILS(link("c", "d"), EEXIST);
    DO(symlink("round", "round"));
    FAILS(open("round", O_RDWR | O_CREAT, 0644), ELOOP);
    DO(write(file, "12345", 5));
    DO(open("c", O_RDONLY | O_TRUNC));
    DO(symlink("c", "lc"));
    FAILS(open("lc", O_RDONLY | O_NOFOLLOW), ELOOP);
    DO(open("lc", O_RDONLY | O_NOFOLLOW | O_PATH | O_TRUNC));
    DO(file = open("r", O_RDWR | O_CREAT, 0644));
    DO(write(file, "1234", 4));
    DO(lseek(file, 0, SEEK_SET));
    FAILS(syscall(SYS_read, file, 1, 4), EFAULT);
    DO(write(file, "12345", 5));
    DO(file = open("d", O_RDONLY));
    FAILS(read(file, &status, 4), EISDIR);
    return 0;
}
"#;
    comes_out_the_same("made", source);
    comes_out_the_same_from_strace("made", source);
}
