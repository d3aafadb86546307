//! Bytes of a block device, for those who look at a filesystem's own description.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use joj_analysis::trace::event::DeviceNumber;
use joj_analysis::trace::header::Disk;
use thiserror::Error;

/// Why the bytes of a block device cannot be read.
#[derive(Debug, Error)]
pub enum DeviceOpenError {
    /// There is no such node in /dev, or this process may not read it.
    #[error("{}: {error}", .path.display())]
    Io {
        /// The node.
        path: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// The node is another device's.
    #[error("{}: it is not block device {device}", .path.display())]
    Another {
        /// The node.
        path: PathBuf,
        /// The device that was meant.
        device: DeviceNumber,
    },
}

/// A block device, open for reading through the page cache: what the kernel changed there and has not yet written is seen too.
#[derive(Debug)]
pub struct DeviceBytes {
    file: File,
    path: PathBuf,
}

impl DeviceBytes {
    /// Opens the device of a disk or partition.
    /// # Errors
    /// Why not.
    pub fn open(disk: &Disk) -> Result<Self, DeviceOpenError> {
        // sysfs writes the slash in names such as cciss/c0d0 as an exclamation mark.
        let path = Path::new("/dev").join(disk.name.replace('!', "/"));
        let problem = |error| DeviceOpenError::Io { path: path.clone(), error };
        let file = OpenOptions::new().read(true).open(&path).map_err(problem)?;
        let facts = file.metadata().map_err(problem)?;
        let number = (rustix::fs::major(facts.rdev()), rustix::fs::minor(facts.rdev()));
        if !facts.file_type().is_block_device() || number != disk.number.major_minor() {
            return Err(DeviceOpenError::Another { path, device: disk.number });
        }
        Ok(Self { file, path })
    }

    /// What is read next is not what follows: the kernel shall read no more than is asked for.
    pub fn without_reading_ahead(&self) {
        let _ = rustix::fs::fadvise(&self.file, 0, None, rustix::fs::Advice::Random);
    }

    /// Reads `bytes` bytes from byte `at` on.
    /// # Errors
    /// The device ends before, or cannot be read.
    pub fn read(&self, at: u64, bytes: usize) -> io::Result<Vec<u8>> {
        let mut buffer = vec![0; bytes];
        match self.file.read_exact_at(&mut buffer, at) {
            Ok(()) => Ok(buffer),
            Err(error) => Err(io::Error::new(error.kind(), format!("{}: {error}", self.path.display()))),
        }
    }
}
