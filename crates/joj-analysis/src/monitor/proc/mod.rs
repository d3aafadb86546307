//! Files of /proc as the kernel writes them, one file each. Top to bottom:
//!
//! ```text
//! stat         /proc/stat: what the processors' time went into, interrupts, context switches
//! meminfo      /proc/meminfo: what main memory is used for
//! diskstats    /proc/diskstats: what each block device did
//! net_dev      /proc/net/dev: what each network interface received and sent
//! interrupts   /proc/interrupts: how often each device interrupted each processor
//! proc_text    what they share: a text line by line, and what is wrong with a damaged one
//! ```

pub mod stat;
pub mod meminfo;
pub mod diskstats;
pub mod net_dev;
pub mod interrupts;
pub mod proc_text;
