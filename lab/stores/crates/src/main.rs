//! Stores records in redb or sled, one transaction each, for `joj crash` (docs/crash_stores.md); store.py does the same with others.
//!
//!   stores NAME sync      stores RECORDS records, each one synced, and prints `stored N` behind each
//!   stores NAME nosync    the same, but the store is told not to sync
//!   stores NAME check     looks at what is there: exit code 0 all that was promised, 1 some of it is gone, 2 something is wrong

use std::error::Error;
use std::io::{Read, Write};
use std::path::Path;
use std::process::exit;

use redb::{Database, Durability, ReadableDatabase, ReadableTable, TableDefinition, TableError};

const RECORDS: u32 = 20;
const PLACE: &str = "store";
const TABLE: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("records");

type Records = Vec<(u32, Vec<u8>)>;

fn value(number: u32) -> Vec<u8> {
    format!("{number:06}").repeat(200).into_bytes()
}

fn stored(number: u32) {
    println!("stored {number}");
    let _ = std::io::stdout().flush();
}

fn run_redb(sync: bool) -> Result<(), Box<dyn Error>> {
    let store = Database::create(PLACE)?;
    for number in 0..RECORDS {
        let mut transaction = store.begin_write()?;
        transaction.set_durability(if sync { Durability::Immediate } else { Durability::None })?;
        transaction.open_table(TABLE)?.insert(number, value(number).as_slice())?;
        transaction.commit()?;
        stored(number);
    }
    Ok(())
}

fn read_redb() -> Result<Records, Box<dyn Error>> {
    let store = Database::create(PLACE)?;
    let transaction = store.begin_read()?;
    let table = match transaction.open_table(TABLE) {
        Err(TableError::TableDoesNotExist(_)) => return Ok(Vec::new()),
        table => table?,
    };
    let mut records = Vec::new();
    for entry in table.iter()? {
        let (number, held) = entry?;
        records.push((number.value(), held.value().to_vec()));
    }
    Ok(records)
}

fn run_sled(sync: bool) -> Result<(), Box<dyn Error>> {
    let store = sled::open(PLACE)?;
    for number in 0..RECORDS {
        store.insert(number.to_be_bytes(), value(number))?;
        if sync {
            store.flush()?;
        }
        stored(number);
    }
    Ok(())
}

fn read_sled() -> Result<Records, Box<dyn Error>> {
    let store = sled::open(PLACE)?;
    let mut records = Vec::new();
    for entry in store.iter() {
        let (key, held) = entry?;
        records.push((u32::from_be_bytes(key.as_ref().try_into()?), held.to_vec()));
    }
    Ok(records)
}

fn wrong(code: i32, what: &str) -> ! {
    println!("{what}");
    exit(code)
}

fn check(read: fn() -> Result<Records, Box<dyn Error>>) -> Result<(), Box<dyn Error>> {
    let mut lines = String::new();
    std::io::stdin().read_to_string(&mut lines)?;
    let promised = lines.lines().count();
    if !Path::new(PLACE).exists() {
        if promised > 0 {
            wrong(1, "the store is gone");
        }
        return Ok(());
    }
    let records = read().unwrap_or_else(|problem| {
        let when = if promised == 0 { ", before anything was promised" } else { "" };
        wrong(2, &format!("the store does not open or read{when}: {problem}"))
    });
    if records.iter().any(|(number, held)| *number >= RECORDS || *held != value(*number)) {
        wrong(2, "a record has what nobody stored");
    }
    let there = records.iter().take_while(|(number, _)| (*number as usize) < promised).count();
    if there < promised {
        wrong(1, &format!("{} records are gone", promised - there));
    }
    if records.iter().zip(0..).any(|((number, _), expected)| *number != expected) {
        wrong(2, "a record is there without one before it");
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["redb", "check"] => check(read_redb),
        ["sled", "check"] => check(read_sled),
        ["redb", how @ ("sync" | "nosync")] => run_redb(how == "sync"),
        ["sled", how @ ("sync" | "nosync")] => run_sled(how == "sync"),
        _ => Err("usage: stores redb|sled sync|nosync|check".into()),
    }
}
