// Drizzle over better-sqlite3, opened by the package waldio (the protocol is in ../driver.py).
"use strict";
const { writeSync } = require("node:fs");
const Database = require("better-sqlite3");
const { sql } = require("drizzle-orm");
const { drizzle } = require("drizzle-orm/better-sqlite3");
const { integer, sqliteTable, text } = require("drizzle-orm/sqlite-core");
const waldio = require("waldio");

const t = sqliteTable("t", { n: integer().primaryKey(), value: text() });
const [verb, file, library] = process.argv.slice(2);
const connection = library ? waldio.open(Database, file) : new Database(file);
const db = drizzle(connection);
if (verb === "insert") {
  db.run(sql`CREATE TABLE IF NOT EXISTS t(n INTEGER PRIMARY KEY, value TEXT)`);
  for (;;) writeSync(1, `ack ${db.insert(t).values({ value: "x".repeat(100) }).run().lastInsertRowid}\n`);
}
const row = db.get(sql`SELECT count(*) AS count, max(n) AS max FROM t`);
console.log(`count ${row.count}\nmax ${row.max}`);
console.log(`integrity ${connection.pragma("integrity_check", { simple: true })}`);
// Without waldio better-sqlite3's statement has no columns.
console.log(`waldio ${Number(waldio.state(connection).startsWith("active:"))}`);
connection.close();
