/*
** Makes SQLite's testfixture load an extension each time SQLite initialises.
**
** The tests call sqlite3_shutdown() and sqlite3_initialize(), which makes "unix" the default VFS again, so that
** loading once at start is not enough. testfixture is built with -DSQLITE_EXTRA_INIT=load_extension_under_test,
** which SQLite calls at the end of every sqlite3_initialize().
**
**   EXTENSION_UNDER_TEST   path of the extension; nothing is loaded when it is unset (the stock run)
**   EXTENSION_ENTRY        its entry point, when not the one derived from the file name
**   RESERVED_BYTES         instead of loading anything: so many bytes at the end of each page of a new database are
**                          left alone, as an extension has it that needs them
**
** A load that fails ends the process: a suite that silently tests stock SQLite proves nothing. But the fault tests
** let allocations fail while SQLite initialises again; then the VFS that an earlier load made the default is made so
** once more, which allocates nothing.
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
  return SQLITE_ERROR;
}

/* Loads it in a connection of its own; the message is 0 or needs sqlite3_free(). */
static int load(const char *path, char **message){
  sqlite3 *db = 0;
  int rc = sqlite3_open(":memory:", &db);
  if( rc==SQLITE_OK ) rc = sqlite3_enable_load_extension(db, 1);
  if( rc==SQLITE_OK ) rc = sqlite3_load_extension(db, path, getenv("EXTENSION_ENTRY"), message);
  sqlite3_close(db);
  return rc;
}

/* An automatic extension, which SQLite calls with each connection that is being opened. */
static int reserve(sqlite3 *db, char **message, const void *routines){
  sqlite3_file *file = 0;
  sqlite3_int64 size_bytes = 0;
  int reserved_bytes = atoi(getenv("RESERVED_BYTES"));

  (void)message; (void)routines;
  sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &file);
  if( file && file->pMethods && file->pMethods->xFileSize(file, &size_bytes)==SQLITE_OK && size_bytes==0 ){
    sqlite3_file_control(db, "main", SQLITE_FCNTL_RESERVE_BYTES, &reserved_bytes);
  }
  return SQLITE_OK;
}

int load_extension_under_test(const char *unused){
  static sqlite3_vfs *made_default = 0;
  const char *path = getenv("EXTENSION_UNDER_TEST");
  sqlite3_vfs *stock = sqlite3_vfs_find(0);
  char *message = 0;
  void *image;
  void (*on_sync)(void(*)(int)) = 0;

  (void)unused;
  if( getenv("RESERVED_BYTES") ) return sqlite3_auto_extension((void(*)(void))reserve);
  if( path==0 || path[0]==0 ) return SQLITE_OK;
  if( load(path, &message)!=SQLITE_OK ){
    if( made_default==0 ) return fail(path, message);
    sqlite3_free(message);
    return sqlite3_vfs_register(made_default, 1);
  }
  if( sqlite3_vfs_find(0)==stock && stock!=made_default ) return fail(path, "it did not become the default VFS");
  made_default = sqlite3_vfs_find(0);

  image = dlopen(path, RTLD_NOW|RTLD_NOLOAD);
  if( image==0 ) return fail("find the loaded image (did it stay loaded?)", dlerror());
  *(void**)&on_sync = dlsym(image, "waldio_on_sync");
  if( on_sync ) on_sync(count_sync);
  dlclose(image);
  return SQLITE_OK;
}
