//! The SQLite builds and the extension that a plan needs, found and asked who they are.

use std::io;
use std::path::{Path, PathBuf};

use joj_analysis::bench::environment::{SqliteBuild, WaldioFacts};
use joj_analysis::bench::key::JournalMode;
use joj_analysis::bench::run::SyncCount;
use thiserror::Error;

use crate::bench::ask::{Asker, Stop};
use crate::bench::worker::libraries::{DescribeTask, Libraries, OptionsTask};
use crate::command_line::BenchOptions;
use crate::machine::files::work_dir::WorkDir;

/// How Debian and most others name the system's SQLite for programs.
pub const SYSTEM_LIBRARY: &str = "libsqlite3.so.0";

/// File name of the extension.
const EXTENSION: &str = "libwaldio.so";

/// A build is named that there is not.
#[derive(Debug, Error)]
#[error("there is no build `{0}`; take bundled, system, or add `--sqlite {0}`")]
pub struct UnknownBuild(String);

/// Why there is no extension to load.
#[derive(Debug, Error)]
pub enum ExtensionError {
    /// joj does not know where it lies itself.
    #[error("cannot find joj's own file: {0}")]
    OwnFile(#[source] io::Error),
    /// The one that was named is not there.
    #[error("cannot find the waldio extension {}: {error}; give the right path", .file.display())]
    Wrong {
        /// The file.
        file: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// None lies beside joj.
    #[error(
        "cannot find the waldio extension {}: {error}; build it with `cargo build --release -p waldio`, name it with `--waldio FILE.so`, {without}",
        .file.display()
    )]
    NotBuilt {
        /// Where it is looked for.
        file: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
        /// What else can be done.
        without: &'static str,
    },
}

/// All that can be loaded; by default nothing.
#[derive(Debug, Default)]
pub struct Builds {
    /// The SQLite builds.
    pub list: Vec<SqliteBuild>,
    /// The extension, where the plan needs it.
    pub waldio: Option<WaldioFacts>,
    /// What the user should know, for example that there is no system library.
    pub notes: Vec<String>,
}

impl Builds {
    /// Finds what `options` ask for and loads each of it once.
    /// # Errors
    /// What is missing and how to get it.
    pub fn find(
        options: &BenchOptions,
        needs_waldio: bool,
        work_dir: &WorkDir,
        asker: &Asker<'_>,
    ) -> Result<Builds, Stop> {
        let mut builds = Builds::default();
        let wants =
            |name: &str| options.builds.is_empty() || options.builds.iter().any(|wanted| wanted == name);
        // Many writers and the study take minutes a build: one will do where none is named, and which call it makes
        // matters less.
        let one_will_do = options.is_contended() || options.is_study();
        let is_spared = |list: &[SqliteBuild]| one_will_do && options.builds.is_empty() && !list.is_empty();
        if wants("bundled") && !one_will_do {
            builds.list.push(describe("bundled", None, asker)?);
        }
        if wants("system") {
            match describe("system", Some(SYSTEM_LIBRARY), asker) {
                Ok(build) => builds.list.push(build),
                Err(Stop::Failed(reason)) if options.builds.is_empty() => builds.notes.push(format!(
                    "rows of the system's SQLite are left out: {reason}; on Debian `apt install libsqlite3-0` brings it"
                )),
                Err(stop) => return Err(stop),
            }
        }
        if wants("bundled") && one_will_do && !is_spared(&builds.list) {
            builds.list.push(describe("bundled", None, asker)?);
        }
        for file in options.sqlite.iter().filter(|file| wants(file)) {
            builds.list.push(describe(file, Some(file), asker)?);
        }
        if needs_waldio {
            builds.waldio = Some(builds.find_waldio(options, work_dir, asker)?);
        }
        Ok(builds)
    }

    fn find_waldio(
        &self,
        options: &BenchOptions,
        work_dir: &WorkDir,
        asker: &Asker<'_>,
    ) -> Result<WaldioFacts, Stop> {
        let without = "or measure without it: `--modes delete,truncate,persist,memory,off,wal` (of the study: \
                       `--waldio-study=init,alignment`)";
        let file = extension_file(options.waldio.as_deref(), without)
            .map_err(|error| Stop::Failed(error.to_string()))?;
        let size = std::fs::metadata(&file).map(|facts| facts.len()).unwrap_or(0);
        let name = file.to_string_lossy().into_owned();
        for build in &self.list {
            let libraries = Libraries {
                sqlite: build.file.clone(),
                extension: Some(name.clone()),
                without: Some(without.to_owned()),
                ..Libraries::default()
            };
            asker.ask(&DescribeTask { libraries: libraries.clone() })?;
            if !options.waldio_option.is_empty() {
                let directory = work_dir.path().to_string_lossy().into_owned();
                let options = options.waldio_option.clone();
                asker.ask(&OptionsTask { libraries, directory, options })?;
                work_dir
                    .clear()
                    .map_err(|error| Stop::Failed(format!("cannot remove a database: {error}")))?;
            }
        }
        let option = |(name, value): &(String, String)| format!("{name}={value}");
        Ok(WaldioFacts {
            file: name,
            file_bytes: size,
            options: options.waldio_option.iter().map(option).collect(),
        })
    }
}

/// Says which build is named that there is not.
/// # Errors
/// Its name.
pub fn check_names(options: &BenchOptions) -> Result<(), UnknownBuild> {
    let is_known =
        |name: &str| matches!(name, "bundled" | "system") || options.sqlite.iter().any(|file| file == name);
    match options.builds.iter().find(|name| !is_known(name)) {
        Some(unknown) => Err(UnknownBuild(unknown.clone())),
        None => Ok(()),
    }
}

fn describe(name: &str, file: Option<&str>, asker: &Asker<'_>) -> Result<SqliteBuild, Stop> {
    let libraries = Libraries { sqlite: file.map(str::to_owned), ..Libraries::default() };
    let described = asker.ask(&DescribeTask { libraries })?;
    Ok(SqliteBuild {
        name: name.to_owned(),
        file: file.map(str::to_owned),
        version: described.version,
        source_id: described.source_id,
        sync_call: "unknown".to_owned(),
        sync_call_evidence: "not counted".to_owned(),
    })
}

/// The sync call of each build, from the calls that its stock rows made: mode, build and calls of each row.
pub fn name_sync_calls<'rows>(
    builds: &mut [SqliteBuild],
    rows: impl Iterator<Item = (JournalMode, &'rows str, Option<&'rows SyncCount>)> + Clone,
) {
    for build in builds {
        let is_of_stock = |mode: JournalMode, library| !mode.uses_waldio() && library == build.name;
        let counts: Vec<&SyncCount> = rows
            .clone()
            .filter_map(|(mode, library, count)| count.filter(|_| is_of_stock(mode, library)))
            .collect();
        let mut sum = SyncCount::default();
        for count in &counts {
            sum.add(count);
        }
        if counts.is_empty() {
            build.sync_call_evidence =
                "not counted: no stock row, or the kernel refuses seccomp's notices".to_owned();
            continue;
        }
        build.sync_call = sum.call_name().to_owned();
        build.sync_call_evidence = format!(
            "counted with seccomp: {} fsync, {} fdatasync in {} transactions of its stock rows",
            sum.fsync, sum.fdatasync, sum.transactions
        );
    }
}

/// The extension as an absolute path: SQLite looks up a bare name elsewhere. `without`: what else can be done.
/// # Errors
/// Where there is none, and how to mend it.
pub fn extension_file(named: Option<&Path>, without: &'static str) -> Result<PathBuf, ExtensionError> {
    let file = match named {
        Some(file) => file.to_owned(),
        None => {
            let program = std::env::current_exe().map_err(ExtensionError::OwnFile)?;
            program.parent().unwrap_or(Path::new(".")).join(EXTENSION)
        }
    };
    file.canonicalize().map_err(|error| match named {
        Some(_) => ExtensionError::Wrong { file, error },
        None => ExtensionError::NotBuilt { file, error, without },
    })
}
