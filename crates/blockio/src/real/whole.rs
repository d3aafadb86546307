//! Whole ranges: the kernel may do a part at a time.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::io::Errno;

/// Reads into `into` at `offset`; how many bytes there were (fewer only at the end of the file).
/// # Errors
/// As pread(2); `into` is undefined.
pub(super) fn read_whole(file: BorrowedFd<'_>, into: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < into.len() {
        match rustix::io::pread(file, &mut into[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(read) => done += read,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(done)
}

/// Writes all of `data` at `offset`.
/// # Errors
/// As pwrite(2); any part of the range may be written.
pub(super) fn write_whole(file: BorrowedFd<'_>, data: &[u8], offset: u64) -> io::Result<()> {
    let mut done = 0;
    while done < data.len() {
        match rustix::io::pwrite(file, &data[done..], offset + done as u64) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => done += written,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
