/* libwaldio-preload.so: waldio in a program that links the system's SQLite, without a line of code.
 *
 *     LD_PRELOAD=/usr/lib/waldio/libwaldio-preload.so program
 *
 * The loader resolves the program's sqlite3_open, sqlite3_open_v2 and sqlite3_open16 here. The first call loads libwaldio.so, which
 * stands beside this file, into the SQLite that the caller would have reached, by a connection in memory; then every call goes on
 * to that SQLite. Nothing happens in programs that never call one of these. Not before the first call either, so sqlite3_config
 * works as ever. After sqlite3_shutdown the next call loads it again: SQLite has its own VFS in front then.
 *
 * Where waldio is not active this says so on standard error, and the program goes on with SQLite as it is:
 *
 *     - SQLite refused libwaldio.so: too old, no load_extension, a wrong WALDIO_ variable;
 *     - a database was opened past it (vfs=unix, waldio=off), or had a rollback journal when it was closed;
 *     - somebody opens a NAME-wal as SQLite does, and is not the SQLite that has waldio: a copy inside the program.
 *
 * PHP loads its extensions with RTLD_DEEPBIND: they and the SQLite that they need see themselves first, and never come here. So where
 * a library is loaded in this way and has a SQLite below it, that gets waldio at once. What was opened past it, or has a rollback
 * journal, is not noticed there.
 *
 * WALDIO_PRELOAD=verbose says as well where it is loaded. A program that is linked statically knows no LD_PRELOAD: no word then.
 *
 * Tables of functions that SQLite hands to extensions lead here, too, also waldio's own: hence the recursive lock. Only one SQLite
 * in a process gets waldio, for a call of waldio's own could not be told from one for another SQLite. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct sqlite3 sqlite3;
enum { OK = 0, ERROR = 1, CONTROL_PRAGMA = 14, OPEN_READWRITE = 2, OPEN_CREATE = 4, ALLOW_LOADING = 1005, WORDS_MAX = 8 };

#define EXPORTED __attribute__((visibility("default")))
#define CALLER __builtin_return_address(0)

static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static enum { NOT_YET, LOADING, LOADED, REFUSED } state;
/* Where the SQLite that has waldio, or refused it, begins in memory. */
static void *chosen;
static char library[PATH_MAX];
static int words_said;

/* One line, by one write. */
static void say(const char *format, ...) {
    char line[1024] = "waldio-preload: ";
    size_t used = strlen(line), room = sizeof line - used - 1;
    va_list values;
    va_start(values, format);
    int length = vsnprintf(line + used, room, format, values);
    va_end(values);
    if (length < 0) return;
    used += (size_t)length < room ? (size_t)length : room - 1;
    line[used++] = '\n';
    ssize_t written = write(STDERR_FILENO, line, used);
    (void)written;
}

/* That waldio is not active somewhere; a program that opens a thousand such databases need not read it a thousand times. */
static void not_active(const char *where, const char *why) {
    int number = __atomic_add_fetch(&words_said, 1, __ATOMIC_RELAXED);
    if (number > WORDS_MAX) return;
    say("waldio is not active%s%s: %s%s", where ? " on " : "", where ? where : "", why, number == WORDS_MAX ? " (no more of these)" : "");
}

/* Where the object that has this address begins in memory. */
static void *base_of(const void *address) {
    Dl_info info;
    return address != NULL && dladdr(address, &info) ? info.dli_fbase : NULL;
}

static void *in_object(const char *file, const char *name) {
    void *handle = dlopen(file, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == NULL) return NULL;
    void *found = dlsym(handle, name);
    dlclose(handle);
    return found;
}

/* SQLite's function, as the loader would have found it for the caller without us: among what the program itself was linked with,
 * then among what the caller's object needs. Its other calls of SQLite go there, too. */
static void *sqlites(const char *name, const void *caller) {
    Dl_info info;
    void *here = base_of((const void *)&sqlites), *found = dlsym(RTLD_NEXT, name);
    /* The program itself may have a bare name, for which dlopen would look elsewhere. */
    if (found == NULL && caller != NULL && dladdr(caller, &info) && strchr(info.dli_fname, '/') != NULL) {
        found = in_object(info.dli_fname, name);
        if (found != NULL && base_of(found) == here) found = NULL;
    }
    if (found == NULL && chosen != NULL && dladdr(chosen, &info)) found = in_object(info.dli_fname, name);
    if (found == NULL) found = in_object("libsqlite3.so.0", name);
    return found;
}

/* libwaldio.so beside this file, as a whole path: a program may change its directory before it opens a database. */
__attribute__((constructor)) static void find_library(void) {
    Dl_info info;
    char whole[PATH_MAX];
    if (!dladdr((const void *)&find_library, &info) || realpath(info.dli_fname, whole) == NULL) return;
    char *end = strrchr(whole, '/');
    if (end == NULL) return;
    *end = 0;
    int length = snprintf(library, sizeof library, "%s/libwaldio.so", whole);
    if (length < 0 || (size_t)length >= sizeof library) library[0] = 0;
}

/* Loads waldio by a connection in memory; why not, as a text of malloc's, or NULL. */
static char *load(const void *caller) {
    int (*open)(const char *, sqlite3 **, int, const char *) = sqlites("sqlite3_open_v2", caller);
    int (*close)(sqlite3 *) = sqlites("sqlite3_close", caller);
    int (*configure)(sqlite3 *, int, ...) = sqlites("sqlite3_db_config", caller);
    int (*extend)(sqlite3 *, const char *, const char *, char **) = sqlites("sqlite3_load_extension", caller);
    void (*give_back)(void *) = sqlites("sqlite3_free", caller);
    if (open == NULL || close == NULL || configure == NULL || extend == NULL || give_back == NULL)
        return strdup("this SQLite cannot load extensions");
    sqlite3 *memory = NULL;
    char *message = NULL, *why = NULL;
    if (open(":memory:", &memory, OPEN_READWRITE | OPEN_CREATE, NULL) != OK)
        why = strdup("SQLite opens no database in memory");
    else if (configure(memory, ALLOW_LOADING, 1, (int *)NULL) != OK)
        why = strdup("this SQLite cannot load extensions");
    else if (extend(memory, library, "sqlite3_waldio_init", &message) != OK)
        why = strdup(message != NULL ? message : "SQLite does not load libwaldio.so");
    if (message != NULL) give_back(message);
    close(memory);
    return why;
}

/* Has waldio in the SQLite of this function before the caller opens anything. */
static void prepare(const void *function, const void *caller) {
    void *base = base_of(function);
    pthread_mutex_lock(&lock);
    if (state == NOT_YET) {
        chosen = base;
        state = LOADING;
        char *why = load(caller);
        state = why == NULL ? LOADED : REFUSED;
        const char *asked = getenv("WALDIO_PRELOAD");
        Dl_info info = {0};
        dladdr(function, &info);
        if (why != NULL)
            not_active(NULL, why);
        else if (asked != NULL && strcmp(asked, "verbose") == 0)
            say("waldio is loaded into %s", info.dli_fname);
        free(why);
    } else if (state != LOADING && base != chosen) {
        not_active(NULL, "this program has a second SQLite, and only the first one gets waldio");
    }
    pthread_mutex_unlock(&lock);
}

/* Says so where a database in a file goes past waldio (when it is opened) or has a rollback journal (when it is closed). */
static void look_at(sqlite3 *db, const void *caller, int closes) {
    if (db == NULL || state != LOADED) return;
    const char *(*name)(sqlite3 *, const char *) = sqlites("sqlite3_db_filename", caller);
    int (*control)(sqlite3 *, const char *, int, void *) = sqlites("sqlite3_file_control", caller);
    void (*give_back)(void *) = sqlites("sqlite3_free", caller);
    if (name == NULL || control == NULL || give_back == NULL || base_of((const void *)name) != chosen) return;
    const char *file = name(db, "main");
    if (file == NULL || file[0] == 0) return;
    /* What SQLite itself does for PRAGMA waldio, but for a statement: no lock, no look at the file. */
    char *arguments[4] = {NULL, (char *)"waldio", NULL, NULL};
    if (control(db, "main", CONTROL_PRAGMA, arguments) != OK) {
        if (!closes) not_active(file, "it was opened with another VFS, or with waldio=off");
    } else if (closes && arguments[0] != NULL && strncmp(arguments[0], "inactive: ", 10) == 0) {
        not_active(file, arguments[0] + 10);
    }
    if (arguments[0] != NULL) give_back(arguments[0]);
}

EXPORTED int sqlite3_open_v2(const char *name, sqlite3 **db, int flags, const char *vfs) {
    int (*next)(const char *, sqlite3 **, int, const char *) = sqlites(__func__, CALLER);
    if (next == NULL) return ERROR;
    prepare((const void *)next, CALLER);
    int code = next(name, db, flags, vfs);
    if (code == OK) look_at(*db, CALLER, 0);
    return code;
}

EXPORTED int sqlite3_open(const char *name, sqlite3 **db) {
    int (*next)(const char *, sqlite3 **) = sqlites(__func__, CALLER);
    if (next == NULL) return ERROR;
    prepare((const void *)next, CALLER);
    int code = next(name, db);
    if (code == OK) look_at(*db, CALLER, 0);
    return code;
}

EXPORTED int sqlite3_open16(const void *name, sqlite3 **db) {
    int (*next)(const void *, sqlite3 **) = sqlites(__func__, CALLER);
    if (next == NULL) return ERROR;
    prepare((const void *)next, CALLER);
    int code = next(name, db);
    if (code == OK) look_at(*db, CALLER, 0);
    return code;
}

EXPORTED int sqlite3_close(sqlite3 *db) {
    int (*next)(sqlite3 *) = sqlites(__func__, CALLER);
    if (next == NULL) return ERROR;
    look_at(db, CALLER, 1);
    return next(db);
}

EXPORTED int sqlite3_close_v2(sqlite3 *db) {
    int (*next)(sqlite3 *) = sqlites(__func__, CALLER);
    if (next == NULL) return ERROR;
    look_at(db, CALLER, 1);
    return next(db);
}

EXPORTED int sqlite3_shutdown(void) {
    int (*next)(void) = sqlites(__func__, CALLER);
    if (next == NULL) return ERROR;
    int code = next();
    pthread_mutex_lock(&lock);
    if (code == OK && state == LOADED && base_of((const void *)next) == chosen) state = NOT_YET;
    pthread_mutex_unlock(&lock);
    return code;
}

/* Somebody opens a log as SQLite does: the SQLite that has waldio, or one that we cannot reach. */
static void watch(const char *name, int flags, const void *caller) {
    size_t length = name != NULL && (flags & O_CREAT) != 0 && (flags & O_ACCMODE) == O_RDWR ? strlen(name) : 0;
    if (length < 5 || memcmp(name + length - 4, "-wal", 4) != 0) return;
    void *base = base_of(caller);
    /* Where that SQLite refused waldio, this was said. waldio opens logs past the C library. */
    if (base != NULL && base == chosen) return;
    not_active(name, "it is written by a SQLite that waldio cannot reach, such as one inside the program");
}

static mode_t mode_of(int flags, va_list values) {
    return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(values, mode_t) : 0;
}

#define OPENS(function)                                                                                                            \
    EXPORTED int function(const char *name, int flags, ...) {                                                                      \
        static int (*next)(const char *, int, ...);                                                                                \
        va_list values;                                                                                                            \
        va_start(values, flags);                                                                                                   \
        mode_t mode = mode_of(flags, values);                                                                                      \
        va_end(values);                                                                                                            \
        int (*known)(const char *, int, ...) = __atomic_load_n(&next, __ATOMIC_RELAXED);                                           \
        if (known == NULL) {                                                                                                       \
            known = dlsym(RTLD_NEXT, #function);                                                                                   \
            __atomic_store_n(&next, known, __ATOMIC_RELAXED);                                                                      \
        }                                                                                                                          \
        watch(name, flags, CALLER);                                                                                                \
        return known(name, flags, mode);                                                                                           \
    }

OPENS(open)
OPENS(open64)

/* The caller's own address decides where a bare name is looked for: hence a jump (which -O2 makes of the last line), no call. */
EXPORTED void *dlopen(const char *name, int flags) {
    static void *(*next)(const char *, int);
    void *(*known)(const char *, int) = __atomic_load_n(&next, __ATOMIC_RELAXED);
    if (known == NULL) {
        known = dlsym(RTLD_NEXT, "dlopen");
        __atomic_store_n(&next, known, __ATOMIC_RELAXED);
    }
    if ((flags & RTLD_DEEPBIND) != 0 && name != NULL && strchr(name, '/') != NULL) {
        void *handle = known(name, flags);
        void *function = handle != NULL ? dlsym(handle, "sqlite3_open_v2") : NULL;
        if (function != NULL && base_of(function) != base_of((const void *)&sqlites)) prepare(function, function);
        return handle;
    }
    return known(name, flags);
}
