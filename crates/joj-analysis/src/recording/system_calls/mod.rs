//! What system calls mean for files, whoever saw them: strace, or joj's own capture.
//!
//! ```text
//! strace's text | captured calls -> operation -> calls, names (what each means for files) -> output
//!                                                 `- processes (which descriptor is which file)
//!
//! captured    calls that joj captured itself
//! names       calls that name files
//! calls       calls on descriptors, and on processes
//! descriptor_links  names that the kernel makes up for what is open
//! links       where paths lead through symbolic links
//! open_names  names of what is open, through renames
//! processes   descriptors of processes, descriptions behind them
//! output      collects the calls, and counts what cannot be replayed
//! operation   what a call asks for, with its arguments by their types
//! path_answers  what only the recording machine knows of a path
//! ```

pub mod captured;
mod names;
mod descriptor_links;
pub mod calls;
pub mod processes;
mod open_names;
pub mod links;
pub mod output;
pub mod operation;
pub mod path_answers;
