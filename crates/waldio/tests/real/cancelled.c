/* cancelled DATABASE own|none|asynchronous [WALDIO]: threads that commit, and wait for each other, are cancelled again and again.
 * own: they have a cancellation point of their own between statements; none: they have none; asynchronous: they have none, and
 * asked to be cancelled at any instruction before they first called SQLite.
 * Prints the cancelled threads, acknowledged rows that are missing, and what failed. */

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 4, CANCELLATIONS = 200, OK = 0 };

typedef struct sqlite3 sqlite3;
int sqlite3_open(const char *name, sqlite3 **out);
int sqlite3_busy_timeout(sqlite3 *db, int milliseconds);
int sqlite3_enable_load_extension(sqlite3 *db, int on);
int sqlite3_load_extension(sqlite3 *db, const char *file, const char *entry, char **why);
int sqlite3_exec(sqlite3 *db, const char *sql, int (*row)(void *, int, char **, char **), void *with, char **why);

static const char *database;
static int own_point, asynchronous;
static atomic_int acknowledged, failed;

struct writer {
    pthread_t thread;
    sqlite3 *db;
};

static int run(sqlite3 *db, const char *sql)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL);
}

/* Between its statements it may end, or where the next one begins: what a COMMIT returned is counted. */
static void *write_rows(void *of)
{
    struct writer *writer = of;
    if (asynchronous) {
        int before;
        /* Not in SQLite's own code, which must not be left so; waldio is to end it before that may happen. */
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
        pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &before);
        run(writer->db, "SELECT count(*) FROM t");
        pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &before);
    }
    for (;;) {
        if (own_point)
            pthread_testcancel();
        int code = run(writer->db, "INSERT INTO t VALUES (zeroblob(100))");
        int before;
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
        if (before != PTHREAD_CANCEL_ENABLE)
            abort();
        atomic_fetch_add(code == OK ? &acknowledged : &failed, 1);
        pthread_setcancelstate(before, NULL);
    }
}

static int take(void *number, int columns, char **values, char **names)
{
    (void)columns, (void)names;
    *(int *)number = atoi(values[0]);
    return 0;
}

static void start(struct writer *writer)
{
    if (sqlite3_open(database, &writer->db) != OK)
        abort();
    sqlite3_busy_timeout(writer->db, 60000);
    /* A log that is begun anew often: SQLite asks for a read lock in the midst of a commit then. */
    run(writer->db, "PRAGMA wal_autocheckpoint = 20");
    if (pthread_create(&writer->thread, NULL, write_rows, writer) != 0)
        abort();
}

int main(int count, char **arguments)
{
    database = arguments[1];
    sqlite3 *first;
    own_point = strcmp(arguments[2], "own") == 0;
    asynchronous = strcmp(arguments[2], "asynchronous") == 0;
    if (count > 3) {
        sqlite3_open(":memory:", &first);
        sqlite3_enable_load_extension(first, 1);
        /* SQLITE_OK_LOAD_PERMANENTLY is 256. */
        if (sqlite3_load_extension(first, arguments[3], NULL, NULL) % 256 != OK)
            return 2;
    }
    sqlite3_open(database, &first);
    if (run(first, "PRAGMA journal_mode = WAL; CREATE TABLE t(a)") != OK)
        return 3;
    struct writer writers[THREADS];
    for (int i = 0; i < THREADS; i++)
        start(&writers[i]);
    int cancelled = 0;
    unsigned seed = 1;
    for (int i = 0; i < CANCELLATIONS + THREADS; i++) {
        struct writer *writer = &writers[i % THREADS];
        usleep(rand_r(&seed) % 5000);
        pthread_cancel(writer->thread);
        void *result;
        pthread_join(writer->thread, &result);
        cancelled += result == PTHREAD_CANCELED;
        /* Its connection stays open: the thread may have ended in SQLite, with the connection's mutex. */
        if (i < CANCELLATIONS)
            start(writer);
    }
    int rows = -1;
    sqlite3_exec(first, "SELECT count(*) FROM t", take, &rows, NULL);
    int lost = acknowledged > rows ? acknowledged - rows : 0;
    printf("cancelled %d, lost %d, failed %d\n", cancelled, lost, failed);
    return 0;
}
