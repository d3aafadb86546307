//! Which filesystems of a trace's head are mounted still: their disks may be another filesystem's when they are not.

use std::path::Path;

use joj_analysis::trace::event::DeviceNumber;
use joj_analysis::trace::header::Header;
use rustix::fs::{AtFlags, CWD, Statx, StatxFlags, statx};

use crate::machine::files::mounts::{self, Mount};
use crate::machine::proc::clock::shared_ns;

/// A mount's number that no later mount has (Linux 6.8; linux/stat.h).
const STATX_MNT_ID_UNIQUE: StatxFlags = StatxFlags::from_bits_retain(0x4000);

/// Looks again and again.
#[derive(Debug)]
pub struct MountWatch {
    watched: Vec<WatchedMount>,
    /// When the last look began.
    looked_ns: u64,
}

#[derive(Debug)]
struct WatchedMount {
    device: DeviceNumber,
    mounts: Vec<(Mount, Option<u64>)>,
    until_ns: Option<u64>,
}

impl MountWatch {
    /// Remembers where the filesystems of `header` are mounted.
    pub fn begin(header: &Header) -> MountWatch {
        let looked_ns = shared_ns();
        let mounted = mounts::list().unwrap_or_default();
        let watched = header.filesystems.iter().map(|filesystem| {
            let own = mounted.iter().filter(|mount| mount.device == filesystem.device);
            let mounts = own.map(|mount| (mount.clone(), unique(mount))).collect();
            WatchedMount { device: filesystem.device, mounts, until_ns: None }
        });
        MountWatch { watched: watched.collect(), looked_ns }
    }

    /// Looks which are there still. One that is not was seen last at the look before.
    pub fn look(&mut self) {
        let now_ns = shared_ns();
        let Ok(mounted) = mounts::list() else { return };
        for watched in self.watched.iter_mut().filter(|watched| watched.until_ns.is_none()) {
            if !watched.mounts.iter().any(|known| is_there(known, &mounted)) {
                watched.until_ns = Some(self.looked_ns);
            }
        }
        self.looked_ns = now_ns;
    }

    /// Those that were unmounted, and until when they were seen mounted: `s_dev`, the trace's clock.
    pub fn gone(&self) -> impl Iterator<Item = (DeviceNumber, u64)> + '_ {
        self.watched.iter().filter_map(|watched| Some((watched.device, watched.until_ns?)))
    }
}

/// True where this mount is among those. A number may be given again at once to another mount.
fn is_there((known, number): &(Mount, Option<u64>), mounted: &[Mount]) -> bool {
    let same = |mount: &&Mount| (mount.identity, mount.device) == (known.identity, known.device);
    let Some(mount) = mounted.iter().find(same) else { return false };
    number.is_none() || unique(mount).is_none_or(|now| Some(now) == *number)
}

/// The number that no later mount has; `None` where the kernel has none, or another mount lies on top.
fn unique(mount: &Mount) -> Option<u64> {
    let on_top = asked(&mount.mount_point, StatxFlags::MNT_ID)?;
    (on_top == mount.identity).then(|| asked(&mount.mount_point, STATX_MNT_ID_UNIQUE))?
}

fn asked(path: &Path, what: StatxFlags) -> Option<u64> {
    let flags = AtFlags::STATX_DONT_SYNC | AtFlags::NO_AUTOMOUNT;
    let found: Statx = statx(CWD, path, flags, what).ok()?;
    (found.stx_mask & what.bits() != 0).then_some(found.stx_mnt_id)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn mount(identity: u64, minor: u32) -> Mount {
        Mount {
            identity,
            device: DeviceNumber(minor),
            root: PathBuf::from("/"),
            mount_point: PathBuf::from("/nowhere/at/all"),
            kind: "ext4".to_owned(),
            source: PathBuf::from("/dev/vda"),
            options: String::new(),
        }
    }

    #[test]
    fn a_mount_is_there_as_long_as_its_number_stands_for_it() {
        let known = (mount(7, 1), None);
        assert!(is_there(&known, &[mount(6, 2), mount(7, 1)]));
        assert!(!is_there(&known, &[mount(6, 1), mount(7, 2)]));
        let root = mounts::list().unwrap().into_iter().find(|mount| mount.mount_point == Path::new("/"));
        let root = root.expect("a root");
        if let Some(number) = unique(&root) {
            let mounted = std::slice::from_ref(&root);
            assert!(is_there(&(root.clone(), Some(number)), mounted));
            assert!(!is_there(&(root.clone(), Some(number + 1)), mounted), "the number was given again");
        }
    }
}
