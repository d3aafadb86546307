//! Which file, commit and cause each request has. Top to bottom:
//!
//! ```text
//! attribute      events in, requests out: asks all below; in completions how requests end
//! causes         the sync call for which something is written
//! transactions   commits under way;  issued, queued, barriers: requests not done yet
//! files          what each file is at that time;  places, extents: whose block that is
//! classify       what a request holds: data, a file's metadata, a journal's block
//! ```

pub mod attribute;
mod causes;
mod barriers;
mod issued;
mod queued;
mod transactions;
pub mod request;
mod files;
mod extents;
mod classify;
mod places;
