/* SQLite in a program with musl as a client of waldio (the protocol is in ../driver.py).
 *
 * Rows come from two threads with the stack that musl gives a thread, 128 KiB: waldio's commits have to fit in it.
 */
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void stop(const char *what, const char *why) {
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static void run(sqlite3 *db, const char *sql) {
    char *message = NULL;
    if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK) stop(sql, message);
}

static sqlite3 *open_database(const char *name) {
    sqlite3 *db;
    if (sqlite3_open(name, &db) != SQLITE_OK) stop(name, sqlite3_errmsg(db));
    sqlite3_busy_timeout(db, 60000);
    return db;
}

/* What is opened afterwards has waldio. */
static void load(const char *library) {
    sqlite3 *db = open_database(":memory:");
    char *message = NULL;
    sqlite3_enable_load_extension(db, 1);
    if (sqlite3_load_extension(db, library, NULL, &message) != SQLITE_OK) stop(library, message);
    sqlite3_close(db);
}

/* Prints a name and the query's one value. */
static void show(sqlite3 *db, const char *name, const char *sql) {
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK || sqlite3_step(statement) != SQLITE_ROW)
        stop(sql, sqlite3_errmsg(db));
    printf("%s %s\n", name, (const char *)sqlite3_column_text(statement, 0));
    sqlite3_finalize(statement);
}

/* For ever. */
static void *insert(void *name) {
    sqlite3 *db = open_database(name);
    run(db, "PRAGMA synchronous=FULL");
    for (;;) {
        run(db, "INSERT INTO t(value) VALUES (hex(randomblob(50)))");
        printf("ack %lld\n", (long long)sqlite3_last_insert_rowid(db));
        fflush(stdout);
    }
    return NULL;
}

int main(int count, char **arguments) {
    if (count != 4) stop("want", "VERB DATABASE LIBRARY");
    char *name = arguments[2], *library = arguments[3];
    if (*library) load(library);
    sqlite3 *db = open_database(name);
    if (strcmp(arguments[1], "insert") == 0) {
        pthread_t other;
        run(db, "PRAGMA journal_mode=WAL");
        run(db, "CREATE TABLE IF NOT EXISTS t(n INTEGER PRIMARY KEY, value TEXT)");
        for (int number = 0; number < 2; number++)
            if (pthread_create(&other, NULL, insert, name) != 0) stop("pthread_create", "no thread");
        pthread_join(other, NULL);
    }
    show(db, "count", "SELECT count(*) FROM t");
    show(db, "max", "SELECT max(n) FROM t");
    show(db, "integrity", "PRAGMA integrity_check");
    show(db, "waldio", *library ? "SELECT count(*) FROM waldio_status WHERE name = 'this_connection' AND value LIKE 'active:%'" : "SELECT 0");
    return sqlite3_close(db);
}
