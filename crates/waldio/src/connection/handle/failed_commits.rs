//! The part of a connection that is about COMMITs that failed and are published all the same (`log_file/taking_back`).

use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::{Duration, Instant};

use crate::connection::handle::Connection;
use crate::durability::log_session::LogSession;
use crate::ffi::wal_index;
use crate::log::frame::{Prefix, Salts};

impl Connection {
    /// True once the log is out of use.
    pub fn is_poisoned(&self) -> bool {
        self.database.check_poison().is_err()
    }

    /// True where the newest commit of the log is one of this process that failed, or may yet, or another connection takes it back at
    /// this moment; and this connection does not write.
    pub fn has_failed_commit(&self) -> bool {
        let Ok(state) = self.state() else { return false };
        let (Some(log), Some(wal_index)) = (&state.log, state.wal_index) else { return false };
        let durability = &log.session().durability;
        let is_hidden = |published: Prefix| published.salts == Salts::default();
        let may_be = |published| is_hidden(published) || durability.has_failed(published);
        !state.holds_write() && (durability.is_any_untold() || wal_index.published().is_none_or(may_be))
    }

    /// True where no thread may yet be told that its commit failed.
    pub fn knows_all_that_failed(&self) -> bool {
        self.of_session(|session| !session.durability.is_any_untold())
    }

    /// True where no attempt was in vain a moment ago.
    pub fn may_keep_readers_out(&self) -> bool {
        self.of_session(|session| session.durability.rest_until().is_none_or(|until| Instant::now() >= until))
    }

    /// True where no other connection of this process has the log open.
    pub fn is_last(&self) -> bool {
        self.of_session(|session| session.handles.load(SeqCst) == 1)
    }

    /// An attempt was in vain: no other one for so long.
    pub fn rest(&self, pause: Duration) {
        self.of_session(|session| {
            *session.durability.rest_until() = Some(Instant::now() + pause);
            true
        });
    }

    /// False without a log.
    fn of_session(&self, ask: impl FnOnce(&LogSession) -> bool) -> bool {
        self.state().is_ok_and(|state| state.log.as_ref().is_some_and(|log| ask(log.session())))
    }

    /// True once after this connection's own COMMIT failed: then it is worth a wait that nobody sees it.
    pub fn take_commit_failed(&self) -> bool {
        self.commit_failed.swap(false, Relaxed)
    }

    /// Where the first of the commits that may be taken back now has its commit frame. The caller has the locks of a writer and of
    /// a checkpoint, or is alone.
    pub fn first_failed(&self) -> Option<u64> {
        let state = self.state().ok()?;
        state.log.as_ref()?.first_failed(state.wal_index?)
    }

    /// Takes the wal-index's header away: as long as that, and the locks of a recovery, are kept nobody begins to read.
    pub fn hide_commits(&self) -> Option<wal_index::Header> {
        Some(self.state().ok()?.wal_index?.take_header())
    }

    /// Puts it back.
    pub fn show_commits(&self, header: &wal_index::Header) {
        if let Ok(state) = self.state()
            && let Some(wal_index) = state.wal_index
        {
            wal_index.put_header(header);
        }
    }

    /// Makes the commit there, and all behind it, none. Nobody reads. True where it is none from now on.
    pub fn take_back(&self, offset: u64) -> bool {
        self.state().is_ok_and(|state| state.log.as_ref().is_some_and(|log| log.take_back(offset)))
    }

    /// Has that written to the medium, as far as it can be had.
    pub fn sync_taken_back(&self) {
        let log = self.state().ok().and_then(|state| {
            let log = state.log.as_ref()?;
            Some((Arc::clone(log.session()), log.shared_file()))
        });
        // Without any lock, also of this connection: it may take long.
        if let Some((session, file)) = log {
            session.durability.sync_taken_back(&*file);
        }
    }
}
