//! Files that a measurement is written to at its end.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

/// Looks whether files can be made, and that each is another one, before a minute of measuring and not after it. `-` is
/// standard output.
/// # Errors
/// Where one cannot be made, or two are the same.
pub fn check_writable<'a>(files: impl IntoIterator<Item = &'a PathBuf>) -> Result<(), String> {
    let mut places: Vec<PathBuf> = Vec::new();
    for file in files.into_iter().filter(|file| !is_stdout(file)) {
        let place = place(file)?;
        if places.contains(&place) {
            let name = file.display();
            return Err(format!("{name} is named twice; give each result a FILE of its own"));
        }
        // Nothing is kept in a device, such as /dev/null.
        if !place.exists() || place.is_file() {
            places.push(place);
        }
    }
    Ok(())
}

/// The path without links of a file that can be made.
fn place(file: &Path) -> Result<PathBuf, String> {
    let parent = match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let directory = fs::canonicalize(parent).ok().filter(|directory| directory.is_dir() && !file.is_dir());
    let place = directory.zip(file.file_name()).map(|(directory, name)| directory.join(name));
    let place = place.ok_or_else(|| {
        let name = file.display();
        format!("cannot write {name}: it is a directory or its directory is missing; give another FILE")
    })?;
    Ok(fs::canonicalize(&place).unwrap_or(place))
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
