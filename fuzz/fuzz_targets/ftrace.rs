//! Goal: pages and formats of a kernel's trace buffer never panic, whatever they say.
//! Method: the first byte chooses whether the rest is a format or pages of a kernel whose formats fixtures/ftrace has.
#![no_main]

use joj_analysis::trace::event::{DeviceNumber, FileKey};
use joj_analysis::trace::ftrace::assembler::Assembler;
use joj_analysis::trace::ftrace::decoder::Decoder;
use joj_analysis::trace::ftrace::format::{Format, PageLayout};
use joj_analysis::trace::ftrace::page::Page;
use joj_analysis::trace::ftrace::step::Surroundings;
use joj_analysis::trace::ftrace::volume::{Addressing, Base, Volume};
use joj_analysis::trace::texts::Texts;
use libfuzzer_sys::fuzz_target;

const FORMATS: &str = include_str!("../../fixtures/ftrace/formats.txt");

fuzz_target!(|input: (bool, &[u8])| {
    let (is_format, bytes) = input;
    let mut decoder = Decoder::default();
    if is_format {
        let text = String::from_utf8_lossy(bytes);
        let _ = PageLayout::parse(&text);
        let _ = Format::parse(&text).map(|format| decoder.learn(&format).is_ok());
        let _ = decoder.record(0, &[0; 64]);
        return;
    }
    for text in FORMATS.split("name: ").skip(1) {
        let format = Format::parse(&format!("name: {text}")).expect("the fixture's own");
        decoder.learn(&format).expect("the fixture's own");
    }
    let base = Base { disk: DeviceNumber(7 << 20), start_sector: 0 };
    let addressing = Addressing::Blocks { base, block_bytes: 4096 };
    let volume = Volume { device: DeviceNumber(7 << 20), id: [0; 16], first_inode: 11, addressing };
    let (mut assembler, mut texts) = (Assembler::new(vec![volume]), Texts::default());
    let mut around =
        Surroundings { texts: &mut texts, ask: &mut |_, _, _| FileKey::NONE, sink: &mut |_| {} };
    let layout = PageLayout::default();
    for page in bytes.chunks(layout.page_bytes()).filter_map(|bytes| Page::new(bytes, &layout).ok()) {
        for (time_ns, data) in page {
            if let Some(record) = decoder.record(time_ns, data) {
                assembler.take(&record, &mut around);
            }
        }
    }
    assembler.settle(u64::MAX, &mut around);
});
