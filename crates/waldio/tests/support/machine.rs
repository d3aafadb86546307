//! A simulated computer: a disk, a VFS on it, and with waldio the extension on top.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use blockio::sim_disk::SimDisk;
use blockio::sim_image::Image;

use super::sim_host::Host;
use super::sim_vfs;
use super::sqlite::{Connection, SqlError};

/// The database of every test.
pub const DATABASE: &str = "/sim/app.db";

/// Who writes the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// SQLite alone.
    Stock,
}

/// One computer. Its VFS stays registered when it is dropped.
pub struct Machine {
    /// Its disk.
    pub disk: SimDisk,
    /// What the VFS does.
    pub host: Arc<Host>,
    /// Who writes the log.
    pub side: Side,
    vfs: String,
}

impl Machine {
    /// A computer with an empty disk.
    pub fn new(side: Side) -> Machine {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::SeqCst);
        let disk = SimDisk::new();
        let host = Host::new(disk.clone());
        let vfs = format!("sim-{number}");
        sim_vfs::register(&vfs, Arc::clone(&host));
        Machine { disk, host, side, vfs }
    }

    /// Starts the computer with `image` on its disk. No connection may be open.
    pub fn boot(&self, image: &Image) {
        self.disk.restart_from(image);
        self.host.reboot();
    }

    /// Opens the database.
    pub fn open(&self) -> Result<Connection, SqlError> {
        Connection::open(DATABASE, &self.vfs)
    }
}
