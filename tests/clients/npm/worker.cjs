// The package waldio with a SQLite inside the runtime: Node's, Bun's or Deno's (the protocol is in ../driver.py).
"use strict";
const { writeSync } = require("node:fs");
const waldio = require("waldio");
const Database = typeof Bun === "undefined" ? require("node:sqlite").DatabaseSync : require("bun:sqlite").Database;

const [verb, file, library] = process.argv.slice(2);
// The stock half never loads it.
const database = library ? waldio.open(Database, file) : new Database(file);
const first = (sql) => Object.values(database.prepare(sql).get())[0];
if (verb === "insert") {
  database.exec("CREATE TABLE IF NOT EXISTS t(n INTEGER PRIMARY KEY, value TEXT)");
  const insert = database.prepare("INSERT INTO t(value) VALUES (hex(randomblob(50)))");
  for (;;) writeSync(1, `ack ${insert.run().lastInsertRowid}\n`);
}
console.log(`count ${first("SELECT count(*) FROM t")}`);
console.log(`max ${first("SELECT max(n) FROM t")}`);
console.log(`integrity ${first("PRAGMA integrity_check")}`);
console.log(`waldio ${Number(waldio.state(database).startsWith("active:"))}`);
database.close();
