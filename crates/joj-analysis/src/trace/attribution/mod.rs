//! Which file, commit and cause each request has. Top to bottom:
//!
//! ```text
//! attribute      events in, requests out: asks all below
//! transactions   commits under way;  syncs: which sync a request belongs to;  queued, barriers: requests not done yet
//! journals       commits of filesystems' journals, and how near a sync is to waiting for one
//! files          what each file is at that time;  places, extents: whose block that is
//! classify       what a request holds: data, a file's metadata, a journal's block
//! ```

pub mod attribute;
mod barriers;
mod queued;
mod syncs;
mod journals;
mod transactions;
pub mod request;
mod files;
mod extents;
mod classify;
mod places;
