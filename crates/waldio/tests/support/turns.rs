//! Programs of several connections that take turns: what each does, and where in the middle of it others go on.
//!
//! Written `A:Commit1@PhaseTwo B:Commit3@Synced A:Go`: a connection that stopped goes on when it has another turn, and
//! at the end of the program, in the order of stopping.

use std::fmt;
use std::str::FromStr;

/// What a connection does in its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Act {
    /// A transaction that changes one page.
    Commit1,
    /// A transaction that changes three pages.
    Commit3,
    /// A transaction larger than the cache that changes its pages twice and grows the database.
    Spill,
    /// A transaction that spills and is rolled back.
    Rollback,
    /// A transaction of one page with synchronous=NORMAL, which nobody syncs.
    Loose,
    /// BEGIN IMMEDIATE and ROLLBACK: beside a writer it meets BUSY, and is seen to.
    Try,
    /// A read transaction; what it saw went out of the computer.
    Read,
    /// Checkpoints.
    Passive,
    /// FULL.
    Full,
    /// RESTART.
    Restart,
    /// TRUNCATE.
    Truncate,
    /// RESTART, then a commit of three pages: the first of a new generation where nobody reads.
    Reset,
    /// The connection is closed and opened.
    Reopen,
    /// The connection is closed; its next act opens it.
    Close,
    /// To journal_mode=DELETE, a commit there, and back to WAL; BUSY while another connection is open.
    Switch,
    /// Goes on where it stopped.
    Go,
}

/// All of them but `Go`.
pub const ACTS: [Act; 15] = [
    Act::Commit1,
    Act::Commit3,
    Act::Spill,
    Act::Rollback,
    Act::Loose,
    Act::Try,
    Act::Read,
    Act::Passive,
    Act::Full,
    Act::Restart,
    Act::Truncate,
    Act::Reset,
    Act::Reopen,
    Act::Close,
    Act::Switch,
];

/// A point inside an act.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Moment {
    /// Everything is written and COMMIT comes next; of a reader: its transaction is open.
    Held,
    /// `xSync` of a commit returned; nothing is published.
    Synced,
    /// The commit is published, and the write lock is given back next.
    Published,
    /// The write lock is free, and `COMMIT_PHASETWO` comes next.
    PhaseTwo,
    /// `COMMIT_PHASETWO` returned; the read lock is still held.
    Acked,
    /// A flush of the log is done and has not returned.
    Flushed,
    /// The log is synced for a checkpoint, and `CKPT_START` comes next.
    CheckpointStart,
    /// The first page is copied next.
    CheckpointCopy,
    /// All pages are copied and not synced.
    CheckpointCopied,
}

/// All of them.
pub const MOMENTS: [Moment; 9] = [
    Moment::Held,
    Moment::Synced,
    Moment::Published,
    Moment::PhaseTwo,
    Moment::Acked,
    Moment::Flushed,
    Moment::CheckpointStart,
    Moment::CheckpointCopy,
    Moment::CheckpointCopied,
];

impl Act {
    /// Where it may stop.
    pub fn moments(self) -> &'static [Moment] {
        match self {
            Act::Commit1 | Act::Commit3 | Act::Spill | Act::Go => &MOMENTS[..6],
            Act::Loose => &MOMENTS[..5],
            Act::Rollback | Act::Read => &MOMENTS[..1],
            Act::Passive | Act::Full | Act::Restart | Act::Truncate => &MOMENTS[5..],
            Act::Reset => &MOMENTS,
            Act::Reopen | Act::Close => &MOMENTS[6..],
            Act::Try | Act::Switch => &[],
        }
    }
}

/// One turn of one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// Which connection, from 0.
    pub who: usize,
    /// What it does.
    pub act: Act,
    /// Where it stops, when it comes there.
    pub until: Option<Moment>,
}

/// The letter of a connection.
pub fn letter(who: usize) -> char {
    char::from(b'A' + u8::try_from(who).expect("few connections"))
}

impl fmt::Display for Turn {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{:?}", letter(self.who), self.act)?;
        self.until.map_or(Ok(()), |moment| write!(formatter, "@{moment:?}"))
    }
}

impl FromStr for Turn {
    type Err = String;

    fn from_str(text: &str) -> Result<Turn, String> {
        let wrong = || format!("{text:?} is no turn: write A:Commit1 or B:Commit3@PhaseTwo");
        let (who, rest) = text.split_once(':').ok_or_else(wrong)?;
        let (act, moment) = rest.split_once('@').map_or((rest, None), |(act, moment)| (act, Some(moment)));
        let who = who.bytes().next().and_then(|byte| byte.checked_sub(b'A')).ok_or_else(wrong)?;
        let mut acts = ACTS.into_iter().chain([Act::Go]);
        let act = acts.find(|known| format!("{known:?}") == act).ok_or_else(wrong)?;
        let find = |name| MOMENTS.into_iter().find(|known| format!("{known:?}") == name).ok_or_else(wrong);
        Ok(Turn { who: usize::from(who), act, until: moment.map(find).transpose()? })
    }
}

/// Turns in a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program(pub Vec<Turn>);

impl Program {
    /// How many connections it has.
    pub fn connections(&self) -> usize {
        self.0.iter().map(|turn| turn.who + 1).max().unwrap_or(0)
    }
}

impl fmt::Display for Program {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let turns: Vec<String> = self.0.iter().map(Turn::to_string).collect();
        write!(formatter, "{}", turns.join(" "))
    }
}

impl FromStr for Program {
    type Err = String;

    fn from_str(text: &str) -> Result<Program, String> {
        let turns = text.split([' ', ',']).filter(|turn| !turn.is_empty());
        turns.map(str::parse).collect::<Result<_, _>>().map(Program)
    }
}
