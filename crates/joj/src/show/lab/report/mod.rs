//! A report beside the papers' numbers.
//!
//! ```text
//! page    one HTML page
//! text    text for a terminal
//! sheet   one table of a report as columns, with what is to be said below: what both are made of
//! ```

pub mod page;
pub mod text;
mod sheet;
