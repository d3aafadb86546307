//! Under which conditions a result came about.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The machine, the place and the program. Texts are as the kernel gave them; absent means not readable here.
#[derive(Debug, Clone, PartialEq, Eq, Default, JsonSchema, Serialize, Deserialize)]
pub struct Environment {
    /// Version of joj.
    pub joj_version: String,
    /// The commit joj was built from, `+changes` behind it where the tree had any; `unknown` outside git.
    pub joj_commit: String,
    /// Command line, the program's name first.
    pub command_line: Vec<String>,
    /// When the measurement began, UTC, ISO 8601.
    pub started_at: String,
    /// Kernel release.
    pub kernel: String,
    /// Processor cores this process may use.
    pub cores: usize,
    /// The directory that was measured.
    pub directory: String,
    /// File system below it.
    pub filesystem: FilesystemFacts,
    /// Block device below that; `null` for tmpfs, overlayfs, network file systems.
    pub device: Option<DeviceFacts>,
    /// The waldio extension that was loaded.
    pub waldio: Option<WaldioFacts>,
}

/// The file system of the directory, from /proc/self/mountinfo.
#[derive(Debug, Clone, PartialEq, Eq, Default, JsonSchema, Serialize, Deserialize)]
pub struct FilesystemFacts {
    /// Its type, for example `ext4`.
    pub kind: String,
    /// What is mounted.
    pub source: String,
    /// Where.
    pub mount_point: String,
    /// Options of the mount and of the file system, comma-separated.
    pub mount_options: String,
    /// Name of its jbd2 journal in /proc/fs/jbd2; `null` where it has none or is no ext4.
    pub journal: Option<String>,
}

/// The block device, from /sys/dev/block.
#[derive(Debug, Clone, PartialEq, Eq, Default, JsonSchema, Serialize, Deserialize)]
pub struct DeviceFacts {
    /// Kernel name of the file system's device, for example `nvme0n1p2`.
    pub name: String,
    /// Its number, `major:minor`.
    pub number: String,
    /// Kernel name of the whole disk, the same where there are no partitions.
    pub disk: String,
    /// Model.
    pub model: Option<String>,
    /// `write back` or `write through`.
    pub write_cache: Option<String>,
    /// True where it has forced unit access: a durable write in one command.
    pub fua: Option<bool>,
    /// True for what the kernel takes for a spinning disk.
    pub rotational: Option<bool>,
    /// I/O scheduler in use.
    pub scheduler: Option<String>,
    /// Smallest unit it addresses, in bytes.
    pub logical_block_bytes: Option<u64>,
}

/// Which extension stood in for waldio.
#[derive(Debug, Clone, PartialEq, Eq, Default, JsonSchema, Serialize, Deserialize)]
pub struct WaldioFacts {
    /// Path of the loaded file.
    pub file: String,
    /// Its size in bytes, to tell two builds apart.
    pub file_bytes: u64,
    /// Options it was given.
    pub options: Vec<String>,
}

/// One build of SQLite that rows were measured with.
#[derive(Debug, Clone, PartialEq, Eq, Default, JsonSchema, Serialize, Deserialize)]
pub struct SqliteBuild {
    /// The name rows refer to: `bundled`, `system` or a path.
    pub name: String,
    /// File it was loaded from; `null` for the one inside joj.
    pub file: Option<String>,
    /// `sqlite3_libversion()`.
    pub version: String,
    /// `sqlite3_sourceid()`.
    pub source_id: String,
    /// `fsync`, `fdatasync` or what else it calls to make a commit durable.
    pub sync_call: String,
    /// How that was found out.
    pub sync_call_evidence: String,
}

/// A condition as (what it is, its value), for comparing two results.
pub fn conditions(environment: &Environment, builds: &[SqliteBuild]) -> Vec<(String, String)> {
    let mut list = vec![
        ("kernel".to_owned(), environment.kernel.clone()),
        ("cores".to_owned(), environment.cores.to_string()),
        ("joj version".to_owned(), environment.joj_version.clone()),
        ("joj commit".to_owned(), environment.joj_commit.clone()),
        ("directory".to_owned(), environment.directory.clone()),
        ("file system".to_owned(), environment.filesystem.kind.clone()),
        ("mount options".to_owned(), environment.filesystem.mount_options.clone()),
    ];
    let device = environment.device.clone().unwrap_or_default();
    let known = |text: Option<String>| text.unwrap_or_else(|| "unknown".to_owned());
    list.extend([
        ("device".to_owned(), format!("{} {}", device.name, known(device.model)).trim().to_owned()),
        ("write cache".to_owned(), known(device.write_cache)),
        ("FUA".to_owned(), known(device.fua.map(|has| has.to_string()))),
        ("I/O scheduler".to_owned(), known(device.scheduler)),
    ]);
    if let Some(waldio) = &environment.waldio {
        list.push(("waldio file size".to_owned(), waldio.file_bytes.to_string()));
        list.push(("waldio options".to_owned(), waldio.options.join(" ")));
    }
    for build in builds {
        let value = format!("{} ({})", build.version, build.sync_call);
        list.push((format!("SQLite, {}", build.name), value));
    }
    list
}

/// `seconds` after 1970 as UTC in ISO 8601.
///
/// Source: Howard Hinnant, "chrono-compatible low-level date algorithms", civil_from_days.
pub fn iso_8601(seconds: u64) -> String {
    let (days, second_of_day) = (seconds / 86_400, seconds % 86_400);
    // Eras of 400 years that begin on 1 March of the year 0, so that the leap day is a year's last.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (second_of_day / 3_600, second_of_day / 60 % 60, second_of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_known_seconds() {
        for (seconds, date) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(iso_8601(seconds), date);
        }
    }

    #[test]
    fn conditions_name_each_build_and_survive_a_missing_device() {
        let build = SqliteBuild {
            name: "system".to_owned(),
            version: "3.40.1".to_owned(),
            sync_call: "fdatasync".to_owned(),
            ..SqliteBuild::default()
        };
        let list = conditions(&Environment::default(), &[build]);
        assert!(list.contains(&("SQLite, system".to_owned(), "3.40.1 (fdatasync)".to_owned())));
        assert!(list.contains(&("write cache".to_owned(), "unknown".to_owned())));
    }
}
