//! Which filesystems of a trace's head are mounted still: their disks may be another filesystem's when they are not. And which came.

use std::collections::BTreeSet;

use joj_analysis::trace::event::DeviceNumber;
use joj_analysis::trace::header::{Disk, Header};

use crate::machine::files::mounts::{self, Mount, MountsOfOne};
use crate::machine::proc::clock::shared_ns;

/// Looks again and again.
#[derive(Debug)]
pub struct MountWatch {
    watched: Vec<WatchedMount>,
    /// When the last look began.
    looked_ns: u64,
    /// The traced disks, and their partitions.
    disks: Vec<Disk>,
    /// Filesystems on them that were not there at the begin: kind and mount point.
    came: BTreeSet<(String, String)>,
}

#[derive(Debug)]
struct WatchedMount {
    device: DeviceNumber,
    mounts: MountsOfOne,
    until_ns: Option<u64>,
}

impl MountWatch {
    /// Remembers where the filesystems of `header` are mounted.
    pub fn begin(header: &Header) -> MountWatch {
        let looked_ns = shared_ns();
        let mounted = mounts::list().unwrap_or_default();
        let watched = header.filesystems.iter().map(|filesystem| {
            let mounts = MountsOfOne::of(filesystem.device, &mounted);
            WatchedMount { device: filesystem.device, mounts, until_ns: None }
        });
        let disks = header.disks.clone();
        MountWatch { watched: watched.collect(), looked_ns, disks, came: BTreeSet::new() }
    }

    /// Looks which are there still. Returns those that are not any more, and when they were seen last: at the look before.
    pub fn look(&mut self) -> Vec<(DeviceNumber, u64)> {
        let now_ns = shared_ns();
        let Ok(mounted) = mounts::list() else { return Vec::new() };
        let mut gone = Vec::new();
        for watched in self.watched.iter_mut().filter(|watched| watched.until_ns.is_none()) {
            if !watched.mounts.is_among(&mounted) {
                watched.until_ns = Some(self.looked_ns);
                gone.push((watched.device, self.looked_ns));
            }
        }
        let new = mounted.iter().filter(|mount| self.is_new(mount));
        let named = |mount: &Mount| (mount.kind.clone(), mount.mount_point.display().to_string());
        let new: Vec<(String, String)> = new.map(named).collect();
        self.came.extend(new);
        self.looked_ns = now_ns;
        gone
    }

    /// True for a filesystem on a traced disk that was not there at the begin. Another mount of one that was is none.
    fn is_new(&self, mount: &Mount) -> bool {
        let known = self.watched.iter().find(|watched| watched.device == mount.device);
        let is_known = known.is_some_and(|watched| watched.until_ns.is_none());
        let is_traced = |disk: &DeviceNumber| self.disks.iter().any(|traced| traced.number == *disk);
        !is_known && mounts::disks_below(mount, &self.disks).iter().any(is_traced)
    }

    /// Filesystems on the traced disks that were mounted since the begin: kind and mount point.
    pub fn came(&self) -> impl Iterator<Item = (&str, &str)> {
        self.came.iter().map(|(kind, place)| (kind.as_str(), place.as_str()))
    }

    /// Those that were unmounted, and until when they were seen mounted: `s_dev`, the trace's clock.
    pub fn gone(&self) -> impl Iterator<Item = (DeviceNumber, u64)> + '_ {
        self.watched.iter().filter_map(|watched| Some((watched.device, watched.until_ns?)))
    }
}
