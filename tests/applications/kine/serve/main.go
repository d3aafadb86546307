// kine as it is, but that waldio is registered first: kine opens its database with mattn's driver, which has waldio then.
// KINE_WALDIO=off leaves it out. On SIGUSR1 it writes what PRAGMA waldio says of a connection like kine's to standard output.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"

	waldio "github.com/joj/waldio/packages/go"
	"github.com/k3s-io/kine/pkg/app"
)

// tell opens what KINE_DATABASE names as kine does.
func tell() {
	db, err := sql.Open("sqlite3", os.Getenv("KINE_DATABASE"))
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	var rows, synchronous int
	var journal string
	for question, answer := range map[string]any{
		"SELECT count(*) FROM sqlite_master": &rows, "PRAGMA synchronous": &synchronous, "PRAGMA journal_mode": &journal,
	} {
		if err := db.QueryRow(question).Scan(answer); err != nil {
			log.Fatal(err)
		}
	}
	told, err := waldio.State(db)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("state %s %d %s\n", journal, synchronous, told)
}

func main() {
	if os.Getenv("KINE_WALDIO") != "off" {
		if err := waldio.Register(); err != nil {
			log.Fatal(err)
		}
	}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGUSR1)
	go func() {
		for range asked {
			tell()
		}
	}()
	if err := app.New().Run(os.Args); err != nil && !errors.Is(err, context.Canceled) {
		log.Fatal(err)
	}
}
