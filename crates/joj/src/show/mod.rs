//! A result as people see it: a table for a terminal, a page with plots. A folder a subcommand, then what they share:
//!
//! ```text
//! replay     what a replay was like, as text, that of --as included
//! whatif     the table of configurations with its advice, as text, Markdown and a page
//! monitor    lines while it runs, then a summary, a table or a page
//! trace      the summary and the steps as text, the page with its plots
//! lab        tables of cells and of crash states, the report
//! mobibench  Mobibench's lines, and those of its files
//! probe      the tables of `joj device probe`
//! compare    two results side by side
//! bench      the table and the page of a whole result
//! latency    plot: the distribution of latencies
//! bars       plot: horizontal bars, under headings
//! timeline   plot: values over the time
//! sheet      a table that is shown as text and as HTML
//! svg        the few shapes that the plots are made of
//! paper      what a result is drawn on: its width, its colours, columns that line up
//! words      shares, sizes and names as people read them; no name acts on a terminal
//! text       numbers as people read them
//! ```

pub mod replay;
pub mod whatif;
pub mod monitor;
pub mod trace;
pub mod lab;
pub mod mobibench;
pub mod probe;
pub mod compare;
pub mod bench;
pub mod latency;
pub mod bars;
pub mod timeline;
mod sheet;
pub mod svg;
pub mod paper;
pub mod words;
pub mod text;
