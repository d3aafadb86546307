//! What runs in the emulated machine, as its first process. Top to bottom:
//!
//! ```text
//! agent       makes the machine usable, does the job, turns the machine off
//! crash       crash states: a cut, the device as it leaves it, recovery, a verdict
//! measure     one cell: device, filesystem, transactions, and the same again with a trace
//! replay      a recording, replayed on device and filesystem;  command: commands of the host's
//! recording   what is to be cut: the log of a device while something is written to it
//! stand       device and filesystem to measure on, set up at the begin of a second
//! volume      the filesystem: made, mounted, unmounted
//! console     what the guest says to joj outside while it works
//! emulated    the device: a thread that serves it, and the kernel as its client
//! error       why the guest cannot do its work
//! ```

pub mod agent;
mod crash;
mod measure;
mod replay;
mod command;
mod recording;
mod stand;
mod volume;
mod console;
mod emulated;
mod error;
