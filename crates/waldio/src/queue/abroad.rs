//! The part of the line that other processes are in (`process_line`).

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use super::WriteQueue;
use crate::line::{PASSES_MAX, Place};
use crate::process_line::{ProcessLine, Standing};

/// How the last sleep ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slept {
    /// It was in this process, or there was none.
    NotAbroad,
    /// Somebody rang.
    Rung,
    /// By itself.
    Unrung,
}

impl WriteQueue {
    /// For `waldio_status`: whether other processes are rung for, and where or why not.
    pub fn process_line(&self) -> (&'static str, String) {
        let none = || ("none", "the base VFS has no POSIX locks".to_owned());
        self.abroad.as_ref().map_or_else(none, ProcessLine::describe)
    }

    /// Has the thread look that sleeps at a place.
    pub(super) fn wake(&self, place: &mut Place) {
        place.wake();
        if let (Some(abroad), Some(number)) = (&self.abroad, place.abroad) {
            abroad.rouse(number);
        }
    }

    /// The lock was given back: tells another process. As long as this one has use for it, only now and then: a hand-over
    /// between its threads is cheaper.
    pub(super) fn ring_abroad(&self) {
        let Some(abroad) = self.abroad.as_ref().filter(|abroad| abroad.is_awaited()) else { return };
        if self.waiting.load(Relaxed) > 0 && self.stays.fetch_add(1, Relaxed) + 1 < PASSES_MAX {
            return;
        }
        self.stays.store(0, Relaxed);
        abroad.ring();
    }

    /// Sleeps among other processes; returns the place where it was not rung.
    pub(super) fn wait_abroad<'a>(
        &self,
        place: Standing<'a>,
        time: Duration,
    ) -> (Option<Standing<'a>>, Slept) {
        place.wait(time);
        if !place.is_rung() {
            return (Some(place), Slept::Unrung);
        }
        self.note_rings(Slept::Rung);
        (None, Slept::Rung)
    }

    /// Whoever found the lock free and was not told, is told by nobody: the holder is dead, stopped, or stock SQLite.
    pub(super) fn note_rings(&self, slept: Slept) {
        if let Some(abroad) = self.abroad.as_ref().filter(|_| slept != Slept::NotAbroad) {
            abroad.note(slept == Slept::Rung);
        }
    }

    /// Whoever was told and does not come tells the next.
    pub(super) fn ring_on(&self, slept: Slept) {
        if let Some(abroad) = self.abroad.as_ref().filter(|_| slept == Slept::Rung) {
            abroad.ring();
        }
    }
}
