// mattn/go-sqlite3 as a client of waldio (the protocol is in ../driver.py).
package main

import (
	"database/sql"
	"fmt"
	"log"
	"os"

	sqlite3 "github.com/mattn/go-sqlite3"
)

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// number runs a query for one integer.
func number(db *sql.DB, query string) int64 {
	var value int64
	must(db.QueryRow(query).Scan(&value))
	return value
}

func main() {
	verb, file, library := os.Args[1], os.Args[2], os.Args[3]
	driver := "sqlite3"
	if library != "" {
		driver = "sqlite3_waldio"
		sql.Register(driver, &sqlite3.SQLiteDriver{Extensions: []string{library}})
		// The extension becomes the default VFS for connections opened after it: load it in one of its own.
		loader, err := sql.Open(driver, ":memory:")
		must(err)
		must(loader.Ping())
		must(loader.Close())
	}
	db, err := sql.Open(driver, "file:"+file+"?_journal_mode=WAL&_synchronous=FULL")
	must(err)
	db.SetMaxOpenConns(1)
	if verb == "insert" {
		_, err = db.Exec("CREATE TABLE IF NOT EXISTS t(n INTEGER PRIMARY KEY, value TEXT)")
		must(err)
		for {
			result, err := db.Exec("INSERT INTO t(value) VALUES (hex(randomblob(50)))")
			must(err)
			row, err := result.LastInsertId()
			must(err)
			fmt.Printf("ack %d\n", row)
		}
	}
	var integrity string
	must(db.QueryRow("PRAGMA integrity_check").Scan(&integrity))
	fmt.Printf("count %d\nmax %d\n", number(db, "SELECT count(*) FROM t"), number(db, "SELECT max(n) FROM t"))
	fmt.Printf("integrity %s\n", integrity)
	status := int64(0)
	if library != "" {
		status = number(db, "SELECT count(*) FROM waldio_status WHERE name = 'this_connection' AND value LIKE 'active:%'")
	}
	fmt.Printf("waldio %d\n", status)
	must(db.Close())
}
