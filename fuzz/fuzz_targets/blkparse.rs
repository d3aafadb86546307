//! Goal: whatever is given as blkparse's text is an error or events in order, and these, printed as blkparse's text, are read again.
#![no_main]

use std::ops::ControlFlow;

use joj_analysis::trace::event::EventKind;
use joj_analysis::trace::export::Exporter;
use joj_analysis::trace::export::blkparse::Blkparse;
use joj_analysis::trace::import::blkparse;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    let (mut printed, mut events, mut lost, mut last_ns) = (Vec::new(), 0, 0, 0);
    let mut exporter = Blkparse::new(0);
    let read = blkparse::import(text, &mut |event, texts| {
        assert!(event.time_ns >= last_ns);
        (last_ns, events) = (event.time_ns, events + 1);
        lost += u64::from(event.kind == EventKind::Lost);
        exporter.event(event, texts, &mut printed).expect("a Vec takes everything");
        ControlFlow::Continue(())
    });
    let Ok(header) = read else { return };
    assert_eq!(header.ending.expect("an import has an ending").events, events);
    // What was lost stands in blkparse's summary, which we do not print.
    let again = blkparse::import(printed.as_slice(), &mut |_, _| ControlFlow::Continue(())).expect("our own text");
    assert_eq!(again.ending.expect("an import has an ending").events, events - lost);
});
