//! Which filesystems of a trace's head are mounted still: their disks may be another filesystem's when they are not.

use joj_analysis::trace::event::DeviceNumber;
use joj_analysis::trace::header::Header;

use crate::machine::files::mounts::{self, MountsOfOne};
use crate::machine::proc::clock::shared_ns;

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
        MountWatch { watched: watched.collect(), looked_ns }
    }

    /// Looks which are there still. One that is not was seen last at the look before.
    pub fn look(&mut self) {
        let now_ns = shared_ns();
        let Ok(mounted) = mounts::list() else { return };
        for watched in self.watched.iter_mut().filter(|watched| watched.until_ns.is_none()) {
            if !watched.mounts.is_among(&mounted) {
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
