//! The disks of this machine and their partitions, as sysfs lists them.

use std::fs;
use std::path::Path;

use joj_analysis::trace::event::{DeviceNumber, SECTOR_BYTES};
use joj_analysis::trace::header::{Disk, DiskCounters};

use crate::machine::proc::interrupts::Interrupts;

/// Every disk that has a size, each before its partitions, by number. Empty where /sys/block cannot be read.
pub fn list() -> Vec<Disk> {
    let interrupts = Interrupts::read();
    let mut disks = Vec::new();
    for directory in fs::read_dir("/sys/block").into_iter().flatten().flatten().map(|entry| entry.path()) {
        let Some(disk) = whole_disk(&directory, &interrupts) else { continue };
        // Loop devices without a file, card readers without a card.
        if disk.sectors == 0 {
            continue;
        }
        for partition in fs::read_dir(&directory).into_iter().flatten().flatten() {
            if partition.path().join("partition").exists() {
                disks.extend(partition_of(&disk, &partition.path()));
            }
        }
        disks.push(disk);
    }
    disks.sort_by_key(|disk| (disk.whole, disk.number != disk.whole, disk.start_sector, disk.number));
    disks
}

/// What the whole disk's counters say now; `None` where there is no such disk. Since Linux 4.18 discards are counted,
/// since 5.5 flushes; before, they are 0.
pub fn counters(disk: DeviceNumber) -> Option<DiskCounters> {
    let text = fs::read_to_string(format!("/sys/dev/block/{disk}/stat")).ok()?;
    Some(parse_counters(disk, &text))
}

/// What happened between two readings of one disk's counters.
pub fn difference(after: &DiskCounters, before: &DiskCounters) -> DiskCounters {
    DiskCounters {
        disk: after.disk,
        reads: after.reads.saturating_sub(before.reads),
        read_bytes: after.read_bytes.saturating_sub(before.read_bytes),
        writes: after.writes.saturating_sub(before.writes),
        written_bytes: after.written_bytes.saturating_sub(before.written_bytes),
        discards: after.discards.saturating_sub(before.discards),
        flushes: after.flushes.saturating_sub(before.flushes),
    }
}

/// Source: Documentation/block/stat.rst of the kernel. Sectors there are always 512 bytes.
fn parse_counters(disk: DeviceNumber, text: &str) -> DiskCounters {
    let fields: Vec<u64> = text.split_whitespace().map_while(|word| word.parse().ok()).collect();
    let field = |index: usize| fields.get(index).copied().unwrap_or(0);
    DiskCounters {
        disk,
        reads: field(0),
        read_bytes: field(2).saturating_mul(SECTOR_BYTES),
        writes: field(4),
        written_bytes: field(6).saturating_mul(SECTOR_BYTES),
        discards: field(11),
        flushes: field(15),
    }
}

fn read(directory: &Path, file: &str) -> Option<String> {
    fs::read_to_string(directory.join(file)).ok().map(|text| text.trim().to_owned())
}

fn number<T: std::str::FromStr>(directory: &Path, file: &str) -> Option<T> {
    read(directory, file)?.parse().ok()
}

/// `254:1`
pub fn parse_number(text: &str) -> Option<DeviceNumber> {
    let (major, minor) = text.trim().split_once(':')?;
    DeviceNumber::new(major.parse().ok()?, minor.parse().ok()?)
}

fn name_of(directory: &Path) -> Option<String> {
    directory.file_name().map(|name| name.to_string_lossy().into_owned())
}

fn whole_disk(directory: &Path, interrupts: &Interrupts) -> Option<Disk> {
    let own = parse_number(&read(directory, "dev")?)?;
    Some(Disk {
        number: own,
        whole: own,
        name: name_of(directory)?,
        start_sector: 0,
        sectors: number(directory, "size")?,
        write_cache: read(directory, "queue/write_cache").map(|mode| mode == "write back"),
        fua: read(directory, "queue/fua").map(|flag| flag == "1"),
        behind: read(directory, "loop/backing_file").filter(|file| !file.is_empty()),
        interrupt: interrupt_of(directory, interrupts),
    })
}

fn partition_of(disk: &Disk, directory: &Path) -> Option<Disk> {
    Some(Disk {
        number: parse_number(&read(directory, "dev")?)?,
        name: name_of(directory)?,
        start_sector: number(directory, "start")?,
        sectors: number(directory, "size")?,
        ..disk.clone()
    })
}

/// Names of the interrupts that the disk's controller has: the nearest device above the disk that lists any. The one
/// for changes of configuration tells nothing of requests.
fn interrupt_of(directory: &Path, interrupts: &Interrupts) -> Option<String> {
    let device = fs::canonicalize(directory.join("device")).ok()?;
    for above in device.ancestors().take_while(|above| above.starts_with("/sys/devices")) {
        let several = fs::read_dir(above.join("msi_irqs")).into_iter().flatten().flatten();
        let mut numbers: Vec<String> =
            several.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        numbers.sort_by_key(|text| (text.len(), text.clone()));
        // 0: none. Without MSI the device has one line, perhaps shared.
        if numbers.is_empty() {
            numbers.extend(read(above, "irq").filter(|text| text != "0"));
        }
        let mut names: Vec<&str> = numbers.iter().filter_map(|text| interrupts.name(text)).collect();
        names.retain(|name| !name.ends_with("-config"));
        names.dedup();
        if !names.is_empty() {
            return Some(names.join(","));
        }
        // A PCI function: what is above it is a bridge, with interrupts of its own.
        if above.join("class").exists() {
            return None;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISK: DeviceNumber = DeviceNumber(254 << 20);

    #[test]
    fn counters_are_read_by_position_and_old_kernels_have_fewer() {
        let line = "  100 1 2 3   40 5   60 7 0 8 9 10 11 12 13   16 17";
        let now = parse_counters(DISK, line);
        assert_eq!((now.reads, now.read_bytes, now.writes, now.written_bytes), (100, 1024, 40, 60 * 512));
        assert_eq!((now.discards, now.flushes), (10, 16));
        let old = parse_counters(DISK, "100 1 2 3 40 5 60 7 0 8 9");
        assert_eq!((old.writes, old.discards, old.flushes), (40, 0, 0));
        assert_eq!(difference(&now, &old).flushes, 16);
        assert_eq!(difference(&old, &now).flushes, 0, "a disk that went and came");
    }

    #[test]
    fn every_partition_lies_on_a_disk_of_the_list() {
        let disks = list();
        if disks.is_empty() {
            println!("skipped: no /sys/block here");
        }
        for disk in &disks {
            let whole = disks.iter().find(|whole| whole.number == disk.whole).unwrap();
            assert!(disk.start_sector + disk.sectors <= whole.sectors, "{disk:?} on {whole:?}");
            assert_eq!(counters(disk.number).unwrap().disk, disk.number);
        }
    }
}
