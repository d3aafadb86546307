//! The plots of the page of `joj trace`. Top to bottom:
//!
//! ```text
//! scatter   time x sectors: a bubble for each request
//! curves    the journal block ratio of sync calls, and how long requests and calls took
//! panels    stacked bars: volumes by class, and what a commit consists of
//! axis      the sector axis: used ranges one above the other
//! colours   the colours of all of them
//! ```

pub(super) mod scatter;
pub(super) mod curves;
pub(super) mod panels;
mod axis;
pub(super) mod colours;
