// Puts new keys into an etcd server: each client its own connection, one put after the other.
//
//	load -address http://127.0.0.1:2379 -clients 16 -seconds 5
//
// Standard output has a line "ack KEY" for each put that returned without an error, if -acks is given, and at the end one line of JSON.
// A server that goes away ends it.
package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"slices"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

type result struct {
	latencies []time.Duration
	errors    map[string]int
}

type report struct {
	Acknowledged  int            `json:"acknowledged"`
	PutsPerSecond float64        `json:"puts_per_second"`
	P50           float64        `json:"p50_ms"`
	P99           float64        `json:"p99_ms"`
	Longest       float64        `json:"longest_ms"`
	Errors        map[string]int `json:"errors"`
}

var (
	address = flag.String("address", "", "of the server")
	clients = flag.Int("clients", 1, "how many put at the same time")
	seconds = flag.Float64("seconds", 5, "for how long")
	bytes   = flag.Int("bytes", 1024, "length of a value")
	prefix  = flag.String("prefix", "/put/", "what keys begin with")
	acks    = flag.Bool("acks", false, "print each key whose put returned")
)

var (
	printing sync.Mutex
	output   = bufio.NewWriter(os.Stdout)
)

func acknowledge(key string) {
	printing.Lock()
	defer printing.Unlock()
	fmt.Fprintln(output, "ack", key)
	output.Flush()
}

// put makes one client's puts until the time is over, or three in a row have failed.
func put(number int, end time.Time) result {
	found := result{errors: map[string]int{}}
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{*address}, DialTimeout: 10 * time.Second, Logger: zap.NewNop()})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	value := make([]byte, *bytes)
	if _, err := rand.Read(value); err != nil {
		log.Fatal(err)
	}
	failed := 0
	for index := 0; failed < 3 && time.Now().Before(end); index++ {
		key := fmt.Sprintf("%s%d/%d", *prefix, number, index)
		patience, cancel := context.WithTimeout(context.Background(), 60*time.Second)
		begun := time.Now()
		_, err := client.Put(patience, key, string(value))
		took := time.Since(begun)
		cancel()
		if err != nil {
			failed++
			found.errors[err.Error()]++
			continue
		}
		failed = 0
		found.latencies = append(found.latencies, took)
		if *acks {
			acknowledge(key)
		}
	}
	return found
}

func milliseconds(time time.Duration) float64 { return float64(time.Microseconds()) / 1000 }

func main() {
	flag.Parse()
	results := make([]result, *clients)
	begun := time.Now()
	end := begun.Add(time.Duration(*seconds * float64(time.Second)))
	var all sync.WaitGroup
	for number := range results {
		all.Go(func() { results[number] = put(number, end) })
	}
	all.Wait()
	took := time.Since(begun).Seconds()

	var latencies []time.Duration
	told := report{Errors: map[string]int{}}
	for _, one := range results {
		latencies = append(latencies, one.latencies...)
		for message, count := range one.errors {
			told.Errors[message] += count
		}
	}
	slices.Sort(latencies)
	if count := len(latencies); count > 0 {
		told.Acknowledged, told.PutsPerSecond = count, float64(count)/took
		told.P50, told.P99 = milliseconds(latencies[count/2]), milliseconds(latencies[count*99/100])
		told.Longest = milliseconds(latencies[count-1])
	}
	json.NewEncoder(os.Stdout).Encode(told)
}
