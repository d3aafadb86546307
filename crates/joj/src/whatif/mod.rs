//! `joj whatif`: a recording replayed as it is and in other configurations. A file uses only files below it.
//!
//! ```text
//! recording -> settings (what each needs, or why it cannot be had) -> rounds { call_replay | commit_replay } -> rows, advice -> text, page
//!
//! command         from the options to the exit code; records a command first
//! rounds          all configurations in turn, several times
//! beside          what of a row with commits is measured apart from them
//! settings        the configurations that can be had, made ready
//! commit_replay   the commits through SQLite, the other calls as recorded
//! call_replay     all calls, on the disk or with files in memory
//! rerun           the program itself in the configurations that running it can have
//! left_behind     what a run leaves behind it;  left_processes: the processes of that
//! directory_copy  what each run begins with
//! memory          a place in memory for files
//! error           why there is no result
//! ```

pub mod command;
pub mod rounds;
mod beside;
mod settings;
mod commit_replay;
mod call_replay;
mod rerun;
mod left_behind;
mod left_processes;
mod directory_copy;
mod memory;
pub mod error;
