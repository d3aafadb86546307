//! The directory of the test, and what of it joj made: that goes again where the test fails or is stopped.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use joj_analysis::mobibench::setup::MobibenchSetup;
use joj_analysis::trace::file_type::SQLITE_ENDINGS;

use crate::mobibench::error::MobibenchError;

/// What is to be removed where the test comes to nothing.
#[derive(Debug)]
pub struct TestPlace {
    directory: PathBuf,
    is_new_directory: bool,
    new_files: Vec<PathBuf>,
}

impl TestPlace {
    /// Makes the directory where it is missing, and looks which files of the test are there already.
    /// # Errors
    /// As mkdir(2).
    pub fn make(setup: &MobibenchSetup) -> Result<TestPlace, MobibenchError> {
        let directory = PathBuf::from(&setup.directory);
        let is_new_directory = match fs::create_dir(&directory) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
            Err(error) => return Err(MobibenchError::NoDirectory { path: directory, error }),
        };
        let files = setup.files();
        let new = files.iter().filter(|file| !Path::new(file).exists());
        let with_ending =
            |file: &String| SQLITE_ENDINGS.map(|ending| PathBuf::from(format!("{file}{ending}")));
        let new_files = new.flat_map(|file| std::iter::once(file.into()).chain(with_ending(file))).collect();
        Ok(TestPlace { directory, is_new_directory, new_files })
    }

    /// Removes what was not there before; what stays is said.
    pub fn remove_new(&self) {
        for file in &self.new_files {
            match fs::remove_file(file) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    eprintln!("joj: cannot remove {}: {error}; remove it by hand", file.display());
                }
                _ => {}
            }
        }
        if self.is_new_directory {
            // Somebody else's file may be in it by now.
            let _ = fs::remove_dir(&self.directory);
        }
    }
}
