//! RAID-0: which part of a request goes to which member, and when all parts are done.
//!
//!   device    | 0 | 1 | 2 | 3 | 4 | 5 | ...      stripes
//!   member 0  | 0 | 2 | 4 | ...
//!   member 1  | 1 | 3 | 5 | ...
//!
//! The stripes of a request that are on the same member follow each other there: they are one request of the member.

use crate::assembly::Raid0;
use crate::assembly::timing::AssembledModel;
use crate::model::Completion;
use crate::number::size;
use crate::request::{BLOCK_BYTES, Request, RequestKind};

/// A byte range: offset, length.
type Bytes = (u64, u64);

/// The timing state of the members.
#[derive(Debug)]
pub struct StripedModel {
    stripe_bytes: u64,
    members: Vec<StripedMember>,
    capacity_bytes: u64,
    /// Some members have a volatile cache, others have none.
    is_mixed: bool,
    /// Written to members without a volatile cache, where the device as a whole has one.
    durable: Vec<Bytes>,
}

#[derive(Debug)]
struct StripedMember {
    model: AssembledModel,
    is_persistent: bool,
}

impl StripedModel {
    /// # Panics
    /// When `capacity_bytes` is no multiple of 4096, or is zero.
    pub(super) fn new(raid0: &Raid0, capacity_bytes: u64) -> Self {
        assert!(capacity_bytes > 0, "a device without a byte");
        assert!(capacity_bytes.is_multiple_of(BLOCK_BYTES), "{capacity_bytes} bytes are not whole blocks");
        assert!(raid0.stripe_bytes.is_multiple_of(BLOCK_BYTES), "a stripe with a part of a block");
        let stripes = capacity_bytes.div_ceil(raid0.stripe_bytes);
        let member_bytes = stripes.div_ceil(size(raid0.members.len())) * raid0.stripe_bytes;
        let members: Vec<StripedMember> = raid0
            .members
            .iter()
            .map(|member| StripedMember {
                model: AssembledModel::new(member, member_bytes),
                is_persistent: !member.has_volatile_cache(),
            })
            .collect();
        let persistent = members.iter().filter(|member| member.is_persistent).count();
        StripedModel {
            stripe_bytes: raid0.stripe_bytes,
            is_mixed: persistent > 0 && persistent < members.len(),
            members,
            capacity_bytes,
            durable: Vec::new(),
        }
    }

    pub(super) const fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }

    pub(super) fn dirty_bytes(&self) -> u64 {
        self.members.iter().map(|member| member.model.dirty_bytes()).sum()
    }

    pub(super) fn take_destaged(&mut self) -> Vec<Bytes> {
        let mut destaged = std::mem::take(&mut self.durable);
        for number in 0..self.members.len() {
            for range in self.members[number].model.take_destaged() {
                destaged.extend(self.on_device(number, range));
            }
        }
        destaged
    }

    /// Done when the last member is; the detail is that member's.
    pub(super) fn submit(&mut self, at_ns: u64, request: Request) -> Completion {
        assert_eq!(request.refusal(self.capacity_bytes), None, "refuse it before it comes here");
        let mut start_ns = u64::MAX;
        let mut last: Option<Completion> = None;
        for number in 0..self.members.len() {
            let Some(part) = self.part(number, request) else { continue };
            let member = &mut self.members[number];
            let done = member.model.submit(at_ns, part);
            if self.is_mixed && self.members[number].is_persistent && request.kind != RequestKind::Read {
                self.durable.extend(self.on_device(number, (part.offset_bytes, part.len_bytes)));
            }
            start_ns = start_ns.min(done.start_ns);
            if last.is_none_or(|last| done.done_ns > last.done_ns) {
                last = Some(done);
            }
        }
        let Some(last) = last else { unreachable!("{request:?} is on no member") };
        Completion { start_ns, ..last }
    }

    /// What of `request` is for member `number`: all of a flush.
    fn part(&self, number: usize, request: Request) -> Option<Request> {
        if request.kind == RequestKind::Flush {
            return Some(request);
        }
        let (stripe_bytes, count) = (self.stripe_bytes, size(self.members.len()));
        let end = request.offset_bytes + request.len_bytes;
        let (first, last) = (request.offset_bytes / stripe_bytes, (end - 1) / stripe_bytes);
        let own_first = first + (size(number) + count - first % count) % count;
        let own_last = last.checked_sub((last % count + count - size(number)) % count)?;
        if own_first > last {
            return None;
        }
        let skipped = if own_first == first { request.offset_bytes % stripe_bytes } else { 0 };
        let unused = if own_last == last { (last + 1) * stripe_bytes - end } else { 0 };
        let begin = own_first / count * stripe_bytes + skipped;
        let own_end = (own_last / count + 1) * stripe_bytes - unused;
        Some(Request { kind: request.kind, offset_bytes: begin, len_bytes: own_end - begin })
    }

    /// Where the device has these bytes of member `number`.
    fn on_device(&self, number: usize, (offset_bytes, len_bytes): Bytes) -> Vec<Bytes> {
        let (stripe_bytes, count) = (self.stripe_bytes, size(self.members.len()));
        let (mut found, mut at, end) = (Vec::new(), offset_bytes, offset_bytes + len_bytes);
        while at < end {
            let len = (stripe_bytes - at % stripe_bytes).min(end - at);
            let stripe = at / stripe_bytes * count + size(number);
            found.push((stripe * stripe_bytes + at % stripe_bytes, len));
            at += len;
        }
        found
    }
}
