//! Runs a program of several connections and records what reached the disk, what was published, and what was promised.

use std::rc::Rc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use blockio::simulated::image::Image;

use super::actor::{Actor, Command, Commit, Ledger, Report, SharedLedger, lock};
use super::acts::{Performer, Terms};
use super::machine::Machine;
use super::sqlite::{SqlError, with_seed};
use super::turns::{Act, Moment, Program, Turn, letter};
use super::watch_vfs;
use super::workload::Recording;

/// What a run left behind.
pub struct GroupRecording {
    /// For the explorer.
    pub recording: Recording,
    /// Commits in the order in which COMMIT returned.
    pub commits: Vec<Commit>,
    /// What each act came to.
    pub outcomes: Vec<Outcome>,
    /// How many records the disk had each time that no connection was open any more.
    pub last_closes: Vec<usize>,
}

/// What an act came to.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The act.
    pub turn: Turn,
    /// How many records the disk had when it began.
    pub began_at: usize,
    /// What it returned.
    pub result: Result<(), SqlError>,
}

/// A connection that runs while another is inside of a flush may wait for that one: so long it is waited for.
/// It may only be slow: then it runs beside the others, as it would anywhere.
const PATIENCE_BESIDE_FLUSH: Duration = Duration::from_millis(5);
/// Longer than any scheduler's whim.
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Now {
    Idle,
    Stopped(Moment),
    /// It waits for someone who is inside of a flush.
    Running,
}

struct Player {
    commands: Sender<Command>,
    reports: Receiver<Report>,
    now: Now,
    turn: usize,
}

/// The connections and whose turn it is.
struct Cast {
    players: Vec<Player>,
    outcomes: Vec<Option<Result<(), SqlError>>>,
    /// Those that stopped, oldest first.
    stopped: Vec<usize>,
}

impl Cast {
    fn take_turn(&mut self, index: usize, turn: Turn) {
        let who = turn.who;
        if turn.act == Act::Go {
            if matches!(self.players[who].now, Now::Stopped(_)) {
                self.go(who, turn.until);
            }
            return;
        }
        self.finish(who);
        self.players[who].turn = index;
        self.tell(who, Command::Do(turn.act, turn.until));
    }

    fn go(&mut self, who: usize, until: Option<Moment>) {
        self.stopped.retain(|stopped| *stopped != who);
        self.tell(who, Command::Go(until));
    }

    fn tell(&mut self, who: usize, command: Command) {
        self.players[who].commands.send(command).expect("an actor listens");
        self.players[who].now = Now::Running;
        self.wait(who);
    }

    /// Waits until a connection stopped or is done; shortly only, while another one is inside of a flush.
    fn wait(&mut self, who: usize) {
        let began = Instant::now();
        loop {
            match self.players[who].reports.recv_timeout(PATIENCE_BESIDE_FLUSH) {
                Ok(report) => return self.note(who, report),
                Err(RecvTimeoutError::Timeout) if began.elapsed() < PATIENCE => {}
                Err(error) => {
                    // A thread that waits for ever inside of C cannot be unwound.
                    eprintln!("connection {} is stuck: {error}", letter(who));
                    std::process::abort();
                }
            }
            // Those who waited for a flush may have come to one of their own.
            for other in (0..self.players.len()).filter(|other| *other != who) {
                if let (Now::Running, Ok(report)) =
                    (self.players[other].now, self.players[other].reports.try_recv())
                {
                    self.note(other, report);
                }
            }
            if self.players.iter().any(|player| player.now == Now::Stopped(Moment::Flushed)) {
                return;
            }
        }
    }

    fn note(&mut self, who: usize, report: Report) {
        let player = &mut self.players[who];
        match report {
            Report::Stopped(moment) => {
                player.now = Now::Stopped(moment);
                self.stopped.push(who);
            }
            Report::Done(outcome) => {
                player.now = Now::Idle;
                self.outcomes[player.turn] = Some(outcome);
            }
        }
    }

    /// Those who waited for a flush that is over now come to where they would have been.
    fn settle(&mut self) {
        for who in 0..self.players.len() {
            if self.players[who].now == Now::Running {
                self.wait(who);
            }
        }
    }

    /// Lets a connection come to the end of its act.
    fn finish(&mut self, who: usize) {
        loop {
            match self.players[who].now {
                Now::Idle => return,
                Now::Stopped(_) => self.go(who, None),
                Now::Running => {
                    let in_flush = |other: &usize| self.players[*other].now == Now::Stopped(Moment::Flushed);
                    match self.stopped.iter().copied().find(in_flush) {
                        Some(other) => self.go(other, None),
                        None => self.wait(who),
                    }
                }
            }
        }
    }

    /// Lets all come to the end of their acts, in the order of stopping.
    fn finish_all(&mut self) {
        while let Some(who) = self.stopped.first() {
            self.finish(*who);
        }
        (0..self.players.len()).for_each(|who| self.finish(who));
    }
}

/// The thread of one connection.
fn act(machine: &Machine, actor: &Rc<Actor>, terms: Terms) {
    watch_vfs::watch(Some(Rc::clone(actor) as Rc<dyn watch_vfs::Watcher>));
    let mut performer = Performer::new(machine, Rc::clone(actor), terms);
    while let Some(command) = actor.next() {
        let outcome = match command {
            Command::Do(act, _) => performer.perform(act),
            Command::Go(_) => Ok(()),
            Command::Close => {
                performer.close();
                Ok(())
            }
        };
        actor.done(outcome);
    }
    performer.close();
    watch_vfs::watch(None);
}

/// Runs `program` on `base`, and closes every connection.
pub fn record_group(machine: &Machine, base: &Image, program: &Program, terms: Terms) -> GroupRecording {
    const SEED: i32 = 7;
    let _random = with_seed(SEED);
    machine.boot(base);
    machine.disk.set_fault(terms.fault);
    let start = machine.disk.replay();
    let ledger = Ledger { txn: i64::from(SEED) * 1000, ..Ledger::default() };
    let ledger = SharedLedger::new(Mutex::new(ledger));
    let mut began = Vec::new();
    let outcomes = thread::scope(|scope| {
        let mut cast =
            Cast { players: Vec::new(), outcomes: vec![None; program.0.len()], stopped: Vec::new() };
        for who in 0..program.connections() {
            let (commands, listen) = channel();
            let (answer, reports) = channel();
            let (disk, ledger) = (machine.disk.clone(), Arc::clone(&ledger));
            scope.spawn(move || act(machine, &Actor::new(who, disk, ledger, listen, answer), terms));
            cast.players.push(Player { commands, reports, now: Now::Idle, turn: 0 });
        }
        for (index, turn) in program.0.iter().enumerate() {
            machine.disk.mark(&turn.to_string());
            began.push(machine.disk.record_count());
            cast.take_turn(index, *turn);
            cast.settle();
        }
        machine.disk.mark("end");
        cast.finish_all();
        let outcomes = std::mem::take(&mut cast.outcomes);
        machine.disk.mark("close");
        cast.outcomes = vec![None];
        for who in 0..cast.players.len() {
            cast.players[who].turn = 0;
            cast.tell(who, Command::Close);
        }
        outcomes
    });
    let end = machine.disk.image();
    let records = machine.disk.records();
    let ledger = std::mem::take(&mut *lock(&ledger));
    let outcomes: Vec<Outcome> = (program.0.iter().zip(began).zip(outcomes))
        .filter_map(|((turn, began_at), result)| Some(Outcome { turn: *turn, began_at, result: result? }))
        .collect();
    let Ledger { history, published, failed, wrong, commits, last_closes, .. } = ledger;
    let codes = outcomes.iter().map(|outcome| outcome.result.clone()).collect();
    let recording = Recording { records, start, history, published, outcomes: codes, failed, wrong, end };
    GroupRecording { recording, commits, outcomes, last_closes }
}
