//! The bytes of NBD's transmission phase, with simple replies; numbers are big-endian.
//!
//!   request | magic 4 | flags 2 | type 2 | cookie 8 | offset 8 | length 4 | data of a write
//!   reply   | magic 4 | error 4 | cookie 8 | data of a read
//! Source: the NBD protocol (doc/proto.md of the nbd project); Linux, include/uapi/linux/nbd.h.

use std::io;

const REQUEST_MAGIC: u32 = 0x2560_9513;
const REPLY_MAGIC: u32 = 0x6744_6698;
/// Command flag: force unit access.
const FUA: u16 = 1;

/// Bytes of a request without its data.
pub(super) const HEADER_BYTES: usize = 28;
/// The client's request is wrong.
pub(super) const EINVAL: u32 = 22;

/// Transmission flags, as NBD_SET_FLAGS takes them.
pub(super) const HAS_FLAGS: u64 = 1;
pub(super) const SEND_FLUSH: u64 = 1 << 2;
pub(super) const SEND_FUA: u64 = 1 << 3;
pub(super) const SEND_TRIM: u64 = 1 << 5;
pub(super) const SEND_WRITE_ZEROES: u64 = 1 << 6;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Command {
    Read,
    Write,
    Disconnect,
    Flush,
    Trim,
    WriteZeroes,
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub command: Command,
    pub fua: bool,
    /// The client's own; it comes back in the reply.
    pub cookie: [u8; 8],
    pub offset_bytes: u64,
    pub len_bytes: u32,
}

impl Header {
    /// The header at the beginning of `input`; nothing while it is not complete.
    pub fn read(input: &[u8]) -> io::Result<Option<Header>> {
        let Some(bytes) = input.first_chunk::<HEADER_BYTES>() else { return Ok(None) };
        let word = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let half = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        if word(0) != REQUEST_MAGIC {
            let message = format!(
                "a request begins with {:#010x}, not NBD's {REQUEST_MAGIC:#010x}: no such client",
                word(0)
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        let command = match half(6) {
            0 => Command::Read,
            1 => Command::Write,
            2 => Command::Disconnect,
            3 => Command::Flush,
            4 => Command::Trim,
            6 => Command::WriteZeroes,
            _ => Command::Unknown,
        };
        let mut cookie = [0; 8];
        cookie.copy_from_slice(&bytes[8..16]);
        let offset_bytes = u64::from(word(16)) << 32 | u64::from(word(20));
        Ok(Some(Header { command, fua: half(4) & FUA != 0, cookie, offset_bytes, len_bytes: word(24) }))
    }

    /// Bytes of data behind the header; an error above `max`, behind which the stream cannot be followed.
    pub fn data_bytes(&self, max: u32) -> io::Result<u32> {
        match self.command {
            Command::Write if self.len_bytes > max => {
                let message = format!("a write of {} bytes: at most {max} are served", self.len_bytes);
                Err(io::Error::new(io::ErrorKind::InvalidData, message))
            }
            Command::Write => Ok(self.len_bytes),
            _ => Ok(0),
        }
    }
}

/// A simple reply.
pub(super) fn reply(cookie: [u8; 8], error: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(16 + data.len());
    bytes.extend(REPLY_MAGIC.to_be_bytes());
    bytes.extend(error.to_be_bytes());
    bytes.extend(cookie);
    bytes.extend(data);
    bytes
}
