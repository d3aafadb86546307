//! Goal: whatever is given as ftrace's text is an error or events in order.
#![no_main]

use std::ops::ControlFlow;

use joj_analysis::trace::export::Exporter;
use joj_analysis::trace::export::csv::Csv;
use joj_analysis::trace::export::json_lines::JsonLines;
use joj_analysis::trace::import::ftrace;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    let (mut events, mut last_ns) = (0, 0);
    let read = ftrace::import(std::io::Cursor::new(text), &mut |event, texts| {
        assert!(event.time_ns >= last_ns);
        (last_ns, events) = (event.time_ns, events + 1);
        let (mut values, mut line) = (Vec::new(), Vec::new());
        Csv.event(event, texts, &mut values).expect("a Vec takes everything");
        JsonLines.event(event, texts, &mut line).expect("a Vec takes everything");
        ControlFlow::Continue(())
    });
    if let Ok(header) = read {
        assert_eq!(header.ending.expect("an import has an ending").events, events);
    }
});
