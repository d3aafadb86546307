// Package waldio brings waldio into mattn/go-sqlite3: a SQLite extension that makes durable commits faster where several
// connections write.
//
//	if err := waldio.Register(); err != nil { ... }
//	db, err := sql.Open("sqlite3_waldio", "app.db")
//
// Each connection of that driver is in WAL mode with synchronous=FULL, unless the name says otherwise, and is an error where waldio
// does not take care of its commits. What the process opens with the driver "sqlite3" after Register has waldio too, but mattn's own
// default in WAL mode is NORMAL.
package waldio

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"sync"

	sqlite3 "github.com/mattn/go-sqlite3"
)

// DriverName is what sql.Open takes after Register.
const DriverName = "sqlite3_waldio"

// ErrNotActive says that a connection would work without waldio. What wraps it says why.
var ErrNotActive = errors.New("waldio is not active")

var (
	registering  sync.Mutex
	isRegistered bool
)

// Register loads waldio into the SQLite of this process, once, and registers the driver. It is an error where waldio refuses: a wrong
// value in a WALDIO_ variable, a SQLite without load_extension, a platform that this module has no library for.
func Register() error {
	registering.Lock()
	defer registering.Unlock()
	if isRegistered {
		return nil
	}
	file, err := library()
	if err != nil {
		return err
	}
	defer file.Close()
	// sql.Open opens nothing yet, and a pool's connections come later: the throw-away one is opened here, past the pool.
	loader := sqlite3.SQLiteDriver{ConnectHook: func(connection *sqlite3.SQLiteConn) error {
		return connection.LoadExtension(fmt.Sprintf("/proc/self/fd/%d", file.Fd()), "sqlite3_waldio_init")
	}}
	memory, err := loader.Open(":memory:")
	if err != nil {
		return fmt.Errorf("waldio is not loaded: %w", err)
	}
	if err := memory.Close(); err != nil {
		return err
	}
	sql.Register(DriverName, &waldioDriver{})
	isRegistered = true
	return nil
}

// State says in a word and a sentence whether a connection of the pool has waldio: "active: ..", "waiting: ..", "inactive: ..",
// "failed: ..".
func State(db *sql.DB) (string, error) {
	var told string
	err := db.QueryRow("PRAGMA waldio").Scan(&told)
	if errors.Is(err, sql.ErrNoRows) {
		return passedBy, nil
	}
	return told, err
}

const passedBy = "inactive: this connection goes past waldio: its name says so, or it was opened before waldio was loaded"

type waldioDriver struct{ sqlite3.SQLiteDriver }

// Open is what database/sql calls for each connection of a pool, the first one included.
func (d *waldioDriver) Open(name string) (driver.Conn, error) {
	opened, err := d.SQLiteDriver.Open(withDefaults(name))
	if err != nil {
		return nil, err
	}
	told, err := stateOf(opened.(*sqlite3.SQLiteConn))
	if err == nil && !strings.HasPrefix(told, "active:") {
		err = fmt.Errorf("%w: %s: %s", ErrNotActive, name, told)
	}
	if err != nil {
		opened.Close()
		return nil, err
	}
	return opened, nil
}

// withDefaults adds WAL mode and FULL where the name says nothing of them.
func withDefaults(name string) string {
	_, query, _ := strings.Cut(name, "?")
	said, _ := url.ParseQuery(query)
	for _, setting := range [][3]string{{"_journal_mode", "_journal", "WAL"}, {"_synchronous", "_sync", "FULL"}} {
		if said.Has(setting[0]) || said.Has(setting[1]) {
			continue
		}
		separator := "?"
		if strings.Contains(name, "?") {
			separator = "&"
		}
		name += separator + setting[0] + "=" + setting[2]
	}
	return name
}

func stateOf(connection *sqlite3.SQLiteConn) (string, error) {
	// Opens the log of a database that had WAL mode already.
	if _, err := firstValue(connection, "SELECT count(*) FROM sqlite_master"); err != nil {
		return "", err
	}
	told, err := firstValue(connection, "PRAGMA waldio")
	if err != nil || told == nil {
		return passedBy, err
	}
	return fmt.Sprint(told), nil
}

// firstValue is nil where there is no row.
func firstValue(connection *sqlite3.SQLiteConn, query string) (driver.Value, error) {
	rows, err := connection.Query(query, nil)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	columns := rows.Columns()
	if len(columns) == 0 {
		return nil, nil
	}
	values := make([]driver.Value, len(columns))
	if err := rows.Next(values); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	return values[0], nil
}
