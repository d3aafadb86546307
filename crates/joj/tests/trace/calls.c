// Preloaded into a program: keeps an account of what it hands to its files, and of what each sync has to write.
//
// A line for each sync in the file $JOJ_ACCOUNT: the call, the file's name, how many pages of 4 KiB were written since its last one.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 4096, FILES = 64 };

static struct { ino_t inode; unsigned char dirty[PAGES]; } files[FILES];

// The pages of the file behind a descriptor; its inode number is its name.
static unsigned char *pages(int descriptor) {
    struct stat found;
    if (fstat(descriptor, &found) != 0 || !S_ISREG(found.st_mode)) return NULL;
    for (int at = 0; at < FILES; at++) {
        if (files[at].inode == 0) files[at].inode = found.st_ino;
        if (files[at].inode == found.st_ino) return files[at].dirty;
    }
    abort();
}

static void wrote(int descriptor, ssize_t length, off_t from) {
    unsigned char *dirty = length > 0 ? pages(descriptor) : NULL;
    if (!dirty) return;
    if ((from + length - 1) / PAGE >= PAGES) abort();
    for (off_t page = from / PAGE; page <= (from + length - 1) / PAGE; page++) dirty[page] = 1;
}

static void cut(int descriptor, off_t length) {
    unsigned char *dirty = pages(descriptor);
    off_t kept = (length + PAGE - 1) / PAGE;
    if (dirty && kept < PAGES) memset(dirty + kept, 0, PAGES - kept);
}

static void synced(const char *call, int descriptor) {
    char link[64], name[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, name, sizeof name - 1);
    if (length < 0) abort();
    name[length] = 0;
    int count = 0;
    unsigned char *dirty = pages(descriptor);
    for (int page = 0; dirty && page < PAGES; page++) count += dirty[page];
    if (dirty) memset(dirty, 0, PAGES);
    int account = open(getenv("JOJ_ACCOUNT"), O_WRONLY | O_CREAT | O_APPEND, 0600);
    dprintf(account, "%s %s %d\n", call, dirty ? strrchr(name, '/') + 1 : ".", count);
    close(account);
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t pwrite(int descriptor, const void *data, size_t length, off_t from) {
    ssize_t done = NEXT(pwrite)(descriptor, data, length, from);
    wrote(descriptor, done, from);
    return done;
}

ssize_t pwrite64(int descriptor, const void *data, size_t length, off64_t from) {
    ssize_t done = NEXT(pwrite64)(descriptor, data, length, from);
    wrote(descriptor, done, from);
    return done;
}

int ftruncate(int descriptor, off_t length) {
    cut(descriptor, length);
    return NEXT(ftruncate)(descriptor, length);
}

int ftruncate64(int descriptor, off64_t length) {
    cut(descriptor, length);
    return NEXT(ftruncate64)(descriptor, length);
}

int fsync(int descriptor) {
    synced("fsync", descriptor);
    return NEXT(fsync)(descriptor);
}

int fdatasync(int descriptor) {
    synced("fdatasync", descriptor);
    return NEXT(fdatasync)(descriptor);
}
