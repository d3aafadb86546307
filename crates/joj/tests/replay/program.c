/* What the tests of replays record: every call that a recording has, by two processes and three threads, in the directory that it
 * is given. It writes a secret, and reads one that is there before. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static sem_t renamed;
static char block[4096];

#define CHECK(what) if ((what) < 0) { perror(#what); exit(1); }

/* Many writes, then the rename: whoever opens the new name too early finds nothing. */
static void *writer(void *nothing) {
    int file;
    CHECK(file = open("half-done", O_RDWR | O_CREAT | O_EXCL, 0644));
    for (int i = 0; i < 300; i++) CHECK(pwrite(file, block, sizeof block, (off_t)i * 4096));
    CHECK(fdatasync(file));
    CHECK(rename("half-done", "done"));
    sem_post(&renamed);
    CHECK(close(file));
    return nothing;
}

static void *reader(void *nothing) {
    int file;
    sem_wait(&renamed);
    CHECK(file = open("done", O_RDONLY));
    CHECK(pread(file, block, 100, 299 * 4096));
    CHECK(close(file));
    return nothing;
}

static void names(void) {
    struct stat status;
    CHECK(mkdir("folder", 0755));
    CHECK(link("done", "folder/link"));
    CHECK(symlink("../done", "folder/symlink"));
    CHECK(stat("folder/symlink", &status));
    CHECK(lstat("folder/symlink", &status));
    CHECK(access("folder", R_OK));
    CHECK(truncate("folder/symlink", 5000));
    struct timespec times[2] = {{1, 0}, {2, 0}};
    CHECK(chmod("folder/link", 0600));
    CHECK(chown("folder/symlink", getuid(), getgid()));
    CHECK(lchown("folder/symlink", -1, -1));
    CHECK(utimensat(AT_FDCWD, "folder/symlink", times, AT_SYMLINK_NOFOLLOW));
    CHECK(unlink("folder/link"));
    CHECK(mkdir("gone", 0755));
    CHECK(rmdir("gone"));
    CHECK(renameat2(AT_FDCWD, "folder/symlink", AT_FDCWD, "folder/moved", RENAME_NOREPLACE));
    if (open("none", O_RDONLY) >= 0 || access("none", F_OK) == 0) exit(1);
    int folder;
    CHECK(folder = open("folder", O_RDONLY | O_DIRECTORY));
    CHECK(fsync(folder));
    CHECK(close(folder));
}

static void descriptors(void) {
    int file, copy;
    struct stat status;
    struct iovec parts[2] = {{block, 24}, {block, 4096}};
    CHECK(file = open("calls", O_RDWR | O_CREAT, 0644));
    CHECK(write(file, block, 4096));
    CHECK(writev(file, parts, 2));
    CHECK(pwritev(file, parts, 2, 100000));
    CHECK(pwritev2(file, parts, 1, 200000, RWF_DSYNC));
    CHECK(lseek(file, 10, SEEK_SET));
    CHECK(read(file, block, 1000));
    CHECK(readv(file, parts, 2));
    CHECK(preadv(file, parts, 2, 50));
    CHECK(ftruncate(file, 150000));
    CHECK(fallocate(file, FALLOC_FL_KEEP_SIZE, 0, 1 << 20));
    CHECK(fallocate(file, 0, 0, 160000));
    CHECK(sync_file_range(file, 0, 4096, SYNC_FILE_RANGE_WRITE));
    CHECK(fstat(file, &status));
    CHECK(fchmod(file, 0640));
    CHECK(fchown(file, getuid(), getgid()));
    CHECK(futimens(file, NULL));
    CHECK(posix_fadvise(file, 0, 8192, POSIX_FADV_DONTNEED));
    CHECK(readahead(file, 0, 4096));
    CHECK(copy = dup(file));
    CHECK(lseek(copy, 0, SEEK_END));
    CHECK(write(file, block, 7));
    CHECK(close(file));
    CHECK(file = fcntl(copy, F_DUPFD, 50));
    CHECK(fsync(file));
    CHECK(close(copy));
    /* A child writes through what it inherited, and is gone. */
    pid_t child = fork();
    if (child == 0) {
        CHECK(write(file, block, 9));
        CHECK(syncfs(file));
        _exit(0);
    }
    waitpid(child, NULL, 0);
    CHECK(write(file, block, 11));
    CHECK(close(file));
}

int main(int words, char **word) {
    pthread_t threads[2];
    int old;
    struct stat status;
    if (words != 2) return 2;
    CHECK(chdir(word[1]));
    for (size_t i = 0; i < sizeof block; i++) block[i] = "PLANTED-SECRET "[i % 15];
    CHECK(old = open("old", O_RDWR | O_APPEND));
    CHECK(pread(old, block, sizeof block, 3 * 4096));
    CHECK(fstat(old, &status));
    CHECK(write(old, block, 100));
    CHECK(close(old));
    sem_init(&renamed, 0, 0);
    pthread_create(&threads[1], NULL, reader, NULL);
    pthread_create(&threads[0], NULL, writer, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    names();
    descriptors();
    return 0;
}
