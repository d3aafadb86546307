//! Filesystems on which a COMMIT is not worth what it is on a disk: in memory, another machine's, in layers.

use crate::bench::environment::{DeviceFacts, FilesystemFacts};

/// Filesystems whose files are in memory.
const OF_MEMORY: [&str; 4] = ["tmpfs", "ramfs", "devtmpfs", "hugetlbfs"];

/// Filesystems whose files are another machine's, as mountinfo spells them.
const OF_NETWORK: [&str; 12] =
    ["nfs", "nfs4", "cifs", "smb3", "smbfs", "ceph", "afs", "9p", "lustre", "gfs2", "ocfs2", "fuse.sshfs"];

/// Block devices that are memory: brd and zram.
const MEMORY_DISKS: [&str; 2] = ["ram", "zram"];

/// Why a COMMIT is not worth there what it is on a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reservation {
    /// Files are in memory.
    Memory,
    /// Files are another machine's.
    Network,
    /// Files are in layers, as in a container.
    Overlay,
}

impl Reservation {
    /// Of this filesystem on this device; `None` where a flush is worth what the device makes of it, and where nothing is known.
    pub fn of(filesystem: &FilesystemFacts, device: Option<&DeviceFacts>) -> Option<Reservation> {
        let kind = filesystem.kind.as_str();
        let is_memory_disk = |disk: &str| {
            MEMORY_DISKS.iter().any(|name| {
                let number = disk.strip_prefix(name);
                number.is_some_and(|number| {
                    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
                })
            })
        };
        if OF_MEMORY.contains(&kind) || device.is_some_and(|device| is_memory_disk(&device.disk)) {
            Some(Reservation::Memory)
        } else if OF_NETWORK.contains(&kind) {
            Some(Reservation::Network)
        } else {
            (kind == "overlay").then_some(Reservation::Overlay)
        }
    }

    /// A stable word for programs.
    pub fn word(self) -> &'static str {
        match self {
            Self::Memory => "in_memory",
            Self::Network => "network_filesystem",
            Self::Overlay => "overlay",
        }
    }

    /// What it means for a database, without a stop at the end; `directory` is there.
    pub fn what(self, directory: &str) -> String {
        match self {
            Self::Memory => format!(
                "{directory} is in memory: nothing there survives a power cut, and no figure is a disk's"
            ),
            Self::Network => format!(
                "{directory} is on a network filesystem: what a flush is worth is the server's choice, and locks may \
                 not hold between machines"
            ),
            Self::Overlay => format!(
                "{directory} is on overlayfs, as in a container: it goes with the container, and locks may not hold \
                 where a file of a lower layer is opened before its first write"
            ),
        }
    }

    /// What to do about it, without a stop at the end.
    pub fn remedy(self) -> &'static str {
        match self {
            Self::Memory | Self::Network => "name a directory on a disk of this machine",
            Self::Overlay => "name a directory on a disk of this machine: in a container, on a volume",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_networks_and_layers_are_told_from_disks() {
        let of = |kind: &str, disk: &str| {
            let filesystem = FilesystemFacts { kind: kind.to_owned(), ..FilesystemFacts::default() };
            let device = DeviceFacts { disk: disk.to_owned(), ..DeviceFacts::default() };
            Reservation::of(&filesystem, Some(&device).filter(|_| !disk.is_empty()))
        };
        for (kind, disk, wanted) in [
            ("tmpfs", "", Some(Reservation::Memory)),
            ("ext4", "zram0", Some(Reservation::Memory)),
            ("ext4", "ram12", Some(Reservation::Memory)),
            ("nfs4", "", Some(Reservation::Network)),
            ("9p", "", Some(Reservation::Network)),
            ("overlay", "", Some(Reservation::Overlay)),
            ("ext4", "vda", None),
            ("ext4", "rambo", None),
            ("fuse", "", None),
            ("", "", None),
        ] {
            assert_eq!(of(kind, disk), wanted, "{kind} on {disk}");
        }
    }
}
