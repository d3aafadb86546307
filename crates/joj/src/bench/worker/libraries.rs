//! SQLite and the extension, loaded and asked in a worker: what they are, and whether the extension takes its options.

use crate::bench::worker::task::{Answer, Libraries, Refusal, Reply};
use crate::machine::sqlite::connection::{self, Connection};
use crate::machine::sqlite::sqlite_api::Api;

/// The SQLite of `libraries`, with the extension in it if there is one.
/// # Errors
/// Where it cannot be loaded, or is not built as it has to be.
pub fn load(libraries: &Libraries) -> Result<Api, Refusal> {
    let refuse = |message| Refusal { message, disk_full: false };
    let api = match &libraries.sqlite {
        None => Api::bundled(),
        Some(file) => Api::from_file(file).map_err(|reason| {
            refuse(format!(
                "cannot use {file} as a SQLite library: {reason}; give another with `--sqlite FILE.so`"
            ))
        })?,
    };
    if !libraries.batch_atomic {
        api.refuse_ioctls();
    } else if !connection::is_compiled_with(&api, "ENABLE_BATCH_ATOMIC_WRITE")? {
        return Err(refuse(
            "this SQLite is built without SQLITE_ENABLE_BATCH_ATOMIC_WRITE; build joj where its .cargo/config.toml is, with \
             no LIBSQLITE3_FLAGS in the environment"
                .to_owned(),
        ));
    }
    if libraries.no_directory_sync && !api.refuse_directories() {
        return Err(refuse(
            "this SQLite cannot be kept from syncing directories: leave directory_sync = [false] out, or take another".to_owned(),
        ));
    }
    if let Some(extension) = &libraries.extension {
        let throw_away = Connection::open(&api, ":memory:")?;
        throw_away.load_extension(extension).map_err(|error| {
            refuse(format!(
                "SQLite {} does not load {extension}: {}; build it with `cargo build --release -p waldio`, or \
                 measure without it: `--modes delete,truncate,persist,memory,off,wal`",
                connection::version(&api).0,
                error.message
            ))
        })?;
        throw_away.close()?;
    }
    Ok(api)
}

/// Says what `libraries` are.
/// # Errors
/// As [`load`].
pub fn describe(libraries: &Libraries) -> Reply {
    let (version, source_id) = connection::version(&load(libraries)?);
    Ok(Answer::Described { version, source_id })
}

/// Whether the extension takes `options`: it says itself which it has and what they may be.
/// # Errors
/// Which one it does not take; or as [`load`].
pub fn set_options(libraries: &Libraries, directory: &str, options: &[(String, String)]) -> Reply {
    let api = &load(libraries)?;
    let connection = Connection::open(api, &format!("{directory}/options.db"))?;
    for (name, value) in options {
        let literal = value.replace('\'', "''");
        let refuse = |reason: &str| Refusal {
            message: format!(
                "`--waldio-option {name}={value}` cannot be measured: {reason}; mend the option or leave it out"
            ),
            disk_full: false,
        };
        let taken = connection.value(&format!("PRAGMA waldio_{name}='{literal}'"));
        if taken.map_err(|error| refuse(&error.message))?.is_empty() {
            return Err(refuse("this waldio does not know it"));
        }
    }
    connection.close()?;
    Ok(Answer::OptionsSet)
}
