//! Events as JSON, an object on each line; what is 0 or empty is left out, but for time and type.

use std::io::{self, Write};

use crate::trace::event::Event;
use crate::trace::export::Exporter;
use crate::trace::export::fields::{NAMES, Value, values};
use crate::trace::texts::Texts;

/// Writes the lines.
#[derive(Debug)]
pub struct JsonLines;

impl Exporter for JsonLines {
    fn event(&mut self, event: &Event, texts: &Texts, out: &mut dyn Write) -> io::Result<()> {
        line(event, texts, out)
    }
}

fn line(event: &Event, texts: &Texts, out: &mut dyn Write) -> io::Result<()> {
    let mut before = '{';
    for (index, (name, value)) in NAMES.iter().zip(values(event, texts)).enumerate() {
        let text = match &value {
            Value::Number(0) if index > 0 => continue,
            Value::Signed(0) => continue,
            Value::Number(number) => {
                write!(out, "{before}\"{name}\":{number}")?;
                before = ',';
                continue;
            }
            Value::Signed(number) => {
                write!(out, "{before}\"{name}\":{number}")?;
                before = ',';
                continue;
            }
            Value::Text(text) => text,
            Value::Made(text) => text.as_str(),
        };
        if !text.is_empty() {
            write!(out, "{before}\"{name}\":")?;
            serde_json::to_writer(&mut *out, text)?;
            before = ',';
        }
    }
    out.write_all(b"}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::event::EventKind;

    #[test]
    fn only_what_is_there_is_written() {
        let mut texts = Texts::default();
        let named =
            Event { kind: EventKind::Named, name: texts.keep("a\"\n"), detail: -1, ..Event::default() };
        let mut out = Vec::new();
        line(&named, &texts, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(
            text,
            "{\"time_ns\":0,\"event_type\":\"named\",\"detail_value\":-1,\"text_value\":\"a\\\"\\n\"}\n"
        );
    }
}
