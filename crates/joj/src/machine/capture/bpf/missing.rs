//! What stands for the eBPF capture in a joj that was built without it.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use joj_analysis::trace::event::Event;
use joj_analysis::trace::texts::Texts;

use crate::machine::capture::error::BpfError;
use crate::machine::capture::selection::Selection;
use crate::machine::capture::spool::Spool;

/// A capture that never was.
pub struct BpfCapture(Infallible);

impl BpfCapture {
    /// Says that there is none.
    /// # Errors
    /// Always.
    pub fn start(_: &Selection, _: &Arc<Mutex<Spool>>) -> Result<Self, BpfError> {
        Err(BpfError::NotBuilt("without its feature `bpf`"))
    }

    /// Never called.
    /// # Errors
    /// None.
    pub fn poll(&mut self, _: Duration) -> Result<(), BpfError> {
        match self.0 {}
    }

    /// Never called.
    /// # Errors
    /// None.
    pub fn decode(&mut self, _: &[u8], _: &mut Texts, _: &mut dyn FnMut(Event)) -> Result<(), BpfError> {
        match self.0 {}
    }

    /// Never called.
    pub fn finish(&mut self, _: &mut dyn FnMut(Event)) {
        match self.0 {}
    }

    /// Never called.
    pub fn notes(&self) -> &[String] {
        match self.0 {}
    }

    /// Never called.
    pub fn lost(&self) -> u64 {
        match self.0 {}
    }

    /// Never called.
    /// # Errors
    /// None.
    pub fn stop(&mut self) -> Result<u64, BpfError> {
        match self.0 {}
    }
}
