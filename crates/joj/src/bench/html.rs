//! A result as one HTML page.

use joj_analysis::document::Document;

/// The page.
pub fn page(_document: &Document) -> String {
    String::new()
}
