//! Traces for other programs: events or requests in, bytes out. No exporter holds more than the present request.

pub mod runs;
pub mod perfetto;
mod protobuf;
pub mod fio;
pub mod blkparse;
pub mod json_lines;
pub mod csv;
mod fields;
mod quoted;
