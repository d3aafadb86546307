// better-sqlite3 as a client of waldio (the protocol is in ../driver.py). It cannot name a VFS: the default must do.
"use strict";
const { writeSync } = require("node:fs");
const Database = require("better-sqlite3");

const [verb, file, library] = process.argv.slice(2);
if (library) {
  const loader = new Database(":memory:");
  loader.loadExtension(library);
  loader.close();
}

const database = new Database(file);
if (verb === "insert") {
  database.pragma("journal_mode = WAL");
  database.pragma("synchronous = FULL"); // its own default in WAL mode is NORMAL
  database.exec("CREATE TABLE IF NOT EXISTS t(n INTEGER PRIMARY KEY, value TEXT)");
  const insert = database.prepare("INSERT INTO t(value) VALUES (hex(randomblob(50)))");
  for (;;) writeSync(1, `ack ${insert.run().lastInsertRowid}\n`);
}
const row = database.prepare("SELECT count(*) AS count, max(n) AS max FROM t").get();
console.log(`count ${row.count}\nmax ${row.max}`);
console.log(`integrity ${database.pragma("integrity_check", { simple: true })}`);
console.log(`waldio ${library ? database.prepare("SELECT count(*) AS n FROM waldio_status WHERE name = 'this_connection' AND value LIKE 'active:%'").get().n : 0}`);
database.close();
