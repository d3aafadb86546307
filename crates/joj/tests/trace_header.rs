//! Goal: the head of a trace names the sectors where the bytes really are.
//! Method: make filesystems on loop devices, mount them, ask `joj trace-header`, and look into the images at the sectors
//! that it names. Needs root and loop devices; without them each test says so and passes.

#![allow(clippy::unwrap_used, reason = "clippy exempts test functions, not the helpers they share")]

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use joj_analysis::filesystem::region::RegionUse;
use joj_analysis::trace::event::SECTOR_BYTES;
use joj_analysis::trace::header::{Header, MountedFilesystem};

/// Loop devices over images, and a directory to mount on, all of which go away.
struct Bench {
    folder: PathBuf,
    loops: Vec<(String, PathBuf)>,
}

impl Drop for Bench {
    fn drop(&mut self) {
        // Fails where nothing is mounted, which is as good. A program that another thread is just starting has our open files until
        // it runs: the kernel unmounts then.
        let _ = Command::new("umount").arg("--lazy").arg(self.point()).output();
        for (device, _) in &self.loops {
            let _ = Command::new("partx").args(["-d", device]).output();
            let _ = Command::new("losetup").args(["-d", device]).output();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Runs a program; what it printed, or why it failed.
fn run(program: &str, arguments: &[&str]) -> Result<String, String> {
    let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
    let output = Command::new(program).env("PATH", path).args(arguments).output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if output.status.success() {
        return Ok(text.trim().to_owned());
    }
    Err(format!("{program} {arguments:?}: {errors}"))
}

impl Bench {
    /// Loop devices over new images of these sizes.
    fn new(name: &str, megabytes: &[u64]) -> Result<Self, String> {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("header-{name}"));
        let _ = fs::remove_dir_all(&folder);
        let mut bench = Bench { folder, loops: Vec::new() };
        fs::create_dir_all(bench.point()).unwrap();
        for (index, size) in megabytes.iter().enumerate() {
            let image = bench.folder.join(format!("image{index}"));
            File::create(&image).unwrap().set_len(size << 20).unwrap();
            let device = run("losetup", &["-f", "--show", image.to_str().unwrap()])?;
            bench.loops.push((device, image));
        }
        Ok(bench)
    }

    fn point(&self) -> PathBuf {
        self.folder.join("mounted here")
    }

    fn device(&self, index: usize) -> &str {
        &self.loops[index].0
    }

    /// Bytes of an image at a sector, behind everything that the kernel still holds back.
    fn bytes(&self, index: usize, sector: u64, bytes: usize) -> Vec<u8> {
        run("sync", &[]).unwrap();
        let mut buffer = vec![0; bytes];
        let file = File::open(&self.loops[index].1).unwrap();
        file.read_exact_at(&mut buffer, sector * SECTOR_BYTES).unwrap();
        buffer
    }

    /// What joj says of the filesystem mounted here.
    fn header(&self) -> (Header, MountedFilesystem) {
        let point = self.point();
        let text = run(env!("CARGO_BIN_EXE_joj"), &["trace-header", point.to_str().unwrap()]).unwrap();
        let header: Header = serde_json::from_str(&text).unwrap();
        assert_eq!(header.inferred, [""; 0]);
        let here = |filesystem: &&MountedFilesystem| Path::new(&filesystem.mount_point) == point;
        let filesystem = header.filesystems.iter().find(here).cloned();
        (header, filesystem.expect("the filesystem is listed"))
    }

    /// Index of the image behind a disk of the header.
    fn image_of(&self, header: &Header, disk: joj_analysis::trace::event::DeviceNumber) -> usize {
        let name = format!("/dev/{}", header.disk(disk).map_or("", |disk| &disk.name));
        self.loops.iter().position(|(device, _)| *device == name).unwrap_or(usize::MAX)
    }
}

/// The closure's checks, unless the machine refuses what they need.
fn with(name: &str, megabytes: &[u64], check: impl Fn(&Bench) -> Result<(), String>) {
    let result = Bench::new(name, megabytes).and_then(|bench| check(&bench));
    if let Err(reason) = result {
        println!("skipped: {reason}");
    }
}

const JOURNAL_MAGIC: [u8; 4] = [0xc0, 0x3b, 0x39, 0x98];

#[test]
fn a_files_bytes_and_the_journal_are_at_the_sectors_that_are_named() {
    with("ext4", &[128], |bench| {
        run("mkfs.ext4", &["-q", "-F", "-O", "fast_commit", bench.device(0)])?;
        run("mount", &[bench.device(0), bench.point().to_str().unwrap()])?;
        let path = bench.point().join("file");
        let content: Vec<u8> = (0..300_000_u32).flat_map(|number| number.to_le_bytes()).collect();
        let file = File::create(&path).unwrap();
        file.write_all_at(&content, 0).unwrap();
        file.sync_all().unwrap();
        let arguments = ["trace-header", "--extents", path.to_str().unwrap()];
        let text = run(env!("CARGO_BIN_EXE_joj"), &arguments)?;
        let extents: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
        let mut compared = 0;
        for extent in &extents {
            let offset = usize::try_from(extent["offset"].as_u64().unwrap()).unwrap();
            let rest = &content[offset..];
            let length = rest.len().min(usize::try_from(extent["bytes"].as_u64().unwrap()).unwrap());
            assert_eq!(bench.bytes(0, extent["sector"].as_u64().unwrap(), length), rest[..length]);
            compared += length;
        }
        assert_eq!(compared, content.len());
        let (header, filesystem) = bench.header();
        assert_eq!(filesystem.kind, "ext4");
        let first = |purpose| filesystem.regions.iter().find(|region| region.purpose == purpose).unwrap();
        let journal = first(RegionUse::Journal);
        assert_eq!((journal.journal_offset, bench.image_of(&header, journal.disk)), (0, 0));
        assert_eq!(bench.bytes(0, journal.sector, 4), JOURNAL_MAGIC);
        assert!(first(RegionUse::FastCommit).journal_offset > 0);
        assert!(header.disks[0].behind.as_deref().is_some_and(|file| file.ends_with("image0")));
        Ok(())
    });
}

#[test]
fn journals_on_another_device_are_found_there() {
    with("external-ext4", &[64, 128], |bench| {
        run("mkfs.ext4", &["-q", "-F", "-b", "4096", "-O", "journal_dev", bench.device(0)])?;
        let journal = format!("device={}", bench.device(0));
        run("mkfs.ext4", &["-q", "-F", "-b", "4096", "-J", &journal, bench.device(1)])?;
        run("mount", &[bench.device(1), bench.point().to_str().unwrap()])?;
        let (header, filesystem) = bench.header();
        let region = filesystem.regions.iter().find(|region| region.purpose == RegionUse::Journal).unwrap();
        assert_eq!(bench.image_of(&header, region.disk), 0, "{region:?}");
        assert_eq!(bench.bytes(0, region.sector, 4), JOURNAL_MAGIC);
        Ok(())
    });
    with("external-xfs", &[400, 100], |bench| {
        let log = format!("logdev={}", bench.device(1));
        run("mkfs.xfs", &["-q", "-f", "-l", &log, bench.device(0)])?;
        run("mount", &["-o", &log, bench.device(0), bench.point().to_str().unwrap()])?;
        let (header, filesystem) = bench.header();
        let region = filesystem.regions.iter().find(|region| region.purpose == RegionUse::Journal).unwrap();
        assert_eq!(bench.image_of(&header, region.disk), 1, "{region:?}");
        assert_eq!(bench.bytes(1, region.sector, 4), [0xfe, 0xed, 0xba, 0xbe], "a record of XFS's log");
        for region in filesystem.regions.iter().filter(|region| region.purpose == RegionUse::GroupHeader) {
            let first = bench.bytes(0, region.sector, 4);
            assert!([*b"XFSB", *b"XAGF"].iter().any(|magic| first == magic), "{region:?}: {first:?}");
        }
        Ok(())
    });
}

#[test]
fn every_disk_of_a_btrfs_has_its_superblocks() {
    with("btrfs", &[200, 200], |bench| {
        run("mkfs.btrfs", &["-q", "-f", bench.device(0), bench.device(1)])?;
        run("btrfs", &["device", "scan", bench.device(1)])?;
        run("mount", &[bench.device(1), bench.point().to_str().unwrap()])?;
        run("btrfs", &["subvolume", "create", bench.point().join("sub").to_str().unwrap()])?;
        let (header, filesystem) = bench.header();
        assert_eq!((filesystem.disks.len(), filesystem.regions.len()), (2, 4));
        for region in &filesystem.regions {
            let image = bench.image_of(&header, region.disk);
            assert_eq!(bench.bytes(image, region.sector, 0x48)[0x40..], *b"_BHRfS_M");
        }
        // stat gives a subvolume a device number of its own, which no list has.
        let path = bench.point().join("sub");
        let text = run(env!("CARGO_BIN_EXE_joj"), &["trace-header", path.to_str().unwrap()])?;
        assert_eq!(serde_json::from_str::<Header>(&text).unwrap().filesystems[0].disks, filesystem.disks);
        Ok(())
    });
}

#[test]
fn a_partition_counts_its_sectors_from_the_start_of_its_disk() {
    with("partition", &[128], |bench| {
        // A partition table of the old kind: Linux, from sector 4096 on, 200,000 sectors.
        let entry = [&[0, 0, 0, 0, 0x83, 0, 0, 0], &4096_u32.to_le_bytes()[..], &200_000_u32.to_le_bytes()];
        let table = [&entry.concat()[..], &[0; 48], &[0x55, 0xaa]].concat();
        let device = File::options().write(true).open(bench.device(0)).unwrap();
        device.write_all_at(&table, 446).unwrap();
        device.sync_all().unwrap();
        run("partx", &["-a", bench.device(0)])?;
        let partition = format!("{}p1", bench.device(0));
        run("mkfs.ext4", &["-q", "-F", &partition])?;
        run("mount", &[&partition, bench.point().to_str().unwrap()])?;
        let (header, filesystem) = bench.header();
        let region = filesystem.regions.iter().find(|region| region.purpose == RegionUse::Journal).unwrap();
        assert_eq!((header.disks.len(), bench.image_of(&header, region.disk)), (2, 0));
        assert!(region.sector > 4096);
        assert_eq!(bench.bytes(0, region.sector, 4), JOURNAL_MAGIC);
        Ok(())
    });
}
