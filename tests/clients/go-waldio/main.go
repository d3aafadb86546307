// A pool of database/sql over waldio's own driver (the protocol is in ../driver.py).
package main

import (
	"database/sql"
	"fmt"
	"log"
	"os"
	"strings"

	waldio "github.com/joj/waldio/packages/go"
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
		must(waldio.Register())
		driver = waldio.DriverName
	}
	db, err := sql.Open(driver, file)
	must(err)
	db.SetMaxOpenConns(4)
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
	told, err := waldio.State(db)
	must(err)
	active := 0
	if strings.HasPrefix(told, "active:") {
		active = 1
	}
	fmt.Printf("waldio %d\n", active)
	must(db.Close())
}
