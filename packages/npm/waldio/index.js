// waldio for SQLite in JavaScript: better-sqlite3, node:sqlite (Node and Deno), bun:sqlite. See README.md.
"use strict";

const fs = require("node:fs");

/** The connection would work without waldio. The message says why. */
class NotActiveError extends Error {
  constructor(message) {
    super(message);
    this.name = "NotActiveError";
  }
}

/** waldio's own options; everything else goes to the database's constructor. */
const OPTIONS = new Set(
  ["dbChunk", "durability", "durableReads", "fill", "group", "groupCommit", "layout", "logBytes", "persist", "strict"],
);

/** The SQLites of this process that have waldio, by the constructor that opens their databases. */
const registered = new WeakSet();

/** How the platform's package ends: the C library of this program, by the loader that the program's own file names. */
function ending() {
  if (process.platform !== "linux") return "gnu";
  const file = Buffer.alloc(4096);
  try {
    const descriptor = fs.openSync(process.execPath, "r");
    try {
      fs.readSync(descriptor, file, 0, file.length, 0);
    } finally {
      fs.closeSync(descriptor);
    }
  } catch {
    // Deno asks for a right to read it.
  }
  const loader = /\/ld-(musl|linux)-/.exec(file.toString("latin1"));
  if (loader) return loader[1] === "musl" ? "musl" : "gnu";
  const header = process.report?.getReport?.().header;
  return header && !header.glibcVersionRuntime ? "musl" : "gnu";
}

/** The extension's file. It comes with a package of its own for each platform, which npm picks. */
function getLoadablePath() {
  const name = `waldio-${process.platform}-${process.arch}-${ending()}`;
  try {
    return require.resolve(`${name}/libwaldio.so`);
  } catch (error) {
    throw new Error(
      `waldio: the package ${name} is not installed. It is an optional dependency for Linux on x64 and arm64, with glibc or musl: ` +
        `npm leaves it out with --omit=optional, and on other systems (${error.code})`,
    );
  }
}

/** Loads waldio through a connection, whose database has to be in memory: what is opened afterwards has it. */
function load(database) {
  // node:sqlite allows it for a moment.
  const allows = typeof database.enableLoadExtension === "function";
  if (allows) database.enableLoadExtension(true);
  try {
    database.loadExtension(getLoadablePath());
  } finally {
    if (allows) database.enableLoadExtension(false);
  }
}

/** Loads waldio into the SQLite behind a constructor, once: all databases that it opens afterwards have it. */
function register(Database) {
  if (registered.has(Database)) return;
  // node:sqlite's. Deno's lacks the method, and later versions of Node call the class Database.
  const asks = Database.name === "DatabaseSync" || typeof Database.prototype.enableLoadExtension === "function";
  const memory = asks ? new Database(":memory:", { allowExtension: true }) : new Database(":memory:");
  try {
    load(memory);
  } finally {
    memory.close();
  }
  registered.add(Database);
}

/** One word and a sentence: "active: ..", "waiting: ..", "inactive: ..", "failed: ..". */
function state(database) {
  const statement = database.prepare("PRAGMA waldio");
  // better-sqlite3 throws where a statement has no columns: SQLite alone does not know the pragma.
  const row = statement.reader === false ? undefined : statement.get();
  if (row) return Object.values(row)[0];
  return "inactive: this connection goes past waldio: its URI says so, or it was opened before waldio was loaded";
}

/** Opens a database in WAL mode, with waldio; throws NotActiveError, with the database closed, where waldio does not take care of it. */
function open(Database, path, options = {}) {
  register(Database);
  const theirs = Object.entries(options).filter(([name]) => !OPTIONS.has(name));
  const ours = Object.entries({ durability: "full", ...options }).filter(([name]) => OPTIONS.has(name));
  const database = theirs.length > 0 ? new Database(path, Object.fromEntries(theirs)) : new Database(path);
  try {
    for (const [name, value] of ours) set(database, name, value);
    database.exec("PRAGMA journal_mode=WAL");
    if ((options.durability ?? "full") === "full") database.exec("PRAGMA synchronous=FULL");
    // Opens the log of a database that had this mode already.
    database.prepare("SELECT count(*) AS n FROM sqlite_master").get();
    const told = state(database);
    if (!told.startsWith("active:")) throw new NotActiveError(`${path}: ${told}`);
  } catch (error) {
    database.close();
    throw error;
  }
  return database;
}

function set(database, name, value) {
  const text = typeof value === "boolean" ? String(Number(value)) : String(value);
  const pragma = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  database.exec(`PRAGMA waldio_${pragma} = '${text.replaceAll("'", "''")}'`);
}

module.exports = { NotActiveError, getLoadablePath, load, open, register, state };
