/*
** Makes SQLite's testfixture load an extension each time SQLite initialises.
**
** The tests call sqlite3_shutdown() and sqlite3_initialize(), which makes "unix" the default VFS again, so that
** loading once at start is not enough. testfixture is built with -DSQLITE_EXTRA_INIT=load_extension_under_test,
** which SQLite calls at the end of every sqlite3_initialize().
**
**   EXTENSION_UNDER_TEST   path of the extension; nothing is loaded when it is unset (the stock run)
**   EXTENSION_ENTRY        its entry point, when not the one derived from the file name
**
** A load that fails ends the process: a suite that silently tests stock SQLite proves nothing.
*/
#include "sqlite3.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* Which the tests read to count syncs; the unix VFS bumps them in its own xSync. */
extern int sqlite3_sync_count;
extern int sqlite3_fullsync_count;

/* Called by the extension once per sync of a log, which the unix VFS then does not see. */
static void count_sync(int flags){
  if( (flags & 0x0F)==SQLITE_SYNC_FULL ) sqlite3_fullsync_count++;
  sqlite3_sync_count++;
}

static int fail(const char *what, const char *why){
  fprintf(stderr, "loader.c: cannot %s: %s\n", what, why ? why : "unknown error");
  exit(97);
}

int load_extension_under_test(const char *unused){
  const char *path = getenv("EXTENSION_UNDER_TEST");
  const char *entry = getenv("EXTENSION_ENTRY");
  char *message = 0;
  sqlite3 *db = 0;
  void *image;
  void (*on_sync)(void(*)(int)) = 0;

  (void)unused;
  if( path==0 || path[0]==0 ) return SQLITE_OK;
  if( sqlite3_open(":memory:", &db)!=SQLITE_OK ) return fail("open a database", sqlite3_errmsg(db));
  sqlite3_enable_load_extension(db, 1);
  if( sqlite3_load_extension(db, path, entry, &message)!=SQLITE_OK ) return fail(path, message);
  sqlite3_close(db);

  image = dlopen(path, RTLD_NOW|RTLD_NOLOAD);
  if( image==0 ) return fail("find the loaded image (did it stay loaded?)", dlerror());
  *(void**)&on_sync = dlsym(image, "waldio_on_sync");
  if( on_sync ) on_sync(count_sync);
  dlclose(image);
  return SQLITE_OK;
}
