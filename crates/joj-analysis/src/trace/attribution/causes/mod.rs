//! For which sync call something is written: by the thread that hands it over, and by what calls wait for. Here the decision; below it:
//!
//! ```text
//! syncs      sync calls under way, and which of them waits for something
//! journals   commits of filesystems' journals, and how near a sync is to waiting for one
//! scope      how much a call makes durable;  roles: which threads work for others
//! ```

pub mod syncs;
pub mod journals;
pub mod scope;
pub mod roles;

use crate::filesystem::class::Class;
use crate::trace::attribution::causes::journals::Journals;
use crate::trace::attribution::causes::roles::{Role, Roles};
use crate::trace::attribution::causes::syncs::Syncs;
use crate::trace::attribution::request::{BlockRun, Request, Sync};
use crate::trace::event::{DeviceNumber, Event, EventKind, FileKey, Operation};
use crate::trace::texts::{Text, Texts};

/// Something that is handed over.
#[derive(Debug, Clone, Copy)]
pub struct Work {
    pub queued_ns: u64,
    /// The thread that hands it over, and the thread's name.
    pub thread: u32,
    pub command: Text,
    pub operation: Operation,
    pub class: Class,
    /// Whose data it is.
    pub file: FileKey,
    /// What filesystem it is on, as files name that.
    pub filesystem: Option<DeviceNumber>,
}

/// The calls, and what is known of those who work for them.
#[derive(Debug, Default)]
pub struct Causes {
    pub syncs: Syncs,
    pub journals: Journals,
    roles: Roles,
}

impl Causes {
    /// Looks at the name of a thread.
    pub fn learn(&mut self, name: Text, texts: &Texts) {
        self.roles.learn(name, texts);
    }

    /// What a thread of that name works for.
    pub fn role(&self, name: Text) -> Role {
        self.roles.of(name)
    }

    /// The call for which something is handed over.
    pub fn of(&self, work: &Work) -> Option<&Sync> {
        if work.operation == Operation::Read {
            return None;
        }
        if let Some(own) = self.syncs.of_thread(work.thread) {
            return Some(own);
        }
        self.waiting(work)
    }

    /// For which call something is that a kernel thread handed over for one which has returned since; `None` where that did not happen.
    pub fn again(&self, run: &BlockRun, filesystem: Option<DeviceNumber>) -> Option<Option<&Sync>> {
        let is_over = !self.syncs.is_under_way(run.cause?);
        (is_over && self.role(run.command) != Role::Own).then(|| {
            self.waiting(&Work {
                queued_ns: run.queued_ns,
                thread: run.process,
                command: run.command,
                operation: Operation::Write,
                class: run.class,
                file: run.file,
                filesystem,
            })
        })
    }

    /// The call for which a kernel thread hands something over: one that had begun by then, and did not return until now.
    fn waiting(&self, work: &Work) -> Option<&Sync> {
        let (queued_ns, device) = (work.queued_ns, work.filesystem?);
        match self.role(work.command) {
            Role::Own => None,
            // In ordered mode it writes other files' data first, for whoever waits for the commit.
            Role::Journal => self.syncs.waiting_for_commit(device, self.journals.of(device), queued_ns),
            Role::Helper => {
                match self.journals.handed_over(device).filter(|_| work.class == Class::Journal) {
                    Some(handed_over) => self.syncs.waiting_for_checkpoint(device, handed_over, queued_ns),
                    None => {
                        let data_of = (work.class == Class::Data).then_some(work.file);
                        self.syncs.waiting(device, data_of, queued_ns)
                    }
                }
            }
        }
    }

    /// A request is complete: it counts for the calls for which its runs were written.
    pub fn count(&mut self, request: &Request) {
        self.syncs.count(request, &self.roles);
    }

    /// A journal's commit begins or ends; where one begins, the one before is over.
    pub fn commit(&mut self, event: &Event) {
        let begins = event.kind == EventKind::JournalBegin;
        let over = if begins { self.journals.begin(event) } else { self.journals.end(event.device) };
        if let Some(commit) = over {
            self.syncs.committed(commit);
        }
    }

    /// The capture tells for which commit a call waits.
    pub fn waits(&mut self, event: &Event) {
        self.syncs.waits(event);
        self.journals.hand_over(event.device, 0);
    }

    /// A thread writes to the log, or its call is over: what the call waited for is handed over.
    pub fn hand_over_log(&mut self, thread: u32) {
        if let Some((device, checkpoint)) = self.syncs.awaited(thread) {
            self.journals.hand_over(device, checkpoint);
        }
    }
}
