//! A text as a value of comma-separated values (RFC 4180).

use std::borrow::Cow;

/// In quotes where a comma, a quote or an end of line is in it, its own quotes doubled; else as it is.
pub fn quoted(text: &str) -> Cow<'_, str> {
    if text.contains([',', '"', '\n', '\r']) {
        return Cow::Owned(format!("\"{}\"", text.replace('"', "\"\"")));
    }
    Cow::Borrowed(text)
}
