//! Goal: a recorded trace buffer becomes the events that the kernel's documentation promises, and damaged ones no panic.
//! Method: fixtures/ftrace holds what a kernel gave, and the text of its events; bytes are flipped and cut at random places.

use std::fmt::Write;
use std::path::PathBuf;

use joj_analysis::trace::event::{DeviceNumber, Event, FileKey};
use joj_analysis::trace::ftrace::assembler::Assembler;
use joj_analysis::trace::ftrace::decoder::Decoder;
use joj_analysis::trace::ftrace::format::{Format, PageLayout};
use joj_analysis::trace::ftrace::page::Page;
use joj_analysis::trace::ftrace::record::Record;
use joj_analysis::trace::ftrace::step::{Step, Surroundings};
use joj_analysis::trace::ftrace::volume::{Addressing, Base, Volume};
use joj_analysis::trace::order::Sorter;
use joj_analysis::trace::texts::Texts;

/// The loop device of the recording.
const DISK: DeviceNumber = DeviceNumber(7 << 20);

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/ftrace")
}

fn file(name: &str) -> Vec<u8> {
    std::fs::read(folder().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Every event of a kernel whose formats and buffers these are; `None` where they describe no pages.
fn read(header: &[u8], formats: &[u8], buffers: &[Vec<u8>]) -> Option<(Vec<Event>, Texts)> {
    let layout = PageLayout::parse(&String::from_utf8_lossy(header)).ok()?;
    let mut decoder = Decoder::default();
    for text in String::from_utf8_lossy(formats).split("name: ").skip(1) {
        let _ = Format::parse(&format!("name: {text}")).map(|format| decoder.learn(&format).is_ok());
    }
    let mut records: Vec<Record> = Vec::new();
    for bytes in buffers.iter().flat_map(|buffer| buffer.chunks(layout.page_bytes())) {
        let Ok(page) = Page::new(bytes, &layout) else { continue };
        records.extend(page.filter_map(|(time_ns, data)| decoder.record(time_ns, data)));
    }
    records.sort_by_key(|record| record.time_ns);
    let addressing = Addressing::Blocks { base: Base { disk: DISK, start_sector: 0 }, block_bytes: 4096 };
    let volume = Volume { device: DISK, id: [0; 16], first_inode: 11, addressing };
    let (mut texts, mut sorter, mut steps) = (Texts::default(), Sorter::new(u64::MAX), Vec::new());
    let mut assembler = Assembler::new(vec![volume]);
    let mut ask = |_, _, _| FileKey::NONE;
    let mut around = Surroundings { texts: &mut texts, ask: &mut ask, sink: &mut |step| steps.push(step) };
    for record in &records {
        assembler.take(record, &mut around);
    }
    assembler.settle(u64::MAX, &mut around);
    let mut events = Vec::new();
    for step in steps {
        if let Step::Event(event, _) = step {
            sorter.push(event, &mut |event| events.push(event));
        }
    }
    sorter.finish(&mut |event| events.push(event));
    Some((events, texts))
}

fn recorded() -> (Vec<u8>, Vec<u8>, Vec<Vec<u8>>) {
    let buffers = vec![file("processor0.pages"), file("processor1.pages")];
    (file("header_page.txt"), file("formats.txt"), buffers)
}

fn line(event: &Event, texts: &Texts, start_ns: u64) -> String {
    let mut line = format!("{:>9} {}", event.time_ns - start_ns, event.kind.text());
    if event.device != DeviceNumber::NONE {
        let _ = write!(line, " device {} sector {} bytes {}", event.device, event.sector, event.bytes);
        let _ = write!(line, " {} flags {}", event.operation.text(), event.flags.0);
    }
    if event.file.is_some() {
        let _ = write!(line, " file {} offset {}", event.file.inode, event.offset);
    }
    let _ = write!(line, " detail {} {}", event.detail, texts.get(event.name));
    line.trim_end().to_owned()
}

#[test]
fn a_recorded_buffer_becomes_its_events() {
    let (header, formats, buffers) = recorded();
    let (events, texts) = read(&header, &formats, &buffers).expect("a layout");
    let start_ns = events[0].time_ns;
    let text: String = events.iter().map(|event| line(event, &texts, start_ns) + "\n").collect();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(folder().join("events.txt"), &text).unwrap();
    }
    assert_eq!(text, String::from_utf8(file("events.txt")).unwrap());
}

/// xorshift: the same damages in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % end.max(1) as u64).expect("below a usize")
    }
}

fn damaged(bytes: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..numbers.below(8) {
        let at = numbers.below(bytes.len());
        bytes[at] ^= 1 << numbers.below(8);
    }
    if numbers.below(3) == 0 {
        bytes.truncate(numbers.below(bytes.len()));
    }
    bytes
}

#[test]
fn damaged_buffers_and_formats_do_no_harm() {
    let (header, formats, buffers) = recorded();
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let mut read_something = 0;
    for turn in 0..2_000 {
        let (mut header, mut formats, mut buffers) = (header.clone(), formats.clone(), buffers.clone());
        match turn % 4 {
            0 => header = damaged(&header, &mut numbers),
            1 => formats = damaged(&formats, &mut numbers),
            _ => buffers = buffers.iter().map(|buffer| damaged(buffer, &mut numbers)).collect(),
        }
        read_something += usize::from(read(&header, &formats, &buffers).is_some());
    }
    assert!(
        read_something > 1_000,
        "only {read_something} of 2000 were read at all: the damage is too great"
    );
}
