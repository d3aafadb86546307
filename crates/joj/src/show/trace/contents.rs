//! What is in a request, in words: `data app.db-journal 0..12 KiB; journal: descriptor, log of inode table`.

use joj_analysis::filesystem::class::{Class, Part};
use joj_analysis::trace::attribution::request::{BlockRun, Evidence};
use joj_analysis::trace::event::FileKey;
use joj_analysis::trace::texts::Texts;

use crate::show::words::{last_part, path};

/// So many pieces are named; how many more there are is told.
const PIECES_MAX: usize = 8;
/// So much of a file's name fits.
const NAME_LETTERS: usize = 32;

/// Neighbouring runs that read as one.
#[derive(Debug)]
struct ContentPiece {
    class: Class,
    what: What,
}

#[derive(Debug, PartialEq)]
enum What {
    /// Bytes of a file.
    Bytes { file: FileKey, name: String, from: u64, to: u64, by_extent: bool },
    /// Blocks of the filesystem.
    Blocks(Part),
}

/// The contents of these runs; empty where no run has bytes.
pub fn words(runs: &[BlockRun], texts: &Texts) -> String {
    let mut pieces: Vec<ContentPiece> = Vec::new();
    for run in runs.iter().filter(|run| run.bytes > 0) {
        add(&mut pieces, run, texts);
    }
    let mut text = String::new();
    let mut before = None;
    for piece in pieces.iter().take(PIECES_MAX) {
        let is_new = before != Some(piece.class);
        text.push_str(match (before, is_new) {
            (None, _) => "",
            (Some(_), true) => "; ",
            (Some(_), false) => ", ",
        });
        let class = if is_new { piece.class.text() } else { "" };
        text.push_str(&match &piece.what {
            What::Blocks(Part::Plain) if is_new => class.to_owned(),
            What::Blocks(Part::Plain) => "other".to_owned(),
            What::Blocks(part) if is_new => format!("{class}: {}", part.text()),
            What::Blocks(part) => part.text().to_owned(),
            What::Bytes { name, from, to, by_extent, .. } => {
                let space = if is_new { " " } else { "" };
                let evidence = if *by_extent { " (by its extents)" } else { "" };
                format!("{class}{space}{name} {}{evidence}", range(*from, *to))
            }
        });
        before = Some(piece.class);
    }
    if pieces.len() > PIECES_MAX {
        text.push_str(&format!(" and {} more", pieces.len() - PIECES_MAX));
    }
    text
}

fn add(pieces: &mut Vec<ContentPiece>, run: &BlockRun, texts: &Texts) {
    if !run.file.is_some() {
        let what = What::Blocks(run.part);
        // Which of them were logged matters, not in which order.
        if pieces.iter().all(|piece| piece.class != run.class || piece.what != what) {
            pieces.push(ContentPiece { class: run.class, what });
        }
        return;
    }
    if let Some(ContentPiece { class, what: What::Bytes { file, to, .. } }) = pieces.last_mut()
        && *class == run.class
        && *file == run.file
        && *to == run.offset
    {
        *to = run.offset.saturating_add(run.bytes);
        return;
    }
    let mut name = path(last_part(texts.get(run.name)), NAME_LETTERS);
    if run.deleted {
        name.push_str(" (deleted)");
    }
    let (from, to) = (run.offset, run.offset.saturating_add(run.bytes));
    let by_extent = run.evidence == Evidence::Extent;
    pieces.push(ContentPiece {
        class: run.class,
        what: What::Bytes { file: run.file, name, from, to, by_extent },
    });
}

fn range(from: u64, to: u64) -> String {
    if from.is_multiple_of(1024) && to.is_multiple_of(1024) {
        format!("{}..{} KiB", from / 1024, to / 1024)
    } else {
        format!("{from}..{to} B")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_of_a_file_are_one_range_and_blocks_are_named_once() {
        let mut texts = Texts::default();
        let name = texts.keep("/data/app.db");
        let file = FileKey { inode: 12, ..FileKey::NONE };
        let data =
            |offset, bytes| BlockRun { class: Class::Data, file, name, offset, bytes, ..BlockRun::default() };
        assert_eq!(words(&[data(0, 4096), data(4096, 8192)], &texts), "data app.db 0..12 KiB");
        assert_eq!(
            words(&[data(0, 512), data(8192, 512)], &texts),
            "data app.db 0..512 B, app.db 8192..8704 B"
        );
        let block = |class, part| BlockRun { class, part, bytes: 4096, ..BlockRun::default() };
        let log = |part| block(Class::Journal, part);
        let runs =
            [log(Part::Descriptor), log(Part::LogOfInodeTable), log(Part::LogOfInodeTable), data(0, 1024)];
        assert_eq!(words(&runs, &texts), "journal: descriptor, log of inode table; data app.db 0..1 KiB");
        let runs = [block(Class::Metadata, Part::Plain), block(Class::Unattributed, Part::Plain)];
        assert_eq!(words(&runs, &texts), "metadata; unattributed");
        let deleted = BlockRun { deleted: true, evidence: Evidence::Extent, ..data(0, 1024) };
        assert_eq!(words(&[deleted], &texts), "data app.db (deleted) 0..1 KiB (by its extents)");
    }

    #[test]
    fn many_pieces_are_cut_and_counted() {
        let file = |inode| FileKey { inode, ..FileKey::NONE };
        let runs: Vec<BlockRun> = (1..=20)
            .map(|inode| BlockRun {
                class: Class::Data,
                file: file(inode),
                bytes: 1024,
                ..BlockRun::default()
            })
            .collect();
        let text = words(&runs, &Texts::default());
        assert!(text.ends_with("(name not seen) 0..1 KiB and 12 more"), "{text}");
    }
}
