//! Goal: the regions of a filesystem are those that its own tools print.
//! Method: make small images in every variant, let dumpe2fs, debugfs, xfs_db and `btrfs inspect-internal` tell where
//! things are, and compare block by block, both ways. Images are sparse files; nothing is mounted.

#![allow(clippy::unwrap_used, reason = "clippy exempts test functions, not the helpers they share")]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::Command;

use joj_analysis::filesystem;
use joj_analysis::filesystem::layout::{Extent, Layout, LayoutError};
use joj_analysis::filesystem::region::{Region, RegionUse};
use joj_analysis::trace::event::{DeviceNumber, SECTOR_BYTES};

const DISK: DeviceNumber = DeviceNumber(7 << 20);
/// The images are taken for partitions that begin here.
const START_SECTOR: u64 = 2048;

/// An image file that goes away.
struct Image(PathBuf);

impl Drop for Image {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

impl Image {
    fn new(name: &str, bytes: u64) -> Self {
        let path = std::env::temp_dir().join(format!("joj-layout-{}-{name}", std::process::id()));
        File::create(&path).unwrap().set_len(bytes).unwrap();
        Self(path)
    }

    /// Runs a tool on the image; `None` where there is no such tool here.
    fn run(&self, tool: &str, arguments: &[&str]) -> Option<String> {
        // Where only root has these directories in its PATH.
        let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
        let mut command = Command::new(tool);
        command.env("PATH", path).args(arguments).arg(&self.0);
        let output = match command.output() {
            Ok(output) => output,
            Err(error) => {
                println!("skipped: {tool}: {error}");
                return None;
            }
        };
        let (text, errors) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{tool} {arguments:?}: {errors}");
        Some(text.into_owned())
    }

    fn layout(&self, kind: &str) -> Result<Layout, LayoutError> {
        let file = File::open(&self.0).unwrap();
        let sectors = file.metadata().unwrap().len() / SECTOR_BYTES;
        let device = Extent { disk: DISK, start_sector: START_SECTOR, sectors };
        let read = &mut |at: u64, bytes: usize| {
            let mut buffer = vec![0; bytes];
            file.read_exact_at(&mut buffer, at)?;
            Ok(buffer)
        };
        Ok(filesystem::layout_of(kind, device, read)?.expect("a kind with a layout"))
    }
}

/// Block -> what it is and at which byte of the journal.
type Blocks = BTreeMap<u64, (RegionUse, u64)>;

fn blocks_of(regions: &[Region], block_bytes: u64) -> Blocks {
    let mut blocks = Blocks::new();
    let sectors = block_bytes / SECTOR_BYTES;
    for region in regions {
        assert_eq!((region.sector - START_SECTOR) % sectors, 0, "{region:?}");
        for index in 0..region.sectors / sectors {
            let in_journal = matches!(region.purpose, RegionUse::Journal | RegionUse::FastCommit);
            let offset = if in_journal { region.journal_offset + index * block_bytes } else { 0 };
            let block = (region.sector - START_SECTOR) / sectors + index;
            assert_eq!(blocks.insert(block, (region.purpose, offset)), None, "block {block} twice");
        }
    }
    blocks
}

/// `5-260` or `5`
fn range(text: &str) -> std::ops::RangeInclusive<u64> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    first.parse().unwrap()..=last.parse().unwrap()
}

/// What dumpe2fs says of groups.
fn groups_in_words(text: &str) -> Blocks {
    let names = [
        ("superblock at ", RegionUse::Superblock),
        ("Group descriptors at ", RegionUse::GroupDescriptors),
        ("Group descriptor at ", RegionUse::GroupDescriptors),
        ("Reserved GDT blocks at ", RegionUse::GroupDescriptors),
        ("Block bitmap at ", RegionUse::BlockBitmap),
        ("Inode bitmap at ", RegionUse::InodeBitmap),
        ("Inode table at ", RegionUse::InodeTable),
    ];
    let mut blocks = Blocks::new();
    for (name, purpose) in names {
        for (_, after) in text.lines().filter_map(|line| line.split_once(name)) {
            let digits =
                after.split(|letter: char| letter != '-' && !letter.is_ascii_digit()).next().unwrap();
            blocks.extend(range(digits).map(|block| (block, (purpose, 0))));
        }
    }
    blocks
}

/// What debugfs says of the journal's inode: `(0-8191):139265-147456, (IND):12, (8192):5`
fn journal_in_words(text: &str, block_bytes: u64) -> Vec<(u64, u64)> {
    let (_, list) = text.split_once("EXTENTS:").or(text.split_once("BLOCKS:")).expect("a list of blocks");
    let mut found = Vec::new();
    for piece in list.split([',', '\n']).map(str::trim) {
        let Some((log, blocks)) = piece.strip_prefix('(').and_then(|piece| piece.split_once("):")) else {
            continue;
        };
        if log.starts_with(|letter: char| letter.is_ascii_digit()) {
            found.extend(range(blocks).zip(range(log).map(|block| block * block_bytes)));
        }
    }
    found
}

fn value(text: &str, name: &str) -> u64 {
    let line =
        text.lines().find_map(|line| line.trim().strip_prefix(name)).unwrap_or_else(|| panic!("{name}"));
    let digits = line.trim_start_matches([':', ' ', '=', '\t']);
    digits.split(|letter: char| !letter.is_ascii_digit()).next().unwrap().parse().unwrap()
}

/// Compares what we read with what the tools print. False where there are no tools.
fn ext4_is_as_its_tools_say(image: &Image, name: &str) -> bool {
    let (Some(groups), Some(journal)) =
        (image.run("dumpe2fs", &[]), image.run("debugfs", &["-R", "stat <8>"]))
    else {
        return false;
    };
    let block_bytes = value(&groups, "Block size");
    let mut expected = groups_in_words(&groups);
    let log = journal_in_words(&journal, block_bytes);
    assert!(log.len() >= 1024, "{name}: debugfs lists {} blocks", log.len());
    let fast = if groups.contains("fast_commit") { value(&groups, "Fast commit length") } else { 0 };
    let ring_bytes = (log.len() as u64 - fast) * block_bytes;
    for (block, offset) in log {
        let purpose = if offset < ring_bytes { RegionUse::Journal } else { RegionUse::FastCommit };
        expected.insert(block, (purpose, offset));
    }
    let layout = image.layout("ext4").unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(u64::from(layout.block_bytes), block_bytes);
    let found = blocks_of(&layout.regions, block_bytes);
    for (block, what) in &found {
        assert_eq!(expected.get(block), Some(what), "{name}: block {block}");
    }
    for (block, what) in &expected {
        assert_eq!(found.get(block), Some(what), "{name}: block {block}");
    }
    println!("{name}: {} blocks, {} regions", found.len(), layout.regions.len());
    true
}

#[test]
fn ext4_in_every_variant_is_read_as_its_own_tools_read_it() {
    let variants: [(&str, &[&str], u64); 12] = [
        ("default", &[], 300),
        ("large-blocks", &["-b", "4096"], 1500),
        ("32bit", &["-O", "^64bit"], 300),
        ("no-checksums", &["-O", "^metadata_csum"], 300),
        ("small-blocks", &["-b", "1024"], 200),
        ("meta-bg", &["-b", "1024", "-O", "meta_bg,^resize_inode"], 400),
        ("fast-commit", &["-b", "4096", "-O", "fast_commit"], 600),
        ("bigalloc", &["-O", "bigalloc", "-C", "16384"], 300),
        ("bigalloc-small", &["-b", "1024", "-O", "bigalloc", "-C", "8192"], 300),
        ("sparse2", &["-O", "sparse_super2,^resize_inode"], 300),
        ("scattered", &["-b", "1024", "-O", "^flex_bg,^sparse_super,^resize_inode"], 100),
        ("ext3", &["-b", "1024", "-O", "^extent,^64bit,^flex_bg", "-J", "size=100"], 400),
    ];
    for (name, options, megabytes) in variants {
        let image = Image::new(name, megabytes << 20);
        let options = [&["-q", "-F"], options].concat();
        if image.run("mkfs.ext4", &options).is_none() || !ext4_is_as_its_tools_say(&image, name) {
            return;
        }
    }
}

/// Every other block is taken, so that the journal's tree needs nodes of its own.
#[test]
fn a_journal_in_many_pieces_is_found_whole() {
    for (name, features) in [("pieces", "^has_journal"), ("pieces3", "^has_journal,^extent,^64bit")] {
        let image = Image::new(name, 16 << 20);
        if image.run("mkfs.ext4", &["-q", "-F", "-b", "1024", "-O", features]).is_none() {
            return;
        }
        let commands = image.0.with_extension("commands");
        let lines: String = (2001..16000).step_by(2).map(|block| format!("setb {block} 1\n")).collect();
        fs::write(&commands, lines).unwrap();
        let taken = image.run("debugfs", &["-w", "-f", commands.to_str().unwrap()]);
        fs::remove_file(&commands).unwrap();
        if taken.is_none() || image.run("tune2fs", &["-j", "-J", "size=1"]).is_none() {
            return;
        }
        assert!(ext4_is_as_its_tools_say(&image, name));
        let pieces = image.layout("ext4").unwrap().regions;
        let pieces = pieces.iter().filter(|region| region.purpose == RegionUse::Journal).count();
        assert!(pieces > 100, "{name}: only {pieces} pieces");
    }
}

#[test]
fn xfs_is_read_as_xfs_db_reads_it() {
    let variants: [(&str, &[&str]); 3] =
        [("xfs", &[]), ("xfs4", &["-m", "crc=0"]), ("xfs-sectors", &["-s", "size=4096", "-d", "agcount=3"])];
    for (name, options) in variants {
        let image = Image::new(name, 400 << 20);
        if image.run("mkfs.xfs", &[&["-q", "-f"], options].concat()).is_none() {
            return;
        }
        let Some(words) = image.run("xfs_db", &["-r", "-c", "sb 0", "-c", "print"]) else {
            return;
        };
        let (block_bytes, groups) = (value(&words, "blocksize"), value(&words, "agcount"));
        let (group_blocks, sector_bytes) = (value(&words, "agblocks"), value(&words, "sectsize"));
        let convert = format!("convert fsb {} daddr", value(&words, "logstart"));
        // `0x12345 (74565)`
        let log = image.run("xfs_db", &["-r", "-c", &convert]).unwrap();
        let log_sector: u64 = log.split(['(', ')']).nth(1).unwrap().parse().unwrap();
        let layout = image.layout("xfs").unwrap_or_else(|error| panic!("{name}: {error}"));
        let region = |purpose, sector: u64, bytes: u64| Region {
            disk: DISK,
            sector: START_SECTOR + sector,
            sectors: bytes / SECTOR_BYTES,
            purpose,
            journal_offset: 0,
        };
        let mut expected = vec![
            region(RegionUse::Superblock, 0, sector_bytes),
            region(RegionUse::GroupHeader, sector_bytes / SECTOR_BYTES, 3 * sector_bytes),
            region(RegionUse::Journal, log_sector, value(&words, "logblocks") * block_bytes),
        ];
        let starts = (1..groups).map(|group| group * group_blocks * block_bytes / SECTOR_BYTES);
        expected.extend(starts.map(|sector| region(RegionUse::GroupHeader, sector, 4 * sector_bytes)));
        expected.sort_by_key(|region| region.sector);
        assert_eq!(layout.regions, expected, "{name}");
        assert_eq!(u64::from(layout.block_bytes), block_bytes);
    }
}

#[test]
fn btrfs_has_its_superblocks_where_its_own_tool_lists_them() {
    let image = Image::new("btrfs", 300 << 20);
    if image.run("mkfs.btrfs", &["-q", "-f"]).is_none() {
        return;
    }
    let Some(words) = image.run("btrfs", &["inspect-internal", "dump-super", "-a"]) else { return };
    let listed: Vec<u64> =
        words.lines().filter_map(|line| line.strip_prefix("bytenr")?.trim().parse().ok()).collect();
    let layout = image.layout("btrfs").unwrap();
    let found: Vec<u64> =
        layout.regions.iter().map(|region| (region.sector - START_SECTOR) * SECTOR_BYTES).collect();
    assert_eq!(found, listed);
    assert_eq!(u64::from(layout.block_bytes), value(&words, "sectorsize"));
}

/// F2FS and NILFS2 have no tool that needs no mount and prints places: their checksums say that the fields are meant.
#[test]
fn f2fs_and_nilfs2_as_their_tools_make_them_are_read() {
    let image = Image::new("f2fs", 64 << 20);
    if image.run("mkfs.f2fs", &["-f", "-O", "extra_attr,sb_checksum"]).is_some() {
        let found = image.layout("f2fs").unwrap();
        assert_eq!((found.block_bytes, found.regions.len()), (4096, 5));
        let file = File::open(&image.0).unwrap();
        for region in &found.regions {
            // mkfs writes into these areas, and zeros into the others.
            let mut first = [0; 4096];
            file.read_exact_at(&mut first, (region.sector - START_SECTOR) * SECTOR_BYTES).unwrap();
            let written = [RegionUse::Superblock, RegionUse::Checkpoint, RegionUse::NodeAddress];
            assert!(!written.contains(&region.purpose) || first.iter().any(|byte| *byte != 0), "{region:?}");
        }
    }
    let image = Image::new("nilfs2", 160 << 20);
    if image.run("mkfs.nilfs2", &["-q"]).is_some() {
        let found = image.layout("nilfs2").unwrap();
        let ends: Vec<_> = found.regions.iter().map(|region| region.sector + region.sectors).collect();
        assert_eq!((found.block_bytes, ends), (4096, vec![START_SECTOR + 8, START_SECTOR + (160 << 11)]));
    }
}

#[test]
fn another_filesystem_and_an_empty_device_are_errors_with_a_place() {
    let image = Image::new("empty", 1 << 20);
    for kind in ["ext4", "xfs", "btrfs", "f2fs", "nilfs2"] {
        let error = image.layout(kind).unwrap_err().to_string();
        assert!(error.contains("superblock at byte") && error.contains("magic"), "{error}");
    }
}
