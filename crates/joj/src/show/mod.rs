//! A result as people see it: a table for a terminal, a page with plots. A file uses only files below it.

pub mod monitor_page;
#[cfg(test)]
mod trace_sample;
pub mod trace_page;
mod trace_scatter;
mod trace_curves;
mod trace_panels;
mod trace_axis;
mod trace_colours;
pub mod trace_text;
pub mod trace_steps;
mod trace_contents;
mod trace_costs;
mod trace_volumes;
mod trace_head;
mod trace_words;
mod sheet;
pub mod page;
pub mod initialisation_page;
pub mod pattern_page;
pub mod mode_page;
pub mod writers;
pub mod lab_table;
pub mod latency;
pub mod bars;
pub mod timeline;
pub mod svg;
pub mod table;
pub mod contended_table;
pub mod initialisation_table;
pub mod pattern_table;
pub mod mode_table;
pub mod monitor_summary;
pub mod monitor_lines;
pub mod monitor_csv;
pub mod groups;
pub mod text;
