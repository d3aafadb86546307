//! What stands for the eBPF programs in a joj that was built without them.

use std::convert::Infallible;
use std::time::Duration;

use joj_analysis::recording::system_calls::captured::capture::CallCapture;

use crate::machine::capture::calls::error::CallCaptureError;
use crate::machine::capture::calls::held;
use crate::machine::capture::error::BpfError;

/// Programs that never were.
pub struct BpfCalls(Infallible);

impl BpfCalls {
    /// Says that there are none.
    /// # Errors
    /// Always.
    pub fn command(_: u32) -> Result<Self, CallCaptureError> {
        Err(BpfError::NotBuilt("without its feature `bpf`").into())
    }

    /// Says that there are none.
    /// # Errors
    /// Always.
    pub fn process(_: u32, _: u32) -> Result<Self, CallCaptureError> {
        Self::command(0)
    }

    /// Never called.
    pub fn tell_command(&mut self, _: u32, _: &held::Inherited) {
        match self.0 {}
    }

    /// Never called.
    /// # Errors
    /// None.
    pub fn poll(&mut self, _: Duration) -> Result<(), CallCaptureError> {
        match self.0 {}
    }

    /// Never called.
    pub fn events(&self) -> usize {
        match self.0 {}
    }

    /// Never called.
    pub fn processes(&self) -> usize {
        match self.0 {}
    }

    /// Never called.
    pub fn lost(&self) -> u64 {
        match self.0 {}
    }

    /// Never called.
    /// # Errors
    /// None.
    pub fn finish(self) -> Result<(CallCapture, u64), CallCaptureError> {
        match self.0 {}
    }
}
