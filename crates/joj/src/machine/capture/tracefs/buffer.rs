//! An instance's per-processor buffers, read as pages while the kernel goes on writing.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;

use joj_analysis::trace::ftrace::format::PageLayout;
use rustix::event::{PollFd, PollFlags, Timespec};

use crate::machine::capture::error::TracefsError;
use crate::machine::capture::tracefs::instance::Instance;

/// For each processor. At 8,000 commits a second, each some 20 records of 60 bytes, it holds 400 ms.
pub const BYTES: usize = 4 << 20;
/// A reader is woken when this much of a buffer is full, not at each record: a wake-up costs more than the record.
const WAKE_PERCENT: &str = "25";

/// The buffers of all processors.
#[derive(Debug)]
pub struct Buffers {
    files: Vec<(String, File)>,
    page: Vec<u8>,
    /// How their pages are laid out.
    pub layout: PageLayout,
}

impl Buffers {
    /// Opens an instance's buffers; nothing is in them yet.
    /// # Errors
    /// What cannot be set or opened.
    pub fn open(instance: &Instance) -> Result<Self, TracefsError> {
        instance.set("trace_clock", "mono").map_err(|error| {
            error.with_advice("; kernels before 3.14 have no such clock: joj needs a newer one")
        })?;
        instance
            .set("buffer_size_kb", &(BYTES >> 10).to_string())
            .map_err(|error| error.with_advice("; free some memory"))?;
        // Linux 6.0 and newer; before, a reader is woken at half of it or as soon as there is anything.
        let _ = instance.set("buffer_percent", WAKE_PERCENT);
        let layout = PageLayout::parse(&instance.text("events/header_page")?)?;
        let mut files = Vec::new();
        let directory = instance.path("per_cpu");
        let unreadable = TracefsError::unreadable(&directory);
        for entry in fs::read_dir(&directory).map_err(&unreadable)? {
            let path = entry.map_err(&unreadable)?.path();
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let raw = path.join("trace_pipe_raw");
            match File::options().read(true).custom_flags(libc::O_NONBLOCK).open(&raw) {
                Ok(file) => files.push((name, file)),
                // A processor that was never there since the start has a directory and no buffer.
                Err(error) if error.raw_os_error() == Some(libc::ENXIO) => {}
                Err(error) => return Err(TracefsError::NotOpened { path: raw, error }),
            }
        }
        files.sort_by_key(|(name, _)| name[3.min(name.len())..].parse::<u32>().unwrap_or(u32::MAX));
        Ok(Self { files, page: vec![0; layout.page_bytes()], layout })
    }

    /// Waits until one of them has much to read, or for this long.
    pub fn wait(&self, timeout: Duration) {
        let mut waits: Vec<PollFd<'_>> = self
            .files
            .iter()
            .map(|(_, file)| PollFd::from_borrowed_fd(file.as_fd(), PollFlags::IN))
            .collect();
        let timeout = Timespec::try_from(timeout).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
        // A signal ends the wait early, which is as well.
        let _ = rustix::event::poll(&mut waits, Some(&timeout));
    }

    /// Hands on every page that can be had, with the number of its processor. Returns how many bytes the fullest buffer had.
    /// # Errors
    /// As read(2).
    pub fn read(&mut self, take: &mut dyn FnMut(usize, &[u8], &PageLayout)) -> Result<usize, TracefsError> {
        let mut fullest = 0;
        for (number, (name, file)) in self.files.iter_mut().enumerate() {
            let mut held = 0;
            loop {
                match file.read(&mut self.page) {
                    Ok(0) => break,
                    Ok(bytes) => {
                        held += bytes;
                        take(number, &self.page[..bytes], &self.layout);
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(TracefsError::Buffer { processor: name.clone(), error }),
                }
            }
            fullest = fullest.max(held);
        }
        Ok(fullest)
    }

    /// How many records the kernel threw away, by its own count.
    pub fn overrun(&self, instance: &Instance) -> u64 {
        let count = |text: &str, name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.and_then(|count| count.trim().parse::<u64>().ok()).unwrap_or(0)
        };
        let statistics = self.files.iter().map(|(name, _)| instance.text(&format!("per_cpu/{name}/stats")));
        statistics.flatten().map(|text| count(&text, "overrun") + count(&text, "dropped events")).sum()
    }
}
