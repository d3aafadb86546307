//! Calls that joj captured itself, with arguments as numbers, and what was seen of the memory behind them.
//!
//! ```text
//! eBPF | ptrace -> CapturedEvent -> in order of time -> decode -> calls -> presence (files that were there before) -> Recording
//!
//! capture     all of a capture, made a recording
//! presence    files that were there before the first call
//! one_file    two names of one file that a rename was asked to make one
//! decode      a captured call by its types
//! called      which calls are looked at, and which of their arguments are what
//! ```

pub mod capture;
pub mod presence;
mod one_file;
mod decode;
pub mod called;

use called::CalledName;

/// What a descriptor is, as the kernel says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DescriptorKind {
    /// Nothing is open under this number, or nobody looked.
    #[default]
    Unknown,
    /// A regular file or a directory.
    File,
    /// A terminal, a disk and the like.
    Device,
    /// A pipe, a socket and the like.
    Other,
}

impl DescriptorKind {
    /// By `st_mode` of what is open.
    pub fn of_mode(mode: u32) -> Self {
        match mode & crate::recording::flags::S_IFMT {
            0o100_000 | 0o040_000 => Self::File,
            0o020_000 | 0o060_000 => Self::Device,
            _ => Self::Other,
        }
    }
}

/// Which file of the machine, as far as a capture can see it. Numbers of one capture can be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct FileIdentity {
    /// Its inode's number.
    pub inode: u64,
    /// Its filesystem; with eBPF also the inode's generation.
    pub device: u64,
}

impl FileIdentity {
    /// Inode and filesystem alone, as the kernel numbers it (`dev_t` in kdev_t.h), whoever saw them.
    pub fn place(self) -> (u64, u64) {
        let device = self.device;
        if device >> 32 != 0 {
            return (self.inode, device >> 32);
        }
        // As stat tells it: 12 bits of the major number above 8 of the minor one.
        let (major, minor) = (device >> 8 & 0xfff, device & 0xff | device >> 12 & !0xff);
        (self.inode, major << 20 | minor)
    }
}

/// What was seen of the memory behind a call's arguments, or of what it opened. Never contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CallSeen {
    /// Nothing, or there is nothing to see.
    #[default]
    Nothing,
    /// Of vectored calls: the length of all buffers.
    Length(u64),
    /// Of `stat` and its kin.
    Status {
        /// `st_mode`.
        mode: u32,
        /// `st_size`.
        bytes: u64,
    },
    /// Of `open` and its kin: what is open now.
    Opened {
        /// `st_mode`.
        mode: u32,
        /// `st_size`.
        bytes: u64,
        /// It was not there before.
        is_created: bool,
        /// Which file it is, where it has several names.
        shared: Option<FileIdentity>,
    },
    /// Of `fcntl` with a lock: `struct flock`.
    Lock {
        /// F_RDLCK, F_WRLCK, F_UNLCK.
        kind: u32,
        /// SEEK_SET, SEEK_CUR, SEEK_END.
        whence: u32,
        /// `l_start`.
        start: i64,
        /// `l_len`.
        length: i64,
    },
}

/// `struct open_how`, apart from the mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OpenHow {
    /// O_.. flags.
    pub flags: u64,
    /// RESOLVE_.. flags.
    pub resolve: u64,
}

/// The head of a frame of a SQLite log that a write wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FrameHead {
    /// Where it is in the log.
    pub offset: u64,
    /// The page's number.
    pub page: u32,
    /// Pages of the database after the commit; 0 where the frame ends none.
    pub commit_pages: u32,
}

/// Frames of a SQLite log begin behind its header.
pub const LOG_HEADER_BYTES: u64 = 32;
/// Before each page stands its head.
pub const FRAME_HEAD_BYTES: u64 = 24;

/// Bytes of a page, by the first bytes of a SQLite log (<https://www.sqlite.org/fileformat2.html#wal_file_format>); `None` where that
/// is no log, or one of another layout.
pub fn log_page_bytes(head: &[u8]) -> Option<u32> {
    let head: &[u8; 12] = head.first_chunk()?;
    let long = |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let is_log = long(0) & !1 == 0x377f_0682 && long(4) == 3_007_000;
    (is_log && long(8).is_power_of_two() && (512..=65_536).contains(&long(8))).then(|| long(8))
}

/// Where heads of frames begin in the bytes from `begin` to `end` of a log. The page's number and the commit mark lie within.
pub fn frame_heads(begin: u64, end: u64, page_bytes: u32) -> impl Iterator<Item = u64> {
    let step = FRAME_HEAD_BYTES + u64::from(page_bytes);
    let first = begin.max(LOG_HEADER_BYTES);
    let first = LOG_HEADER_BYTES + (first - LOG_HEADER_BYTES).div_ceil(step) * step;
    (0..).map(move |index| first + index * step).take_while(move |at| at + 8 <= end)
}

/// What page 1 of a SQLite database says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FirstPageHead {
    /// Bytes of a page.
    pub page_bytes: u32,
    /// The format's version for writing, byte 18.
    pub write_version: u8,
    /// The format's version for reading, byte 19.
    pub read_version: u8,
    /// Bytes at the end of each page that SQLite leaves to others, byte 20.
    pub reserved_bytes: u8,
    /// Pages of the database.
    pub pages: u32,
    /// Pages of its free list.
    pub free_pages: u32,
}

impl FirstPageHead {
    /// Bytes that have to be looked at.
    pub const BYTES: usize = 40;

    /// By the first bytes of a file (<https://www.sqlite.org/fileformat2.html#the_database_header>); `None` where that is no
    /// SQLite database.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let head: &[u8; Self::BYTES] = bytes.first_chunk()?;
        if &head[..16] != b"SQLite format 3\0" {
            return None;
        }
        let long = |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let page_bytes = u32::from(u16::from_be_bytes([head[16], head[17]]));
        Some(Self {
            page_bytes: if page_bytes == 1 { 65_536 } else { page_bytes },
            write_version: head[18],
            read_version: head[19],
            reserved_bytes: head[20],
            pages: long(28),
            free_pages: long(36),
        })
    }
}

/// The number of a descriptor among the arguments: an `int` is in the lower half of a register.
pub fn descriptor_number(argument: u64) -> i32 {
    decode::low(argument).cast_signed()
}

/// A call that is over.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CapturedCall {
    /// Nanoseconds of the monotonic clock.
    pub begin_ns: u64,
    /// When it returned.
    pub end_ns: u64,
    /// Its process.
    pub process: u32,
    /// Its thread.
    pub thread: u32,
    /// Which call.
    pub called: CalledName,
    /// Its arguments.
    pub arguments: [u64; 6],
    /// What it returned, or its errno, negative.
    pub result: i64,
    /// What its descriptor was when it began.
    pub descriptor: DescriptorKind,
    /// Its paths, as the program gave them; `None` where the memory could not be read.
    pub paths: [Option<Vec<u8>>; 2],
    /// What was seen besides.
    pub seen: CallSeen,
    /// Of `openat2`: how it opens.
    pub open_how: OpenHow,
    /// Heads of frames that it wrote to a SQLite log.
    pub frames: Vec<FrameHead>,
    /// What the page 1 says that it wrote or read.
    pub first_page: Option<FirstPageHead>,
}

/// How a new thread relates to the one that made it.
pub use super::operation::{Sharing, ThreadEnd};

/// What a capture hands up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CapturedEvent {
    /// A call.
    Call(Box<CapturedCall>),
    /// A thread or process began.
    Fork {
        /// When.
        time_ns: u64,
        /// Who made it.
        parent: u32,
        /// The new thread.
        child: u32,
        /// What it shares.
        sharing: Sharing,
    },
    /// A process runs another program from now on.
    Exec {
        /// When.
        time_ns: u64,
        /// The thread, which has the number of its process now.
        thread: u32,
        /// Its number before.
        former: u32,
    },
    /// A thread woke another one.
    Woken {
        /// When.
        time_ns: u64,
        /// The thread that waited.
        thread: u32,
        /// The one that woke it; 0 where nobody did, and it waited in vain.
        waker: u32,
        /// How long it had waited by then, in nanoseconds; 0 where that is not known.
        waited_ns: u64,
        /// What for, as the row has it; 0 where that is not known.
        awaited: u64,
    },
    /// A thread is gone.
    Exit {
        /// When.
        time_ns: u64,
        /// The thread.
        thread: u32,
        /// By what.
        end: ThreadEnd,
    },
}

impl CapturedEvent {
    /// When it has its effect on descriptors: a close when it begins, because another thread may get the number before it returns;
    /// what makes a descriptor or changes the directory when it returns.
    fn effect_ns(&self) -> u64 {
        match self {
            Self::Call(call) if call.called.has_its_effect_at_its_end() => call.end_ns,
            Self::Call(call) => call.begin_ns,
            Self::Fork { time_ns, .. }
            | Self::Exec { time_ns, .. }
            | Self::Woken { time_ns, .. }
            | Self::Exit { time_ns, .. } => *time_ns,
        }
    }
}
