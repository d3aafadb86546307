//! The emulated device of a cell, in the guest: a thread that serves it, and the kernel as its client.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use joj_device::assembly::Assembly;
use joj_device::clock::SystemClock;
use joj_device::device::EmulatedDevice;
use joj_device::nbd;
use joj_device::request_log::RequestSink;

use crate::lab::guest::error::{GuestError, cannot};
use crate::machine::qemu::nbd_client::NbdClient;

/// How often it is looked whether the kernel has made the device ready, a millisecond apart.
const LOOKS_MAX: u32 = 5_000;

/// A block device to measure on; dropping it takes it away.
#[derive(Debug)]
pub struct Emulated {
    node: String,
    client: NbdClient,
    kernel: Option<JoinHandle<io::Result<()>>>,
    server: Option<JoinHandle<io::Result<nbd::Served>>>,
}

impl Emulated {
    /// Sets up `device`, made as `assembly` has it, as device `number`.
    /// # Errors
    /// Where the kernel does not take it; nothing is left of it.
    pub fn serve<S: RequestSink + Send + 'static>(
        number: u32,
        assembly: &Assembly,
        mut device: EmulatedDevice<S>,
    ) -> Result<Emulated, GuestError> {
        let bytes = device.capacity_bytes();
        let node = format!("/dev/nbd{number}");
        let problem = &cannot(format!("make {node} the emulated {}", assembly.name()));
        let (kernel, mut server) = UnixStream::pair().map_err(problem)?;
        let client =
            NbdClient::connect(&node, kernel, bytes, nbd::transmission_flags(assembly)).map_err(problem)?;
        let server = thread::spawn(move || nbd::serve(&mut server, &mut device, &mut SystemClock::new()));
        let staying = client.try_clone().map_err(problem)?;
        let kernel = thread::spawn(move || staying.stay());
        let emulated = Emulated { node, client, kernel: Some(kernel), server: Some(server) };
        // The kernel tells who serves a device from the moment on in which it sends requests.
        let ready = format!("/sys/block/nbd{number}/pid");
        for _ in 0..LOOKS_MAX {
            if Path::new(&ready).exists() {
                return Ok(emulated);
            }
            thread::sleep(Duration::from_millis(1));
        }
        Err(GuestError::DeviceNotReady { node: emulated.node.clone(), device: assembly.name().to_owned() })
    }

    /// Its node in /dev.
    pub fn node(&self) -> &str {
        &self.node
    }
}

impl Drop for Emulated {
    fn drop(&mut self) {
        if let Err(error) = self.client.disconnect() {
            println!("cannot end {}: {error}", self.node);
        }
        // Its error is only how the connection ended, which was asked for.
        let _ = self.kernel.take().map(JoinHandle::join);
        match self.server.take().map(JoinHandle::join) {
            Some(Ok(Err(error))) => println!("the server of {} ended: {error}", self.node),
            Some(Err(_)) => println!("the server of {} panicked", self.node),
            Some(Ok(Ok(_))) | None => {}
        }
    }
}
