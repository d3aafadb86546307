// node-sqlite3 as a client of waldio (the protocol is in ../driver.py).
"use strict";
const { writeSync } = require("node:fs");
const { promisify } = require("node:util");
const sqlite3 = require("sqlite3");

const [verb, file, library] = process.argv.slice(2);

function open(name) {
  return new Promise((resolve, reject) => {
    const database = new sqlite3.Database(name, (error) => (error ? reject(error) : resolve(database)));
  });
}

function insert(database) {
  return new Promise((resolve, reject) => {
    database.run("INSERT INTO t(value) VALUES (hex(randomblob(50)))", function (error) {
      return error ? reject(error) : resolve(this.lastID);
    });
  });
}

async function main() {
  if (library) {
    const loader = await open(":memory:");
    await promisify(loader.loadExtension.bind(loader))(library);
    await promisify(loader.close.bind(loader))();
  }
  const database = await open(file);
  const get = promisify(database.get.bind(database));
  const exec = promisify(database.exec.bind(database));
  if (verb === "insert") {
    await exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL");
    await exec("CREATE TABLE IF NOT EXISTS t(n INTEGER PRIMARY KEY, value TEXT)");
    for (;;) writeSync(1, `ack ${await insert(database)}\n`);
  }
  const row = await get("SELECT count(*) AS count, max(n) AS max FROM t");
  console.log(`count ${row.count}\nmax ${row.max}`);
  console.log(`integrity ${(await get("PRAGMA integrity_check")).integrity_check}`);
  console.log(`waldio ${library ? (await get("SELECT count(*) AS n FROM waldio_status WHERE name = 'this_connection' AND value LIKE 'active:%'")).n : 0}`);
  await promisify(database.close.bind(database))();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
