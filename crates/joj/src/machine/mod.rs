//! Everything that touches the machine: system calls, clocks, privilege, `unsafe`. The rest of joj is arithmetic. Top to bottom:
//!
//! ```text
//! replayer  recorded calls, made again; the files that they need, and those that they leave
//! qemu      the emulated machine, its kernel, the client of its devices
//! capture   requests and calls of the kernel, by eBPF or tracefs, into a file
//! sqlite    a SQLite library, loaded at run time; its syncs counted or slowed down
//! files     files that joj makes or watches, mounts, extents, what a disk counted meanwhile
//! devices   disks, and the bytes on them that say whose blocks are whose
//! proc      processes, clocks, signals, memory
//! ```

pub mod replayer;
pub mod qemu;
pub mod capture;
pub mod sqlite;
pub mod files;
pub mod devices;
pub mod proc;
