//! Events of the block layer.

use crate::trace::event::{EventKind, Operation, RequestFlags, SECTOR_BYTES};

use crate::trace::ftrace::known::{Known, Values};
use crate::trace::ftrace::record::{RequestRecord, What};
use crate::trace::ftrace::rwbs;

/// The events of requests that joj reads.
pub(super) const REQUESTS: &[Known] = &[
    Known {
        system: "block",
        names: &["block_bio_queue"],
        fields: &["dev", "sector", "nr_sector", "rwbs", "comm?"],
        device_field: "dev",
        filter: "",
        without: "what requests were meant to do (PREFLUSH, FUA) before the block layer took them apart",
        read: |values| request(values, EventKind::Queue, None),
    },
    Known {
        system: "block",
        names: &["block_rq_issue"],
        fields: &["dev", "sector", "nr_sector", "rwbs", "comm?"],
        device_field: "dev",
        filter: "",
        without: "all requests",
        read: |values| request(values, EventKind::Issue, None),
    },
    Known {
        system: "block",
        names: &["block_rq_complete"],
        fields: &["dev", "sector", "nr_sector", "rwbs", "comm?", "error|errors?"],
        device_field: "dev",
        filter: "",
        without: "when requests were done",
        read: |values| request(values, EventKind::Complete, Some(5)),
    },
    Known {
        system: "block",
        names: &["block_rq_requeue"],
        fields: &["dev", "sector", "nr_sector", "rwbs", "comm?"],
        device_field: "dev",
        filter: "",
        without: "which requests were issued twice",
        read: |values| request(values, EventKind::Requeue, None),
    },
];

fn request(values: &Values<'_>, kind: EventKind, error: Option<usize>) -> Option<What> {
    let bytes = values.number(2)?.checked_mul(SECTOR_BYTES)?;
    let (mut operation, flags, _) = rwbs::read(values.text(3), bytes);
    // A bio that only flushes is a write of nothing.
    if kind == EventKind::Queue && bytes == 0 && flags.has(RequestFlags::PREFLUSH) {
        operation = Operation::Flush;
    }
    let sector = match (operation, values.number(1)?) {
        // An empty request has no place; the kernel writes the highest number or 0.
        (Operation::Flush, _) | (_, u64::MAX) => 0,
        (_, sector) => sector,
    };
    Some(What::Request(RequestRecord {
        kind,
        device: values.device(0)?,
        sector,
        bytes,
        operation,
        flags,
        error: error.and_then(|index| values.signed(index)).unwrap_or(0),
        command: values.command(4).filter(|command| command[0] != 0),
    }))
}
