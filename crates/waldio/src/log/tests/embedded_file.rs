//! Goal: a log in the `embedded` layout reads and writes as one in SQLite's own, and its blocks are what docs/log_format.md says.
//! Method: small logs on a simulated disk, read through both layouts.

use blockio::simulated::disk::SimDisk;

use super::*;
use crate::log::recovery::{scan, scan_bytes, synthetic_log};

const LOG: &str = "/app.db-wal";

fn files() -> (Arc<SimDisk>, Arc<dyn DiskFile>, EmbeddedFile) {
    let disk = Arc::new(SimDisk::new());
    let options = OpenOptions { create: true, ..OpenOptions::EXISTING };
    let file: Arc<dyn DiskFile> = Arc::from(disk.open(Path::new(LOG), options).unwrap());
    let reserved = ReservedBytes::new(Arc::clone(&disk) as _, LOG.into(), false);
    (disk, Arc::clone(&file), EmbeddedFile::new(file, reserved))
}

/// Pages of many values, some of which end with bytes that are not zero.
fn log() -> Vec<u8> {
    let mut log = synthetic_log(4096, Salts([7; 8]), &[&[1, 2], &[3], &[4, 5, 6]]);
    for (frame, byte) in [(0, 0), (2, 0), (3, 0), (5, 0), (4, 9)] {
        log[32 + frame * FRAME + FRAME - HEADER..][..HEADER].fill(byte);
    }
    log
}

#[test]
fn what_is_written_in_pieces_of_any_size_reads_back_in_pieces_of_any_size() {
    let log = log();
    for written in [32, 24, 4096, 4120, 1000, 33, log.len()] {
        let (_, file, embedded) = files();
        embedded.write_at(&log[..32], 0).unwrap();
        for (index, piece) in log[32..].chunks(written).enumerate() {
            embedded.write_at(piece, 32 + (index * written) as u64).unwrap();
        }
        assert_eq!(file.size().unwrap(), 7 * BLOCK_BYTES, "a block for each frame");
        for read in [1, 32, 4096, 4120, 4121, 30_000] {
            let mut seen = Vec::new();
            loop {
                let mut piece = vec![0xee; read];
                let len_bytes = embedded.read_at(&mut piece, seen.len() as u64).unwrap();
                seen.extend_from_slice(&piece[..len_bytes]);
                if len_bytes < read {
                    break;
                }
            }
            assert_eq!(seen.len(), log.len());
            assert!(seen == log, "written by {written}, read by {read}");
        }
    }
}

#[test]
fn pages_with_reserved_bytes_of_their_own_are_kept_beside_the_log() {
    let (disk, _, embedded) = files();
    embedded.write_at(&synthetic_log(4096, Salts([7; 8]), &[&[1]]), 0).unwrap();
    assert!(disk.open(&crate::log::reserved_bytes::path_of(Path::new(LOG)), OpenOptions::EXISTING).is_ok());
    // The next generation finds nothing of it.
    let mut next = synthetic_log(4096, Salts([8; 8]), &[&[1]]);
    let end = next.len();
    next[end - HEADER..].fill(0);
    embedded.write_at(&next, 0).unwrap();
    let mut seen = vec![0; end];
    assert_eq!((embedded.read_at(&mut seen, 0).unwrap(), seen), (end, next));
}

#[test]
fn recovery_reads_the_same_frames_as_from_sqlites_own_bytes() {
    let log = synthetic_log(4096, Salts([7; 8]), &[&[1, 2], &[3]]);
    let (_, file, embedded) = files();
    embedded.write_at(&log, 0).unwrap();
    assert_eq!(scan(|into, offset| embedded.read_at(into, offset)).unwrap(), scan_bytes(&log));
    assert_eq!(scan(|into, offset| file.read_at(into, offset)).unwrap().frames_valid, 0, "not for SQLite");
}

#[test]
fn blocks_for_direct_writes_are_those_of_buffered_ones() {
    let log = log();
    let (_, file, embedded) = files();
    embedded.write_at(&log, 0).unwrap();
    let mut blocks = AlignedBuffer::zeroed(0);
    let (from, to) = (32 + 2 * FRAME, 32 + 4 * FRAME);
    let (len_bytes, offset) = blocks_of(&log[from..to], from as u64, &mut blocks).unwrap();
    assert_eq!((len_bytes, offset), (2 * BLOCK, 3 * BLOCK_BYTES));
    let mut seen = vec![0; len_bytes];
    file.read_at(&mut seen, offset).unwrap();
    assert!(seen == blocks.bytes()[..len_bytes]);
    assert_eq!(
        blocks_of(&log[from..to + FRAME], from as u64, &mut blocks),
        None,
        "frame 4 has reserved bytes"
    );
    assert_eq!(blocks_of(&log[from..to - 1], from as u64, &mut blocks), None);
    assert_eq!(blocks_of(&log[..32], 0, &mut blocks), None);
}

#[test]
fn cut_to_nothing_it_still_keeps_sqlite_out() {
    let (_, file, embedded) = files();
    embedded.write_at(&log(), 0).unwrap();
    embedded.truncate(0).unwrap();
    assert_eq!((embedded.size().unwrap(), file.size().unwrap()), (0, BLOCK_BYTES));
    let (mut raw, mut seen) = ([0; 32], [1; 32]);
    file.read_at(&mut raw, 0).unwrap();
    embedded.read_at(&mut seen, 0).unwrap();
    assert_eq!((look(&raw), seen), (LogStart::Embedded, [0; 32]));
}

#[test]
fn part_of_a_log_header_and_a_page_number_out_of_range_are_refused() {
    let (_, file, embedded) = files();
    assert!(embedded.write_at(&[0; 16], 0).is_err());
    assert!(embedded.write_at(&[0; 16], 16).is_err());
    assert!(embedded.write_at(&[0xff; FRAME], 32).is_err());
    assert_eq!(file.size().unwrap(), 0, "nothing was written");
}

#[test]
fn a_log_counts_in_the_layout_that_it_has_and_in_no_other() {
    let proved = |content: &[u8], layout: Layout, begins: bool| {
        let (disk, file, _) = files();
        file.write_at(content, 0).unwrap();
        let proved = prove(&*file, layout, begins).map_err(|error| error.kind());
        let found = look_at(&*disk.open(Path::new(LOG), OpenOptions::EXISTING).unwrap()).unwrap();
        (proved, found)
    };
    let (stock, embedded) = (log(), header_block(log().first_chunk().unwrap()));
    let wrong = Err(io::ErrorKind::InvalidData);
    for begins in [false, true] {
        assert_eq!(proved(&stock, Layout::Stock, begins), (Ok(()), LogStart::Stock));
        assert_eq!(proved(&stock, Layout::Embedded, begins), (wrong, LogStart::Stock));
        assert_eq!(proved(&embedded, Layout::Embedded, begins), (Ok(()), LogStart::Embedded));
        assert_eq!(proved(&embedded, Layout::Stock, begins), (wrong, LogStart::Embedded));
        assert_eq!(proved(&[], Layout::Stock, begins), (Ok(()), LogStart::Nothing));
    }
    assert_eq!(proved(&[], Layout::Embedded, false), (wrong, LogStart::Nothing));
    assert_eq!(proved(&[], Layout::Embedded, true), (Ok(()), LogStart::Embedded));
}

#[test]
fn a_log_is_cleared_by_its_header_alone_and_on_the_medium() {
    let (disk, file, embedded) = files();
    embedded.write_at(&log(), 0).unwrap();
    let before = file.size().unwrap();
    clear_at(&*disk, Path::new(LOG), false).unwrap();
    let mut start = [1; 32];
    file.read_at(&mut start, 0).unwrap();
    assert_eq!((start, file.size().unwrap()), ([0; 32], before));
    let mut replay = disk.replay();
    for record in disk.records() {
        replay.begin(&record);
        replay.end(&record);
    }
    assert_eq!(replay.undecided_units(blockio::simulated::crash_states::Grain::Sector), 0);
}

#[test]
fn space_is_reserved_in_whole_blocks_and_told_in_sqlites_offsets() {
    let (_, file, embedded) = files();
    embedded.write_at(&log()[..32], 0).unwrap();
    let end = embedded.extend(32 + 10 * FRAME as u64, Fill::Zeroes).unwrap();
    assert_eq!((end, embedded.size().unwrap()), (32 + 10 * FRAME as u64, end));
    assert_eq!(file.size().unwrap(), 11 * BLOCK_BYTES);
    assert_eq!(embedded.describe(), file.describe());
}
