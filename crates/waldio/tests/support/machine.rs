//! A simulated computer: a disk, a VFS on it, and with waldio the extension on top.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use blockio::disk::{Disk, Fill};
use blockio::simulated::disk::SimDisk;
use blockio::simulated::image::Image;

use waldio::log::layout::Layout;
use waldio::options::{DurabilityChoice, FillChoice, FlushDelay, Options, PersistChoice};

use super::hooked_disk::{Call, HookedDisk};
use super::sim_host::Host;
use super::sim_vfs;
use super::sqlite::{Connection, SqlError};
use super::sqlite_waldio;
use super::watch_vfs::{self, Event};

/// The database of every test.
pub const DATABASE: &str = "/sim/app.db";
/// Its log.
pub const LOG: &str = "/sim/app.db-wal";

/// Who writes the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// SQLite alone.
    Stock,
    /// waldio with one direct durable write; the log is reserved at once where the disk zeroes.
    Fua,
    /// As `Fua`, and no commit shares a flush, however recently another connection wrote: the same each time.
    FuaAlone,
    /// waldio with a buffered write and a flush; zeros are written ahead in steps.
    Flush,
    /// waldio without reserve.
    Strict,
    /// As `Flush`, where no commit waits for another one's flush.
    Apart,
    /// As `Flush`, and readers wait until what they see is durable.
    DurableReads,
    /// As `Fua`, and the same.
    DurableReadsFua,
    /// As `Flush`, and commits do not wait for their flush until `WINDOW_BYTES` are outstanding.
    FlushDelay,
    /// As `Fua`, and the same.
    WindowFua,
    /// As `Flush`, and the database file grows in chunks.
    Chunks,
    /// As `Flush`, in the `embedded` layout.
    Embedded,
    /// As `FuaAlone`, and the same.
    EmbeddedFua,
    /// As `Embedded`, and commits do not wait for their flush until `WINDOW_BYTES` are outstanding.
    EmbeddedWindow,
    /// SQLite alone beside the `embedded` layout: it must refuse a log, and change nothing, or find every commit.
    Outsider,
}

/// Two frames of a page each fit, three do not.
const WINDOW_BYTES: u64 = 3 * 4120;

impl Side {
    /// Whether what a reader saw must be there after a cut.
    pub fn reads_durably(self) -> bool {
        matches!(self, Side::DurableReads | Side::DurableReadsFua)
    }

    /// How much of what it acknowledged a cut may take.
    pub fn window(self) -> Option<FlushDelay> {
        let window = FlushDelay { bytes: WINDOW_BYTES, time: Duration::from_secs(1) };
        matches!(self, Side::FlushDelay | Side::WindowFua | Side::EmbeddedWindow).then_some(window)
    }

    fn durability(self) -> DurabilityChoice {
        self.window().map_or(DurabilityChoice::Full, DurabilityChoice::Bounded)
    }

    /// Whether the log has the `embedded` layout.
    pub fn is_embedded(self) -> bool {
        self.options().is_some_and(|options| options.layout == Layout::Embedded)
    }

    fn options(self) -> Option<Options> {
        let default = Options::default();
        match self {
            Side::Stock | Side::Outsider => None,
            Side::Fua => Some(Options { persist: PersistChoice::Fua, ..default }),
            Side::FuaAlone => Some(Options { persist: PersistChoice::Fua, group_commit: false, ..default }),
            Side::Flush | Side::DurableReads => {
                let (fill, durable_reads) = (FillChoice::Only(Fill::Zeroes), self.reads_durably());
                Some(Options { persist: PersistChoice::Flush, fill, durable_reads, ..default })
            }
            Side::DurableReadsFua => {
                Some(Options { persist: PersistChoice::Fua, durable_reads: true, ..default })
            }
            Side::Apart => Some(Options { persist: PersistChoice::Flush, group_commit: false, ..default }),
            Side::FlushDelay => Some(Options {
                persist: PersistChoice::Flush,
                fill: FillChoice::Only(Fill::Zeroes),
                durability: self.durability(),
                ..default
            }),
            Side::WindowFua => {
                Some(Options { persist: PersistChoice::Fua, durability: self.durability(), ..default })
            }
            Side::Embedded | Side::EmbeddedWindow => Some(Options {
                persist: PersistChoice::Flush,
                fill: FillChoice::Only(Fill::Zeroes),
                durability: self.durability(),
                layout: Layout::Embedded,
                ..default
            }),
            Side::Chunks => Some(Options {
                persist: PersistChoice::Flush,
                fill: FillChoice::Only(Fill::Zeroes),
                db_chunk_bytes: 8192,
                ..default
            }),
            Side::EmbeddedFua => Some(Options {
                persist: PersistChoice::Fua,
                group_commit: false,
                layout: Layout::Embedded,
                ..default
            }),
            Side::Strict => Some(Options { strict: true, ..default }),
        }
    }
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
    base: String,
}

impl Machine {
    /// A computer with an empty disk.
    pub fn new(side: Side) -> Machine {
        Machine::with_log_disk(side, |disk| Arc::new(disk.clone()), true)
    }

    /// A computer on which waldio sees the disk through what `wrap` makes of it.
    pub fn with_log_disk(
        side: Side,
        wrap: impl FnOnce(&SimDisk) -> Arc<dyn Disk>,
        inline_worker: bool,
    ) -> Machine {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let base = format!("sim-{}", COUNT.fetch_add(1, Ordering::SeqCst));
        let disk = SimDisk::new();
        let host = Host::new(disk.clone());
        sim_vfs::register(&base, Arc::clone(&host));
        let vfs = match side.options() {
            None => base.clone(),
            Some(options) => {
                let name = format!("waldio-{base}");
                sqlite_waldio::register(&name, &base, wrap(&disk), options, inline_worker);
                name
            }
        };
        Machine { disk, host, side, vfs, base }
    }

    /// A computer whose connections tell their thread's watcher what they do.
    pub fn watched(side: Side) -> Machine {
        let hook = |call: Call<'_>| {
            if let Call::Synced = call {
                watch_vfs::tell(Event::LogFlushed);
            }
        };
        let wrap = |disk: &SimDisk| {
            Arc::new(HookedDisk { disk: Arc::new(disk.clone()), hook: Arc::new(hook) }) as Arc<dyn Disk>
        };
        let mut machine = Machine::with_log_disk(side, wrap, true);
        let name = format!("watched-{}", machine.vfs);
        watch_vfs::register(&name, &machine.vfs);
        machine.vfs = name;
        machine
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

    /// Another process with waldio: the name of a VFS that shares nothing with this machine's but the files.
    pub fn another_process(&self) -> String {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("waldio-{}-{}", self.base, COUNT.fetch_add(1, Ordering::SeqCst));
        sqlite_waldio::register(&name, &self.base, Arc::new(self.disk.clone()), Options::default(), true);
        name
    }

    /// The name of the VFS without waldio.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Opens the database without waldio, as another process might.
    pub fn open_foreign(&self) -> Result<Connection, SqlError> {
        Connection::open(DATABASE, &self.base)
    }
}
