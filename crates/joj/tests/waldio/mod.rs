//! The extension that the tests of the command measure: the one that `make test` names, else the one beside joj.

use std::env;
use std::path::{Path, PathBuf};

/// The file; none, and a word about it, where it is not built: `cargo test -p joj` alone does not build it.
pub fn extension() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_BIN_EXE_joj")).with_file_name("libwaldio.so");
    let extension = env::var_os("WALDIO_LIBRARY").map_or(beside, PathBuf::from);
    if extension.exists() {
        return Some(extension);
    }
    skipped(&format!("{} is not built", extension.display()));
    None
}

/// Says past the test's capture that a part was skipped, so that it is counted.
pub fn skipped(reason: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "skipped: joj: {reason}");
}
