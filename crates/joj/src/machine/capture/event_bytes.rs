//! An event as bytes, for the way through a [`super::spool`]: read again by the process that wrote it.

use joj_analysis::trace::event::{
    Backing, Content, DeviceNumber, Event, EventKind, FileKey, Operation, RequestFlags,
};
use joj_analysis::trace::texts::Text;

/// Bytes of an event.
pub const BYTES: usize = 84;

/// The event's bytes.
pub fn encode(event: &Event) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    let longs = [
        event.time_ns,
        event.sector,
        event.bytes,
        event.file.inode,
        event.offset,
        event.detail.cast_unsigned(),
    ];
    for (place, number) in bytes.chunks_exact_mut(8).zip(longs) {
        place.copy_from_slice(&number.to_ne_bytes());
    }
    let numbers = [
        event.device.0,
        event.file.device.0,
        event.file.generation,
        event.thread,
        event.process,
        event.command.0,
        event.name.0,
        u32::from(event.flags.0),
    ];
    for (place, number) in bytes[48..].chunks_exact_mut(4).zip(numbers) {
        place.copy_from_slice(&number.to_ne_bytes());
    }
    let codes = [event.kind.code(), event.operation.code(), event.backing.code(), event.content.code()];
    bytes[80..84].copy_from_slice(&codes);
    bytes
}

/// The event of such bytes; `None` where they are none.
pub fn decode(bytes: &[u8]) -> Option<Event> {
    let long = |index: usize| Some(u64::from_ne_bytes(bytes.get(index * 8..index * 8 + 8)?.try_into().ok()?));
    let number = |index: usize| {
        let place = 48 + index * 4;
        Some(u32::from_ne_bytes(bytes.get(place..place + 4)?.try_into().ok()?))
    };
    let code = |index: usize| bytes.get(80 + index).copied();
    Some(Event {
        time_ns: long(0)?,
        sector: long(1)?,
        bytes: long(2)?,
        offset: long(4)?,
        detail: long(5)?.cast_signed(),
        device: DeviceNumber(number(0)?),
        file: FileKey { device: DeviceNumber(number(1)?), inode: long(3)?, generation: number(2)? },
        thread: number(3)?,
        process: number(4)?,
        command: Text(number(5)?),
        name: Text(number(6)?),
        flags: RequestFlags(u16::try_from(number(7)?).ok()?),
        kind: EventKind::from_code(code(0)?)?,
        operation: Operation::from_code(code(1)?)?,
        backing: Backing::from_code(code(2)?)?,
        content: Content::from_code(code(3)?)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_comes_back_with_every_field() {
        let event = Event {
            time_ns: u64::MAX,
            kind: EventKind::DurableWrite,
            device: DeviceNumber(2),
            sector: 3,
            bytes: 4,
            operation: Operation::Discard,
            flags: RequestFlags(u16::MAX),
            thread: 5,
            process: 6,
            command: Text(7),
            file: FileKey { device: DeviceNumber(8), inode: 9, generation: u32::MAX },
            offset: 10,
            backing: Backing::Inner,
            content: Content::SqliteLog,
            detail: -11,
            name: Text(12),
        };
        assert_eq!(decode(&encode(&event)), Some(event));
        assert_eq!(decode(&[0; 20]), None);
    }
}
