//! Goal: what a shared flush covered does not count as durable where it was cut off while the flush ran.
//! Method: a commit takes its ticket and is never published, and the flush runs that knows its end. Whoever writes next puts
//! other bytes there, which that flush did not cover.

use std::path::Path;
use std::sync::{Arc, Mutex};

use blockio::disk::{Disk, OpenOptions};
use blockio::sim_disk::SimDisk;

use crate::database::Database;
use crate::frame::{Checksum, FrameHeader, LogHeader, Salts};
use crate::layout::Layout;
use crate::log_file::{LogFile, Share};
use crate::options::{Options, PersistChoice};
use crate::overdue_flush::hooked_disk::{Call, HookedDisk};
use crate::session::LogSession;
use crate::window::Flusher;
use crate::worker::Worker;

const PAGE_BYTES: u32 = 4096;
const SALTS: Salts = Salts([7; 8]);

/// Writes a log of one commit, one page long, that shares its flush; whether it counts as durable when that is over, during
/// which everything from `cut_at` on was cut off.
fn is_durable_after(cut_at: Option<u64>) -> bool {
    let disk = SimDisk::new();
    let path = Path::new("/app.db");
    let created = OpenOptions { create: true, mode: 0o600, ..OpenOptions::EXISTING };
    disk.open(path, created).unwrap();
    let cut = Arc::new(Mutex::new(None::<(Arc<LogSession>, u64)>));
    let during = Arc::clone(&cut);
    let hook = move |call: Call<'_>| {
        if let (Call::Synced, Some((session, end))) = (call, during.lock().unwrap().take()) {
            session.tail().cut(end);
        }
    };
    let hooked = HookedDisk { disk: Arc::new(disk), hook: Arc::new(hook) };
    let options = Options { persist: PersistChoice::Fua, ..Options::default() };
    let shared = (Worker::Inline, Flusher::Never, Arc::default());
    let database =
        Arc::new(Database::new(path.to_path_buf(), "base".to_owned(), Arc::new(hooked), shared, options));
    let (session, file) = database.open_log(true, Layout::Stock).unwrap();
    let mut log = LogFile::new(database, Arc::clone(&session), file);
    log.write(&LogHeader::encode(false, PAGE_BYTES, 0, SALTS), 0, None).unwrap();
    log.sync(false, Share::No, None).unwrap();
    let frame = FrameHeader { page_number: 1, commit_pages: 1, salts: SALTS, checksum: Checksum::default() };
    log.write(&frame.encode(), 32, Some(PAGE_BYTES)).unwrap();
    log.write(&[1; PAGE_BYTES as usize], 32 + 24, Some(PAGE_BYTES)).unwrap();
    log.sync(false, Share::Wait, None).unwrap();
    assert!(log.is_flush_awaited(), "the commit shares a flush");
    *cut.lock().unwrap() = cut_at.map(|end| (Arc::clone(&session), end));
    log.await_flush(None).unwrap();
    assert!(cut.lock().unwrap().is_none(), "the flush came by the hook");
    session.tail().is_durable_up_to(SALTS, 32 + 24 + u64::from(PAGE_BYTES))
}

#[test]
fn what_was_cut_off_during_the_flush_is_not_durable() {
    assert!(is_durable_after(None));
    assert!(!is_durable_after(Some(32)));
}
