//! SQLite and the extension, loaded and asked in a worker: what they are, and whether the extension takes its options.

use serde::{Deserialize, Serialize};

use crate::bench::worker::task::{Refusal, Reply, Task};
use crate::machine::sqlite::connection::{self, Connection};
use crate::machine::sqlite::sqlite_api::Api;

/// What to load; by default the SQLite inside joj, alone and as it is.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Libraries {
    /// File of the SQLite build; none for the one inside joj.
    pub sqlite: Option<String>,
    /// File of the waldio extension; none for stock modes.
    pub extension: Option<String>,
    /// Commit with F2FS's atomic writes where a rollback journal would be; the build must be made for that. Without it SQLite is kept
    /// from them.
    pub batch_atomic: bool,
    /// Keep SQLite from syncing the directory of a rollback journal, as builds with `SQLITE_DISABLE_DIRSYNC` do.
    pub no_directory_sync: bool,
    /// What can be done where the extension does not load, but to build it: `or leave it out`.
    pub without: Option<String>,
}

/// The SQLite of `libraries`, with the extension in it if there is one.
/// # Errors
/// Where it cannot be loaded, or is not built as it has to be.
pub fn load(libraries: &Libraries) -> Result<Api, Refusal> {
    let api = match &libraries.sqlite {
        None => Api::bundled(),
        Some(file) => Api::from_file(file).map_err(|reason| {
            Refusal::new(format!(
                "cannot use {file} as a SQLite library: {reason}; give another with `--sqlite FILE.so`"
            ))
        })?,
    };
    if !libraries.batch_atomic {
        api.refuse_ioctls();
    } else if !connection::is_compiled_with(&api, "ENABLE_BATCH_ATOMIC_WRITE")? {
        return Err(Refusal::new(
            "this SQLite is built without SQLITE_ENABLE_BATCH_ATOMIC_WRITE; build joj where its .cargo/config.toml is, with \
             no LIBSQLITE3_FLAGS in the environment"
                .to_owned(),
        ));
    }
    if libraries.no_directory_sync && !api.refuse_directories() {
        return Err(Refusal::new(
            "this SQLite cannot be kept from syncing directories: leave directory_sync = [false] out, or take another".to_owned(),
        ));
    }
    if let Some(extension) = &libraries.extension {
        let throw_away = Connection::open(&api, ":memory:")?;
        throw_away.load_extension(extension).map_err(|error| {
            // waldio's own words for a wrong value in the environment, where `--waldio-option` puts it.
            let remedy = if error.message.contains("environment variable WALDIO_") {
                "mend the option, or the variable, or leave it out".to_owned()
            } else {
                let build = "build it with `cargo build --release -p waldio`";
                libraries
                    .without
                    .iter()
                    .fold(build.to_owned(), |build, without| format!("{build}, {without}"))
            };
            let version = connection::version(&api).0;
            Refusal::new(format!("SQLite {version} does not load {extension}: {}; {remedy}", error.message))
        })?;
        throw_away.close()?;
    }
    Ok(api)
}

/// Load a SQLite build, and the extension if there is one, and say what they are.
#[derive(Debug, Serialize, Deserialize)]
pub struct DescribeTask {
    /// What to load.
    pub libraries: Libraries,
}

/// What SQLite says it is.
#[derive(Debug, Serialize, Deserialize)]
pub struct SqliteIdentity {
    /// `sqlite3_libversion()`.
    pub version: String,
    /// `sqlite3_sourceid()`.
    pub source_id: String,
}

impl Task for DescribeTask {
    const NAME: &'static str = "describe";
    type Answer = SqliteIdentity;
    fn run(&self) -> Reply<Self> {
        let (version, source_id) = connection::version(&load(&self.libraries)?);
        Ok(SqliteIdentity { version, source_id })
    }
}

/// Set each of these options of the extension, as it names them, on a new database: it says itself which it has and what they
/// may be.
#[derive(Debug, Serialize, Deserialize)]
pub struct OptionsTask {
    /// What to load.
    pub libraries: Libraries,
    /// Where the database goes.
    pub directory: String,
    /// Names and values.
    pub options: Vec<(String, String)>,
}

impl Task for OptionsTask {
    const NAME: &'static str = "set options";
    type Answer = ();
    fn run(&self) -> Reply<Self> {
        let api = &load(&self.libraries)?;
        let connection = Connection::open(api, &format!("{}/options.db", self.directory))?;
        for (name, value) in &self.options {
            set_option(&connection, name, value)?;
        }
        connection.close()?;
        Ok(())
    }
}

fn set_option(connection: &Connection<'_>, name: &str, value: &str) -> Result<(), Refusal> {
    let refuse = |reason: &str| {
        Refusal::new(format!(
            "`--waldio-option {name}={value}` cannot be measured: {reason}; mend the option or leave it out"
        ))
    };
    let literal = value.replace('\'', "''");
    let taken = connection.value(&format!("PRAGMA waldio_{name}='{literal}'"));
    if taken.map_err(|error| refuse(&error.message))?.is_empty() {
        return Err(refuse("this waldio does not know it"));
    }
    Ok(())
}
