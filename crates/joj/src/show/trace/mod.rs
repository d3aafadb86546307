//! What `joj trace` shows. Top to bottom: the page with its plots, the text for a terminal, their parts.

#[cfg(test)]
mod sample;
pub mod page;
mod plots;
pub mod text;
pub mod steps;
mod contents;
mod costs;
mod volumes;
mod head;
mod processes;
mod words;
