//! Files that a measurement is written to at its end.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use thiserror::Error;

/// Why a result cannot be printed or written.
#[derive(Debug, Error)]
pub enum OutputError {
    /// Two results would be written to one file.
    #[error("{} is named twice, or has a second name that is; give each result a FILE of its own", .0.display())]
    NamedTwice(PathBuf),
    /// There can be no such file.
    #[error("cannot write {}: it is a directory or its directory is missing; give another FILE", .0.display())]
    NoPlace(PathBuf),
    /// It cannot be opened to write, or not be made.
    #[error("cannot write {}: {error}; give another FILE", .path.display())]
    NotWritable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// Standard output cannot be written to.
    #[error("cannot write to standard output: {0}; make room, or send it elsewhere")]
    Standard(#[source] io::Error),
    /// The file cannot be written.
    #[error("cannot write {}: {error}; make room or give another FILE and measure again", .path.display())]
    File {
        /// The file; a part may be there.
        path: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// The result cannot be written as JSON: a fault of joj's.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

/// Looks whether files can be made, and that each is another one, before a minute of measuring and not after it. `-` is
/// standard output.
/// # Errors
/// Where one cannot be made, or two are the same.
pub fn check_writable<'a>(files: impl IntoIterator<Item = &'a PathBuf>) -> Result<(), OutputError> {
    check_apart(std::iter::empty(), files)
}

/// The same, and that none is a file that is read. Whether those can be read, whoever opens them says.
/// # Errors
/// As [`check_writable`].
pub fn check_apart<'a>(
    read: impl IntoIterator<Item = &'a PathBuf>,
    files: impl IntoIterator<Item = &'a PathBuf>,
) -> Result<(), OutputError> {
    let read = read.into_iter().filter(|file| !is_stdout(file));
    let mut places: Vec<PathBuf> =
        read.filter_map(|file| fs::canonicalize(file).ok()).filter(|file| file.is_file()).collect();
    for file in files.into_iter().filter(|file| !is_stdout(file)) {
        let place = place(file)?;
        if places.iter().any(|known| *known == place || is_same_file(known, &place)) {
            return Err(OutputError::NamedTwice(file.clone()));
        }
        open_for_a_moment(&place).map_err(|error| OutputError::NotWritable { path: file.clone(), error })?;
        // Nothing is kept in a device, such as /dev/null.
        if !place.exists() || place.is_file() {
            places.push(place);
        }
    }
    Ok(())
}

/// Opens the file to write, and leaves everything as it was. /proc has directories and rights, and takes no file.
fn open_for_a_moment(place: &Path) -> io::Result<()> {
    match fs::symlink_metadata(place) {
        // To open a FIFO would wait for its reader; a link that leads nowhere is one to a file that will be made.
        Ok(facts) if !facts.is_file() => Ok(()),
        Ok(_) => OpenOptions::new().append(true).open(place).map(drop),
        Err(_) => {
            OpenOptions::new().write(true).create_new(true).open(place)?;
            fs::remove_file(place)
        }
    }
}

/// True for two names of one file that is there.
fn is_same_file(one: &Path, other: &Path) -> bool {
    let identity = |path: &Path| {
        fs::metadata(path).ok().filter(fs::Metadata::is_file).map(|facts| (facts.dev(), facts.ino()))
    };
    identity(one).is_some_and(|one| Some(one) == identity(other))
}

/// The path without links of a file that can be made.
fn place(file: &Path) -> Result<PathBuf, OutputError> {
    let parent = match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let directory = fs::canonicalize(parent).ok().filter(|directory| directory.is_dir() && !file.is_dir());
    let place = directory.zip(file.file_name()).map(|(directory, name)| directory.join(name));
    let place = place.ok_or_else(|| OutputError::NoPlace(file.to_owned()))?;
    Ok(fs::canonicalize(&place).unwrap_or(place))
}

/// What is wrong where both JSON and Markdown would go to standard output.
pub fn both_printed(json: &Option<PathBuf>, markdown: &Option<PathBuf>) -> Option<&'static str> {
    let is_printed = |file: &Option<PathBuf>| file.as_deref().is_some_and(is_stdout);
    (is_printed(json) && is_printed(markdown))
        .then_some("only one of --json and --markdown can go to standard output")
}

/// True where `--json FILE` means standard output.
pub fn is_stdout(file: &Path) -> bool {
    file.as_os_str() == "-"
}

/// Gives a result: as JSON where `json` names a file, and as text on standard output, unless the JSON stands there. The text is printed
/// also where the JSON cannot be written: it may have taken hours to measure.
/// # Errors
/// As [`print()`] and [`write()`], the first one.
pub fn report(
    json: Option<&Path>,
    result: &impl Serialize,
    text: impl FnOnce() -> String,
) -> Result<(), OutputError> {
    let Some(file) = json else { return print(&text()) };
    let json = serde_json::to_string_pretty(result).map(|json| format!("{json}\n"));
    if is_stdout(file) {
        return print(&json?);
    }
    let written = json.map_err(OutputError::Json).and_then(|json| write(file, &json));
    let printed = print(&text());
    written.and(printed)
}

/// Gives a result as [`report`] does, and as Markdown where `markdown` names a file: instead of the text where that is standard output.
/// One that cannot be written keeps none of the others from it.
/// # Errors
/// As [`report`].
pub fn report_with_markdown(
    json: Option<&Path>,
    markdown: Option<&Path>,
    result: &impl Serialize,
    text: impl FnOnce() -> String,
    as_markdown: impl FnOnce() -> String,
) -> Result<(), OutputError> {
    if markdown.is_some_and(is_stdout) {
        return report(json, result, as_markdown);
    }
    let written = write_where(markdown, as_markdown);
    let reported = report(json, result, text);
    written.and(reported)
}

/// Writes to standard output. A closed pipe (`| head`) is the reader's choice, not an error.
/// # Errors
/// Where it cannot be written: a full disk behind `>`.
pub fn print(text: &str) -> Result<(), OutputError> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(OutputError::Standard(error)),
        _ => Ok(()),
    }
}

/// Writes the file.
/// # Errors
/// Where there is no room or no permission; a part may be there then.
pub fn write(file: &Path, text: &str) -> Result<(), OutputError> {
    fs::write(file, text).map_err(|error| OutputError::File { path: file.to_owned(), error })
}

/// Writes the file where one is named.
/// # Errors
/// As [`write()`].
pub fn write_where(file: Option<&Path>, text: impl FnOnce() -> String) -> Result<(), OutputError> {
    file.map_or(Ok(()), |file| write(file, &text()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The disk is full there.
    const FULL: &str = "/dev/full";

    #[test]
    fn a_file_that_is_read_is_not_written_by_another_name() {
        let directory = std::env::temp_dir().join(format!("joj-output-names-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let [read, link, symlink, other] =
            ["read", "link", "symlink", "other"].map(|name| directory.join(name));
        fs::write(&read, "").unwrap();
        fs::write(&other, "").unwrap();
        fs::hard_link(&read, &link).unwrap();
        std::os::unix::fs::symlink(&read, &symlink).unwrap();
        let refused = [&read, &link, &symlink].map(|file| check_apart([&read], [file]).is_err());
        let two = check_writable([&read, &link]).is_err();
        let apart = check_apart([&read], [&other]).is_ok();
        fs::remove_dir_all(&directory).unwrap();
        assert_eq!((refused, two, apart), ([true; 3], true, true));
    }

    #[test]
    fn a_file_that_cannot_be_made_is_told_before_and_one_that_can_is_not_left() {
        let refused = check_writable([&PathBuf::from("/proc/joj.json")]).unwrap_err().to_string();
        assert!(refused.starts_with("cannot write /proc/joj.json: ") && refused.ends_with("another FILE"));
        let directory = std::env::temp_dir().join(format!("joj-output-probe-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let [new, old, link] = ["new", "old", "link"].map(|name| directory.join(name));
        fs::write(&old, "kept").unwrap();
        std::os::unix::fs::symlink("none", &link).unwrap();
        let told = check_writable([&new, &old, &link, &PathBuf::from("/dev/null")]).is_ok();
        let left =
            (new.exists(), fs::read_to_string(&old).unwrap(), fs::read_dir(&directory).unwrap().count());
        fs::remove_dir_all(&directory).unwrap();
        assert_eq!((told, left), (true, (false, "kept".to_owned(), 2)));
    }

    #[test]
    fn a_file_that_cannot_be_written_keeps_no_other_from_it() {
        let [markdown, json] = ["md", "json"]
            .map(|end| std::env::temp_dir().join(format!("joj-output-{}.{end}", std::process::id())));
        let full = Path::new(FULL);
        for files in [[full, &json], [&markdown, full]] {
            let told = report_with_markdown(
                Some(files[1]),
                Some(files[0]),
                &1,
                || "text\n".to_owned(),
                || "# 1\n".to_owned(),
            );
            assert!(told.unwrap_err().to_string().contains(FULL));
        }
        let written = [&markdown, &json].map(|file| fs::read_to_string(file).unwrap());
        assert_eq!(written, ["# 1\n", "1\n"]);
        for file in [markdown, json] {
            fs::remove_file(file).unwrap();
        }
    }
}
