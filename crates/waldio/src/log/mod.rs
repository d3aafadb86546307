//! The bytes of a log. Top to bottom:
//!
//! ```text
//! embedded_file    a log whose frames are whole pages, seen as SQLite's own
//! reserved_bytes   where such a page's own bytes are kept that stand in the frame header's place
//! embedded         that layout: where its frames stand in the file, and the header that keeps SQLite out
//! rewrite          a log written over itself, after a failed sync
//! pending_writes   frames that wait in memory for the next write
//! recovery         the frames of a log that are valid, and what a crash left behind them
//! layout, frame    where a frame stands, its header, its checksum
//! reserve          how much log space is prepared ahead of need
//! ```

pub mod embedded_file;
pub mod reserved_bytes;
pub mod embedded;
pub(crate) mod rewrite;
pub(crate) mod pending_writes;
pub mod recovery;
pub mod layout;
pub mod frame;
pub mod reserve;
