//! Traces in other formats, written while events go by.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use joj_analysis::trace::attribution::attribute::Outcome;
use joj_analysis::trace::event::Event;
use joj_analysis::trace::export::{Exporter, TraceFormat};
use joj_analysis::trace::header::Header;
use joj_analysis::trace::texts::Texts;

use crate::command_line::trace::ExportFormat;
use crate::trace::error::ExportError;
use crate::trace_tables::facts::Facts;
use crate::trace_tables::tables::Tables;

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
    tables: Vec<Tables>,
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
    pub fn create(
        wanted: &[(ExportFormat, PathBuf)],
        labels: &[(String, String)],
        header: &Header,
    ) -> Result<Self, ExportError> {
        let mut exports = Self::default();
        for (format, path) in wanted {
            let ExportFormat::File(format) = format else {
                exports.tables.push(Tables::create(path, Facts::of(header, labels))?);
                continue;
            };
            let file = Export::create(format, path, header)
                .map_err(|error| ExportError::Create { path: path.clone(), error })?;
            exports.files.push(file);
        }
        Ok(exports)
    }

    /// An event goes by.
    pub fn event(&mut self, event: &Event, texts: &Texts) {
        self.each(|file| file.exporter.event(event, texts, &mut file.out));
        self.tables.iter_mut().for_each(|tables| tables.event(event));
    }

    /// Something is complete; `counts`: whether its process is one of those whose calls and commits count.
    pub fn outcome(&mut self, outcome: &Outcome<'_>, counts: bool, texts: &Texts) {
        self.each(|file| file.exporter.outcome(outcome, texts, &mut file.out));
        if self.problem.is_none() {
            let written =
                self.tables.iter_mut().try_for_each(|tables| tables.outcome(outcome, counts, texts));
            self.problem = written.err().map(ExportError::Tables);
        }
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
    /// A file or a table could not be written. Then all files are removed, and what of tables has no name yet; a table that has
    /// its name is whole, and stays.
    pub fn finish(mut self, header: &Header, texts: &Texts) -> Result<(), ExportError> {
        self.each(Export::finish);
        if self.problem.is_none() {
            let lost = header.ending.as_ref().map(|ending| ending.lost);
            let mut tables = std::mem::take(&mut self.tables).into_iter();
            let finished = tables.try_for_each(|tables| tables.finish(lost, texts));
            self.problem = finished.err().map(ExportError::Tables);
        }
        if let Some(problem) = self.problem.take() {
            return Err(problem);
        }
        // Whole now: nothing is removed.
        self.files.clear();
        Ok(())
    }
}
