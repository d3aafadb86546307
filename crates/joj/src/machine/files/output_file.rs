//! Files that a measurement is written to at its end.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;

/// Looks whether a file can be made, before a minute of measuring and not after it. `-` is standard output.
/// # Errors
/// Where it cannot.
pub fn check_writable(file: &Path) -> Result<(), String> {
    if is_stdout(file) {
        return Ok(());
    }
    let parent = match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    if file.is_dir() || !parent.is_dir() {
        let name = file.display();
        return Err(format!(
            "cannot write {name}: it is a directory or its directory is missing; give another FILE"
        ));
    }
    Ok(())
}

/// True where `--json FILE` means standard output.
pub fn is_stdout(file: &Path) -> bool {
    file.as_os_str() == "-"
}

/// Gives a result: as JSON where `json` names a file, and as text on standard output, unless the JSON stands there.
/// # Errors
/// As [`print()`] and [`write()`].
pub fn report(
    json: Option<&Path>,
    result: &impl Serialize,
    text: impl FnOnce() -> String,
) -> Result<(), String> {
    let Some(file) = json else { return print(&text()) };
    let json = serde_json::to_string_pretty(result).map_err(|error| error.to_string())?;
    if is_stdout(file) {
        return print(&format!("{json}\n"));
    }
    write(file, &format!("{json}\n"))?;
    print(&text())
}

/// Writes to standard output. A closed pipe (`| head`) is the reader's choice, not an error.
/// # Errors
/// Where it cannot be written: a full disk behind `>`.
pub fn print(text: &str) -> Result<(), String> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(format!("cannot write to standard output: {error}; make room, or send it elsewhere"))
        }
        _ => Ok(()),
    }
}

/// Writes the file.
/// # Errors
/// Where there is no room or no permission; a part may be there then.
pub fn write(file: &Path, text: &str) -> Result<(), String> {
    fs::write(file, text).map_err(|error| {
        let name = file.display();
        format!("cannot write {name}: {error}; make room or give another FILE and measure again")
    })
}
