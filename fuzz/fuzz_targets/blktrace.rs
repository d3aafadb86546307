//! Goal: whatever is given as blktrace's files is an error or events in order, as an iolog too.
#![no_main]

use std::ops::ControlFlow;

use joj_analysis::trace::export::Exporter;
use joj_analysis::trace::export::fio::Iolog;
use joj_analysis::trace::header::Header;
use joj_analysis::trace::import::blktrace;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|files: (&[u8], &[u8])| {
    let (mut events, mut last_ns, mut log) = (0, 0, Vec::new());
    let mut iolog = Iolog::new(&Header::default(), &mut log).expect("a Vec takes everything");
    let files = vec![("a".to_owned(), files.0), ("b".to_owned(), files.1)];
    let read = blktrace::import(files, &mut |event, texts| {
        assert!(event.time_ns >= last_ns);
        (last_ns, events) = (event.time_ns, events + 1);
        iolog.event(event, texts, &mut log).expect("a Vec takes everything");
        ControlFlow::Continue(())
    });
    if let Ok(header) = read {
        assert_eq!(header.ending.expect("an import has an ending").events, events);
    }
});
