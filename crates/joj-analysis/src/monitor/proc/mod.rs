//! Files of /proc as the kernel writes them, one file each.

pub mod stat;
pub mod meminfo;
pub mod diskstats;
pub mod net_dev;
pub mod interrupts;
pub mod proc_text;
