//! Traces in other formats, written while events go by.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use joj_analysis::trace::attribution::attribute::Outcome;
use joj_analysis::trace::event::Event;
use joj_analysis::trace::export::{Exporter, TraceFormat};
use joj_analysis::trace::header::Header;
use joj_analysis::trace::texts::Texts;

use crate::trace::error::ExportError;

struct Export {
    exporter: Box<dyn Exporter>,
    path: PathBuf,
    out: BufWriter<File>,
}

/// The files that were asked for. The first error ends all: a part is not shown as the whole, so the files of a trace that was
/// not read or captured to its end are removed.
#[derive(Default)]
pub struct Exports {
    files: Vec<Export>,
    problem: Option<ExportError>,
}

impl Drop for Exports {
    fn drop(&mut self) {
        for file in &self.files {
            // Devices and pipes are not ours to remove; and the problem matters more than what is left of a file.
            if std::fs::symlink_metadata(&file.path).is_ok_and(|metadata| metadata.is_file()) {
                let _ = std::fs::remove_file(&file.path);
            }
        }
    }
}

impl Export {
    fn create(format: &TraceFormat, path: &Path, header: &Header) -> io::Result<Self> {
        let mut out = BufWriter::new(File::create(path)?);
        let exporter = (format.begin)(header, &mut out)?;
        Ok(Self { exporter, path: path.to_owned(), out })
    }

    fn finish(&mut self) -> io::Result<()> {
        self.exporter.finish(&mut self.out)?;
        self.out.flush()
    }
}

impl Exports {
    /// Begins the files.
    /// # Errors
    /// One cannot be made.
    pub fn create(wanted: &[(&TraceFormat, PathBuf)], header: &Header) -> Result<Self, ExportError> {
        let mut exports = Self::default();
        for (format, path) in wanted {
            let file = Export::create(format, path, header)
                .map_err(|error| ExportError::Create { path: path.clone(), error })?;
            exports.files.push(file);
        }
        Ok(exports)
    }

    /// An event goes by.
    pub fn event(&mut self, event: &Event, texts: &Texts) {
        self.each(|file| file.exporter.event(event, texts, &mut file.out));
    }

    /// Something is complete.
    pub fn outcome(&mut self, outcome: &Outcome<'_>, texts: &Texts) {
        self.each(|file| file.exporter.outcome(outcome, texts, &mut file.out));
    }

    fn each(&mut self, mut write: impl FnMut(&mut Export) -> io::Result<()>) {
        if self.problem.is_some() {
            return;
        }
        for file in &mut self.files {
            if let Err(error) = write(file) {
                self.problem = Some(ExportError::Write { path: file.path.clone(), error });
                return;
            }
        }
    }

    /// The trace is over.
    /// # Errors
    /// A file could not be written; then all of them are removed.
    pub fn finish(mut self) -> Result<(), ExportError> {
        self.each(Export::finish);
        if let Some(problem) = self.problem.take() {
            return Err(problem);
        }
        // Whole now: nothing is removed.
        self.files.clear();
        Ok(())
    }
}
