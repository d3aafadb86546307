/** The connection would work without waldio. The message says why. */
export class NotActiveError extends Error {}

/** What a COMMIT is worth after a power cut: it is there; the last 10 ms and a flush or two may be lost; as NORMAL with stock. */
export type Durability = "full" | "bounded" | "normal";

/** waldio's options, as docs/usage.md of the project explains them. */
export interface Options {
  durability?: Durability;
  durableReads?: boolean;
  group?: string;
  groupCommit?: boolean;
  logBytes?: number;
  dbChunk?: string;
  fill?: "auto" | "write-zeroes" | "zeroes" | "unwritten";
  layout?: "stock" | "embedded";
  persist?: "auto" | "flush" | "fua";
  strict?: boolean;
  /** Everything else goes to the database's constructor. */
  [option: string]: unknown;
}

/** better-sqlite3's Database, node:sqlite's DatabaseSync, bun:sqlite's Database. */
// biome-ignore lint/suspicious/noExplicitAny: their constructors differ
export type DatabaseClass<T> = new (path: string, options?: any) => T;

/** The extension's file, for other programs. */
export function getLoadablePath(): string;

/** Loads waldio through a connection, whose database has to be in memory: what is opened afterwards has it. */
export function load(database: { loadExtension(path: string): unknown }): void;

/** Loads waldio into the SQLite behind a constructor, once: all databases that it opens afterwards have it. */
export function register<T>(Database: DatabaseClass<T>): void;

/** Opens a database in WAL mode, with waldio; throws NotActiveError where waldio does not take care of its commits. */
export function open<T>(Database: DatabaseClass<T>, path: string, options?: Options): T;

/** One word and a sentence: "active: ..", "waiting: ..", "inactive: ..", "failed: ..". */
export function state(database: unknown): string;
