//! The plots of the page of `joj trace`.

pub(super) mod scatter;
pub(super) mod curves;
pub(super) mod panels;
mod axis;
pub(super) mod colours;
