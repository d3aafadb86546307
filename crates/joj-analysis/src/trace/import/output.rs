//! What every importer does with an event once it knows it: put it in order, count it, notice its device.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use crate::trace::event::{DeviceNumber, Event, EventKind};
use crate::trace::header::{Disk, Ending, Header, Source};
use crate::trace::import::error::Stopped;
use crate::trace::order::Sorter;
use crate::trace::texts::{Text, Texts};

/// What receives the events of an import, in order of time; `Break` ends the import.
pub type ImportSink<'a> = dyn FnMut(&Event, &Texts) -> ControlFlow<()> + 'a;

/// How far an event may lie behind a later one of the same input.
const WINDOW_NS: u64 = 1_000_000_000;
/// So many events wait at most: a fast device makes millions in a second.
const WAITING_MAX: usize = 1 << 16;

/// Collects the events of an import.
pub struct Output<'a, 'b> {
    sink: &'a mut ImportSink<'b>,
    texts: Texts,
    sorter: Sorter,
    events: u64,
    lost: u64,
    first_ns: u64,
    last_ns: u64,
    stopped: bool,
    /// Devices of queued bios and of issued requests.
    asked: BTreeSet<DeviceNumber>,
    served: BTreeSet<DeviceNumber>,
    /// Partition: its disk and first sector, where a remap told it.
    partitions: BTreeMap<DeviceNumber, (DeviceNumber, u64)>,
}

impl<'a, 'b> Output<'a, 'b> {
    /// Collects events for a sink.
    pub fn new(sink: &'a mut ImportSink<'b>) -> Self {
        Self {
            sink,
            texts: Texts::default(),
            sorter: Sorter::new(WINDOW_NS).with_room(WAITING_MAX),
            events: 0,
            lost: 0,
            first_ns: u64::MAX,
            last_ns: 0,
            stopped: false,
            asked: BTreeSet::new(),
            served: BTreeSet::new(),
            partitions: BTreeMap::new(),
        }
    }

    /// Keeps a name, and gives its number.
    pub fn keep(&mut self, text: &str) -> Text {
        self.texts.keep(text)
    }

    /// The latest time so far.
    pub fn last_ns(&self) -> u64 {
        self.last_ns
    }

    /// Takes an event.
    /// # Errors
    /// The sink wants no more.
    pub fn push(&mut self, event: Event) -> Result<(), Stopped> {
        match event.kind {
            EventKind::Queue => drop(self.asked.insert(event.device)),
            EventKind::Issue | EventKind::Complete => drop(self.served.insert(event.device)),
            _ => {}
        }
        self.first_ns = self.first_ns.min(event.time_ns);
        self.last_ns = self.last_ns.max(event.time_ns);
        let (sink, texts, events, stopped) =
            (&mut self.sink, &self.texts, &mut self.events, &mut self.stopped);
        self.sorter.push(event, &mut |event| {
            *events += 1;
            *stopped = *stopped || sink(&event, texts).is_break();
        });
        if self.stopped { Err(Stopped) } else { Ok(()) }
    }

    /// Notes that events are missing; 0: nobody knows how many.
    /// # Errors
    /// The sink wants no more.
    pub fn lost(&mut self, time_ns: u64, events: u64) -> Result<(), Stopped> {
        self.lost = self.lost.saturating_add(events.max(1));
        let detail = if events == 0 { -1 } else { i64::try_from(events).unwrap_or(i64::MAX) };
        self.push(Event { time_ns, kind: EventKind::Lost, detail, ..Event::default() })
    }

    /// Notes that a bio for one device became one for another: with the same major number a partition's.
    pub fn remapped(&mut self, from: (DeviceNumber, u64), to: (DeviceNumber, u64)) {
        let same_driver = from.0.major_minor().0 == to.0.major_minor().0 && from.0 != to.0;
        if let (true, Some(start)) = (same_driver, to.1.checked_sub(from.1)) {
            self.partitions.insert(from.0, (to.0, start));
        }
    }

    /// Hands on the rest, and makes the header.
    /// # Errors
    /// The sink wants no more.
    pub fn finish(mut self, source: Source, mut inferred: Vec<String>) -> Result<Header, Stopped> {
        let disks = self.disks(&mut inferred);
        let (sink, texts, events, stopped) = (self.sink, &self.texts, &mut self.events, &mut self.stopped);
        let late = self.sorter.finish(&mut |event| {
            *events += 1;
            *stopped = *stopped || sink(&event, texts).is_break();
        });
        if self.stopped {
            return Err(Stopped);
        }
        if late > 0 {
            inferred.push(format!(
                "{late} events came more than {} ms, or {WAITING_MAX} events, after later ones; they got the time of their \
                 predecessor.",
                WINDOW_NS / 1_000_000
            ));
        }
        Ok(Header {
            source,
            started_ns: if self.first_ns == u64::MAX { 0 } else { self.first_ns },
            disks,
            inferred,
            ending: Some(Ending {
                ended_ns: self.last_ns,
                events: self.events,
                lost: self.lost,
                ..Ending::default()
            }),
            ..Header::default()
        })
    }

    /// The devices that were seen. One that is asked and never served is a partition, or a device on top of others.
    fn disks(&self, inferred: &mut Vec<String>) -> Vec<Disk> {
        let mut disks = Vec::new();
        for &number in self.asked.union(&self.served) {
            let told = self.partitions.get(&number).copied();
            let is_asked_only = !self.served.contains(&number);
            let below = self.served.range(..number).next_back().copied();
            let guessed = below.filter(|disk| disk.major_minor().0 == number.major_minor().0);
            let (whole, start_sector) = match (told, is_asked_only, guessed) {
                (Some(told), true, _) => told,
                (None, true, Some(disk)) => {
                    inferred.push(format!(
                        "Device {number} never gets a request; it was taken for a partition of {disk}."
                    ));
                    (disk, 0)
                }
                _ => (number, 0),
            };
            disks.push(Disk { number, whole, name: number.to_string(), start_sector, ..Disk::default() });
        }
        disks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_are_told_or_guessed_and_the_guess_is_named() {
        let [disk, told, guessed, mapper] =
            [(8, 0), (8, 1), (8, 2), (253, 0)].map(|(major, minor)| DeviceNumber::new(major, minor).unwrap());
        let mut sink = |_: &Event, _: &Texts| ControlFlow::Continue(());
        let mut output = Output::new(&mut sink);
        output.remapped((told, 10), (disk, 2058));
        output.remapped((mapper, 10), (told, 10));
        for (kind, device) in [
            (EventKind::Queue, told),
            (EventKind::Queue, guessed),
            (EventKind::Queue, mapper),
            (EventKind::Issue, disk),
        ] {
            output.push(Event { kind, device, ..Event::default() }).unwrap();
        }
        let header = output.finish(Source::Ftrace, Vec::new()).unwrap();
        let seen: Vec<_> =
            header.disks.iter().map(|disk| (disk.number, disk.whole, disk.start_sector)).collect();
        assert_eq!(seen, [(disk, disk, 0), (told, disk, 2048), (guessed, disk, 0), (mapper, mapper, 0)]);
        assert_eq!(
            header.inferred,
            ["Device 8:2 never gets a request; it was taken for a partition of 8:0."]
        );
    }
}
