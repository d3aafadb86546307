package waldio

// Goal: after Register every connection of a pool, the first one included, commits through waldio with FULL, or is an error.
// Method: the module as people get it, with the library inside; one process, in which waldio is registered once.

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func open(t *testing.T, name string) *sql.DB {
	t.Helper()
	db, err := sql.Open(DriverName, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func TestMain(m *testing.M) {
	os.Setenv("WALDIO_PERSIST", "flsh")
	if err := Register(); err == nil || !strings.Contains(err.Error(), "auto, flush or fua") {
		panic("a wrong variable is no error: " + err.Error())
	}
	os.Unsetenv("WALDIO_PERSIST")
	// Both by several at once, and again.
	var all sync.WaitGroup
	for range [4]int{} {
		all.Add(1)
		go func() {
			defer all.Done()
			if err := Register(); err != nil {
				panic(err)
			}
		}()
	}
	all.Wait()
	os.Exit(m.Run())
}

func TestEveryConnectionOfAPoolHasWaldioAndFull(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "app.db"))
	// The very first thing that the pool does.
	told, err := State(db)
	if err != nil || told != "active: with synchronous=FULL a COMMIT is on the disk when it returns" {
		t.Fatal(told, err)
	}
	if _, err := db.Exec("CREATE TABLE t(a)"); err != nil {
		t.Fatal(err)
	}
	const connections = 8
	for number := 0; number < connections; number++ {
		connection, err := db.Conn(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		defer connection.Close() // at the end: all are open at once
		var told string
		if err := connection.QueryRowContext(context.Background(), "PRAGMA waldio").Scan(&told); err != nil {
			t.Fatal(number, err)
		}
		var synchronous int
		if err := connection.QueryRowContext(context.Background(), "PRAGMA synchronous").Scan(&synchronous); err != nil {
			t.Fatal(number, err)
		}
		if !strings.HasPrefix(told, "active:") || synchronous != 2 {
			t.Fatal(number, told, synchronous)
		}
	}
	if open := db.Stats().OpenConnections; open < connections {
		t.Fatal("only", open, "connections")
	}
}

func TestWhatTheNameSaysStays(t *testing.T) {
	for name, want := range map[string]string{
		"app.db":                         "app.db?_journal_mode=WAL&_synchronous=FULL",
		"file:app.db?cache=private":      "file:app.db?cache=private&_journal_mode=WAL&_synchronous=FULL",
		"app.db?_sync=NORMAL":            "app.db?_sync=NORMAL&_journal_mode=WAL",
		"app.db?_journal=WAL&_sync=FULL": "app.db?_journal=WAL&_sync=FULL",
	} {
		if found := withDefaults(name); found != want {
			t.Errorf("%s: %s, not %s", name, found, want)
		}
	}
	db := open(t, "file:"+filepath.Join(t.TempDir(), "app.db")+"?waldio_durability=bounded")
	if told, err := State(db); err != nil || !strings.Contains(told, "COMMIT does not wait") {
		t.Fatal(told, err)
	}
}

func TestWhereWaldioIsNotActiveOpeningIsAnError(t *testing.T) {
	file := "file:" + filepath.Join(t.TempDir(), "app.db")
	for _, name := range []string{":memory:", file + "?vfs=unix", file + "?waldio=off", file + "?_journal_mode=DELETE"} {
		if err := open(t, name).Ping(); !errors.Is(err, ErrNotActive) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := open(t, file+"?waldio_durability=always").Ping(); err == nil {
		t.Error("a wrong option")
	}
}

func TestTheDriverOfOldHasItToo(t *testing.T) {
	db, err := sql.Open("sqlite3", filepath.Join(t.TempDir(), "app.db")+"?_journal_mode=WAL&_synchronous=FULL")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("CREATE TABLE t(a)"); err != nil {
		t.Fatal(err)
	}
	if told, err := State(db); err != nil || !strings.HasPrefix(told, "active:") {
		t.Fatal(told, err)
	}
}
