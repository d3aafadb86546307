//! Goal: whatever is given as ftrace's text is an error or events in order.
#![no_main]

use joj_analysis::trace::export::{csv, json_lines};
use joj_analysis::trace::import::ftrace;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    let (mut events, mut last_ns) = (0, 0);
    let read = ftrace::import(std::io::Cursor::new(text), &mut |event, texts| {
        assert!(event.time_ns >= last_ns);
        (last_ns, events) = (event.time_ns, events + 1);
        let (mut values, mut line) = (Vec::new(), Vec::new());
        csv::event(event, texts, &mut values).map_err(|error| error.to_string())?;
        json_lines::event(event, texts, &mut line).map_err(|error| error.to_string())
    });
    if let Ok(header) = read {
        assert_eq!(header.ending.expect("an import has an ending").events, events);
    }
});
