//! The kernel's side of an NBD connection: a block device whose requests come out of a socket.
//!
//! Source: linux/nbd.h and drivers/block/nbd.c of the kernel. One ioctl gives the kernel the socket, another stays until
//! the connection ends.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

/// `_IO(0xab, n)` of linux/nbd.h.
const NBD_SET_SOCK: libc::c_ulong = 0xab00;
const NBD_SET_BLKSIZE: libc::c_ulong = 0xab01;
const NBD_DO_IT: libc::c_ulong = 0xab03;
const NBD_CLEAR_SOCK: libc::c_ulong = 0xab04;
const NBD_SET_SIZE_BLOCKS: libc::c_ulong = 0xab07;
const NBD_DISCONNECT: libc::c_ulong = 0xab08;
const NBD_SET_FLAGS: libc::c_ulong = 0xab0a;

/// Block size, in bytes: what a sector of the device can be written alone.
const BLOCK_BYTES: u64 = 512;

/// A device that is being served.
#[derive(Debug)]
pub struct NbdClient {
    node: File,
    socket: UnixStream,
}

impl NbdClient {
    /// Makes `node` (for example `/dev/nbd0`) a device of `bytes`, whose server reads the other end of `socket`. `flags`: what
    /// it takes besides reads and writes (`NBD_FLAG_*` of linux/nbd.h).
    /// # Errors
    /// Where the node is missing or in use.
    pub fn connect(node: &str, socket: UnixStream, bytes: u64, flags: u64) -> io::Result<NbdClient> {
        let node = OpenOptions::new().read(true).write(true).open(node)?;
        let client = NbdClient { node, socket };
        client.control(NBD_CLEAR_SOCK, 0)?;
        client.control(NBD_SET_BLKSIZE, BLOCK_BYTES)?;
        client.control(NBD_SET_SIZE_BLOCKS, bytes / BLOCK_BYTES)?;
        client.control(NBD_SET_FLAGS, flags)?;
        let socket = u64::try_from(client.socket.as_raw_fd()).map_err(io::Error::other)?;
        client.control(NBD_SET_SOCK, socket)?;
        Ok(client)
    }

    /// Stays until the connection ends.
    /// # Errors
    /// How the connection ended, where not by [`NbdClient::disconnect`].
    pub fn stay(&self) -> io::Result<()> {
        self.control(NBD_DO_IT, 0)
    }

    /// A second handle, to end the connection with.
    /// # Errors
    /// Where there are too many open files.
    pub fn try_clone(&self) -> io::Result<NbdClient> {
        Ok(NbdClient { node: self.node.try_clone()?, socket: self.socket.try_clone()? })
    }

    /// Ends the connection: [`NbdClient::stay`] returns.
    /// # Errors
    /// As ioctl(2).
    pub fn disconnect(&self) -> io::Result<()> {
        self.control(NBD_DISCONNECT, 0)
    }

    fn control(&self, request: libc::c_ulong, argument: u64) -> io::Result<()> {
        // SAFETY: these ioctls take a number, no pointer; the descriptor is open.
        let result = unsafe { libc::ioctl(self.node.as_raw_fd(), request, argument) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}
