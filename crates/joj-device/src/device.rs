//! The emulated device: times from the model, bytes from the store, everything asked of it in the log.

use std::io;

use crate::assembly::{AssembledModel, Assembly};
use crate::model::Completion;
use crate::number::size;
use crate::request::{Request, RequestKind};
use crate::request_log::{LoggedRequest, RequestSink};
use crate::store::Store;

/// A device, and the log `S` of what it was asked; `()` keeps none.
#[derive(Debug)]
pub struct EmulatedDevice<S: RequestSink = ()> {
    model: AssembledModel,
    store: Store,
    sink: S,
    has_cache: bool,
}

impl<S: RequestSink> EmulatedDevice<S> {
    /// An idle device, all zeros. `capacity_bytes` may differ from that of `assembly`.
    ///
    /// # Panics
    /// When `capacity_bytes` is no multiple of 4096, or is zero.
    pub fn new(assembly: &Assembly, capacity_bytes: u64, sink: S) -> Self {
        EmulatedDevice {
            model: AssembledModel::new(assembly, capacity_bytes),
            store: Store::new(),
            sink,
            has_cache: assembly.has_volatile_cache(),
        }
    }

    /// As [`EmulatedDevice::new`], with these bytes on it.
    ///
    /// # Panics
    /// As there.
    pub fn with_store(assembly: &Assembly, capacity_bytes: u64, store: Store, sink: S) -> Self {
        EmulatedDevice { store, ..EmulatedDevice::new(assembly, capacity_bytes, sink) }
    }

    /// Carries out `request`, handed over at `at_ns`. A write's bytes are `data`, a read's come to be there; else it is empty.
    ///
    /// # Errors
    /// `InvalidInput` for a request that the device refuses, which changes nothing; or the log's error, behind which the log is unusable.
    ///
    /// # Panics
    /// When `data` has another length than the request, or `at_ns` is before that of an earlier request.
    pub fn submit(&mut self, at_ns: u64, request: Request, data: &mut [u8]) -> io::Result<Completion> {
        if let Some(refusal) = request.refusal(self.model.capacity_bytes()) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, refusal));
        }
        let Request { kind, offset_bytes, len_bytes } = request;
        let carried = matches!(kind, RequestKind::Read | RequestKind::Write { .. });
        assert_eq!(size(data.len()), if carried { len_bytes } else { 0 }, "data of another length");
        let completion = self.model.submit(at_ns, request);
        match kind {
            RequestKind::Read => self.store.read(offset_bytes, data),
            RequestKind::Write { fua } => self.store.write(offset_bytes, data, fua || !self.has_cache),
            RequestKind::Flush => self.store.flush(),
            RequestKind::Trim => self.store.zero(offset_bytes, len_bytes, !self.has_cache),
            RequestKind::WriteZeroes { fua } => {
                self.store.zero(offset_bytes, len_bytes, fua || !self.has_cache);
            }
        }
        for (offset_bytes, len_bytes) in self.model.take_destaged() {
            self.store.destage(offset_bytes, len_bytes);
        }
        let logged = LoggedRequest { request, submitted_ns: at_ns, completion };
        let written: &[u8] = if matches!(kind, RequestKind::Write { .. }) { data } else { &[] };
        self.sink.record(&logged, written)?;
        Ok(completion)
    }

    /// The device's size in bytes.
    pub const fn capacity_bytes(&self) -> u64 {
        self.model.capacity_bytes()
    }

    /// Its bytes.
    pub const fn store(&self) -> &Store {
        &self.store
    }

    /// Its log.
    pub const fn sink_mut(&mut self) -> &mut S {
        &mut self.sink
    }

    /// Ends the device; its bytes, and its log to be finished.
    pub fn into_parts(self) -> (Store, S) {
        (self.store, self.sink)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::ZEROS;

    fn device(name: &str) -> EmulatedDevice<Vec<LoggedRequest>> {
        EmulatedDevice::new(&Assembly::named(name).unwrap(), 1 << 30, Vec::new())
    }

    #[test]
    fn a_write_is_read_back_and_logged() {
        let mut device = device("galaxy-s5-emmc");
        let written = device.submit(5, Request::write(8192, 512), &mut [9; 512]).unwrap();
        let mut data = [0; 1024];
        device.submit(written.done_ns, Request::read(8192, 1024), &mut data).unwrap();
        assert_eq!((data[511], data[512]), (9, 0));
        let (_, log) = device.into_parts();
        assert_eq!(log.len(), 2);
        assert_eq!((log[0].submitted_ns, log[0].completion), (5, written));
    }

    #[test]
    fn durable_is_what_was_flushed_or_written_with_fua_or_has_no_cache() {
        for (name, request, durable) in [
            ("galaxy-s5-emmc", Request::write(0, 4096), false),
            ("galaxy-s5-emmc", Request::write_fua(0, 4096), true),
            ("kingston", Request::write(0, 4096), true),
        ] {
            let mut device = device(name);
            device.submit(0, request, &mut [1; 4096]).unwrap();
            assert_eq!(*device.store().on_medium(0) != ZEROS, durable, "{name} {request:?}");
            device.submit(0, Request::flush(), &mut []).unwrap();
            assert_eq!(*device.store().on_medium(0), [1; 4096], "{name}: the flush left it");
        }
    }

    #[test]
    fn the_store_holds_dirty_what_the_model_holds_dirty() {
        let mut device = device("galaxy-s3-emmc");
        for block in 0..1000u64 {
            device.submit(0, Request::write((block * 7 % 300) * 4096, 4096), &mut [2; 4096]).unwrap();
            let cached = size(device.store.cached_blocks().count()) * 4096;
            assert_eq!(cached, device.model.dirty_bytes(), "after write {block}");
        }
    }

    #[test]
    fn a_refused_request_changes_nothing() {
        let mut device = device("ram");
        let error = device.submit(0, Request::write(1 << 30, 512), &mut [1; 512]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        assert!(device.sink_mut().is_empty());
    }
}
