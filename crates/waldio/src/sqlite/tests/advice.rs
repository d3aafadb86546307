//! Goal: advice that depends on what no test machine has, or not at will, is given, and given there alone.
//! Method: a log on a simulated disk of each kind of filesystem. What SQL can bring about is in `real_options.rs`.

use std::path::Path;
use std::sync::Arc;

use blockio::disk::{Disk, Filesystem, OpenOptions};
use blockio::simulated::disk::SimDisk;
use blockio::simulated::image::Image;
use blockio::simulated::state::SimOptions;

use crate::connection::Connection;
use crate::database::{Database, Helpers};
use crate::log::layout::Layout;
use crate::options::Options;
use crate::sqlite::advice;

#[test]
fn a_log_where_a_commit_is_worth_less_than_on_a_disk_is_told_of_and_no_other() {
    for (filesystem, part) in [
        (Filesystem::Network, "network filesystem"),
        (Filesystem::Tmpfs, "nothing there survives a power cut"),
        (Filesystem::Overlay, "locks may not hold"),
        (Filesystem::Ext4, ""),
        (Filesystem::Fuse, ""),
        (Filesystem::Other, ""),
    ] {
        let disk = SimDisk::from_image(&Image::default(), SimOptions { filesystem, ..SimOptions::default() });
        let path = Path::new("/app.db");
        drop(disk.open(path, OpenOptions { create: true, ..OpenOptions::EXISTING }).expect("an empty disk"));
        let options = Options::default();
        let (base, helpers) = ("base".to_owned(), Helpers::inline());
        let database = Database::new(path.to_path_buf(), None, base, Arc::new(disk), helpers, options);
        let database = Arc::new(database);
        let connections = [Arc::new(Connection::new(Arc::clone(&database), options))];
        assert_eq!(advice::for_database(&database, &connections, None), [], "no log is open");
        let _log = database.open_log(true, Layout::Stock).expect("a sound disk");
        let told = advice::for_database(&database, &connections, None);
        assert_eq!(told.len(), usize::from(!part.is_empty()), "{filesystem:?}: {told:?}");
        assert!(told.iter().all(|(text, _)| text.contains(part)), "{filesystem:?}: {told:?}");
    }
}
