//! A report beside the papers' numbers: the page and the text, both of one sheet.

pub mod page;
pub mod text;
mod sheet;
