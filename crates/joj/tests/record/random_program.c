// Random calls on few names, so that they meet: files, directories and links are made, moved, replaced and taken away, through paths,
// descriptors and names of descriptors; many calls fail. Children and threads do the same one after the other; some children are killed.
// A seed always makes the same calls. SEED and what <unistd.h> and its kin have are defined before.
#include <signal.h>
#include <sys/mman.h>
#include <linux/falloc.h>
static unsigned long state = SEED * 2654435761UL + 88172645463325252UL;
static unsigned below(unsigned most) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (state >> 11) % most;
}
static char room[20000];
static int open_files[6] = {-1, -1, -1, -1, -1, -1};
static const char *names[] = {"a", "b", "c", "d", "e", "old", "twin", "third", "full", "empty"};
static char *name(char *into) {
    const char *one = names[below(10)], *two = names[below(10)];
    switch (below(12)) {
    case 0: case 1: case 2: sprintf(into, "%s/%s", one, two); break;
    case 3: sprintf(into, "./%s", one); break;
    case 4: sprintf(into, "%s/../%s", one, two); break;
    case 5: if (!below(3)) { sprintf(into, "%s/", one); break; }
    // fall through
    default: sprintf(into, "%s", one);
    }
    return into;
}
static int slot(void) { return below(6); }
static void opened(int at, int file) {
    if (file < 0) return;
    if (open_files[at] >= 0) close(open_files[at]);
    open_files[at] = file;
}
static int flags(void) {
    int all = (int[]){O_RDONLY, O_WRONLY, O_RDWR, O_RDWR}[below(4)];
    if (below(2)) all |= O_CREAT;
    if (!below(4)) all |= O_EXCL & (all & O_CREAT ? -1 : 0);
    if (!below(4) && (all & 3)) all |= O_TRUNC;
    if (!below(4)) all |= O_APPEND;
    return all;
}
static void on_a_descriptor(int file) {
    struct stat status;
    struct iovec parts[2] = {{room, below(300)}, {room, below(3000)}};
    switch (below(10)) {
    case 0: case 1: if (write(file, room, below(9000)) < 0) {} break;
    case 2: if (pwrite(file, room, 1 + below(3000), below(100000)) < 0) {} break;
    case 3: if (writev(file, parts, 2) < 0) {} break;
    case 4: if (read(file, room, below(9000)) < 0) {} break;
    case 5: if (ftruncate(file, below(50000)) < 0) {} break;
    case 6: fallocate(file, (int[]){0, 1, 3}[below(3)], below(50000), 1 + below(20000)); break;
    case 7: lseek(file, below(5000), below(3)); break;
    case 8: fstat(file, &status); fdatasync(file); break;
    case 9: {
        if (fstat(file, &status) || !S_ISREG(status.st_mode) || status.st_size < 1) break;
        char *map = mmap(0, 1, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (map != MAP_FAILED) *map = 'm', munmap(map, 1);
    }
    }
}
static void step(void) {
    char one[50], two[50], path[50];
    struct stat status;
    int at = slot(), file = open_files[at];
    name(one), name(two);
    switch (below(27)) {
    case 0: case 1: case 2: opened(at, open(one, flags(), 0600)); break;
    case 3: case 4: case 5: case 6: on_a_descriptor(file); break;
    case 7: case 8: case 9: rename(one, two); break;
    case 10: syscall(SYS_renameat2, AT_FDCWD, one, AT_FDCWD, two, 1 + below(2)); break;
    case 11: case 12: if (link(one, two)) {} break;
    case 13: if (symlink(names[below(5)], two)) {} break;
    case 14: case 15: unlink(one); break;
    case 16: case 17: mkdir(one, 0700); break;
    case 18: rmdir(one); break;
    case 19: if (truncate(one, below(30000))) {} break;
    case 20: stat(one, &status), lstat(two, &status), access(one, R_OK), chmod(two, 0700); break;
    case 21:
    case 22:
        sprintf(path, below(2) ? "/dev/fd/%d" : "/proc/self/fd/%d", file);
        // Of a file without a name such a call is counted only (docs/recorded_calls.md).
        if (!fstat(file, &status) && status.st_nlink) opened(slot(), open(path, flags() & ~(O_CREAT | O_EXCL)));
        break;
    case 23:
        opened(at, open(".", O_TMPFILE | O_RDWR, 0600));
        if (open_files[at] < 0) break;
        on_a_descriptor(open_files[at]);
        sprintf(path, "/proc/self/fd/%d", open_files[at]);
        linkat(AT_FDCWD, path, AT_FDCWD, one, AT_SYMLINK_FOLLOW);
        break;
    case 24: opened(at, file < 0 ? -1 : dup(file)); break;
    case 25:
        if (file >= 0) close(file);
        open_files[at] = -1;
        break;
    case 26:
        file = open(one, O_RDONLY | O_DIRECTORY);
        if (file < 0) break;
        opened(at, openat(file, names[below(10)], flags(), 0600));
        sprintf(path, "/proc/self/fd/%d/%s", file, names[below(10)]);
        mkdir(path, 0700), unlinkat(file, names[below(10)], below(2) ? AT_REMOVEDIR : 0);
        close(file);
    }
}
static void *steps(void *count) {
    for (long left = (long)count; left > 0; left--) step();
    return 0;
}
int main(int words, char **word) {
    DO(chdir(word[1]));
    // What lies in a directory is in no recording before a call names it.
    for (int one = 0; one < 6; one++) {
        const char *before[] = {"full/a", "full/b", "full/third", "old", "twin", "e"};
        struct stat status;
        switch (below(one < 3 ? 3 : 4)) {
        case 0: access(before[one], R_OK); break;
        case 1: stat(before[one], &status); break;
        case 2: close(open(before[one], O_RDONLY));
        }
    }
    for (int round = 0; round < 25; round++) {
        steps((void *)10);
        if (!below(4)) {
            pthread_t thread;
            if (pthread_create(&thread, 0, steps, (void *)10) || pthread_join(thread, 0)) return 1;
        } else if (!below(3)) {
            int is_killed = below(2), child = fork();
            DO(child);
            if (!child) {
                steps((void *)10);
                if (is_killed) raise(SIGKILL);
                _exit(0);
            }
            DO(waitpid(child, 0, 0));
        }
    }
    return 0;
}
