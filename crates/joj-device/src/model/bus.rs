//! Command and transfer, one request after another.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::description;
use crate::number::size;
use crate::request::{BLOCK_BYTES, Request, RequestKind};

/// A request's use of the bus.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turn {
    pub start_ns: u64,
    pub command_ns: u64,
    pub transfer_ns: u64,
}

/// Waiting writes that share one command.
#[derive(Debug, Clone, Copy)]
struct Pack {
    /// When the last of them began.
    began_ns: u64,
    writes: u64,
}

#[derive(Debug)]
pub(super) struct Bus {
    costs: description::BusCosts,
    free_ns: u64,
    /// Completions of the requests under way, at most `queue_depth`.
    under_way: BinaryHeap<Reverse<u64>>,
    last_done_ns: u64,
    pack: Option<Pack>,
}

impl Bus {
    pub fn new(costs: &description::BusCosts) -> Self {
        Bus { costs: costs.clone(), free_ns: 0, under_way: BinaryHeap::new(), last_done_ns: 0, pack: None }
    }

    /// The next request's turn; [`finish`](Bus::finish) must follow.
    pub fn take(&mut self, at_ns: u64, request: Request) -> Turn {
        let mut start_ns = at_ns.max(self.free_ns);
        while let Some(&Reverse(done_ns)) = self.under_way.peek() {
            if done_ns > start_ns && size(self.under_way.len()) < self.costs.queue_depth {
                break;
            }
            start_ns = start_ns.max(done_ns);
            self.under_way.pop();
        }
        let transfer = |per_block_ns: u64| {
            let total = u128::from(request.len_bytes) * u128::from(per_block_ns) / u128::from(BLOCK_BYTES);
            u64::try_from(total).unwrap_or(u64::MAX)
        };
        let (command_ns, transfer_ns) = match request.kind {
            RequestKind::Read => (self.costs.read_command_ns, transfer(self.costs.read_transfer_ns)),
            RequestKind::Write { .. } => (self.write_command(at_ns), transfer(self.costs.write_transfer_ns)),
            RequestKind::Flush => (0, 0),
            RequestKind::Trim | RequestKind::WriteZeroes { .. } => (self.costs.trim_command_ns, 0),
        };
        self.remember(request, start_ns, command_ns);
        self.free_ns = start_ns + command_ns + transfer_ns;
        Turn { start_ns, command_ns, transfer_ns }
    }

    /// The request whose turn was last is done at `done_ns`.
    pub fn finish(&mut self, done_ns: u64) {
        self.under_way.push(Reverse(done_ns));
        self.last_done_ns = self.last_done_ns.max(done_ns);
    }

    /// When everything that was submitted before is done.
    pub const fn all_done_at(&self) -> u64 {
        self.last_done_ns
    }

    /// Nothing, when the write waited beside the one before it and their pack has room.
    fn write_command(&self, at_ns: u64) -> u64 {
        match self.pack {
            Some(pack) if at_ns <= pack.began_ns && pack.writes < self.costs.packed_writes_max => 0,
            _ => self.costs.write_command_ns,
        }
    }

    fn remember(&mut self, request: Request, start_ns: u64, command_ns: u64) {
        self.pack = match (request.kind, self.pack) {
            // A reliable write is a command of its own (eMMC 4.5, 6.6.29).
            (RequestKind::Write { fua: false }, Some(pack)) if command_ns == 0 => {
                Some(Pack { began_ns: start_ns, writes: pack.writes + 1 })
            }
            (RequestKind::Write { fua: false }, _) => Some(Pack { began_ns: start_ns, writes: 1 }),
            _ => None,
        };
    }
}
