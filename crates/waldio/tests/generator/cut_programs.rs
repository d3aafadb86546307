//! Programs for the simulated computer: from a seed, and by name.

use super::program::{Act, Actor, Program, Role};
use crate::chance::Chance;

/// Parameters of waldio's connections, each on its own.
const PARAMETERS: [&str; 9] = [
    "waldio_persist=flush&waldio_fill=zeroes",
    "waldio_persist=flush",
    "waldio_persist=fua",
    "waldio_durability=normal",
    "waldio_persist=fua&waldio_group_commit=off",
    "waldio_persist=flush&waldio_group=12360,1000ms",
    "waldio_persist=fua&waldio_group=12360,1000ms",
    "waldio_persist=flush&waldio_durable_reads=on",
    "waldio_strict=1",
];

/// What happens, by weight.
const ORDERS: [&str; 36] = [
    "flush",
    "grow",
    "put 1",
    "put 1",
    "put 1",
    "put 3",
    "put 3",
    "spill",
    "spill",
    "rewrite",
    "begin",
    "begin",
    "commit",
    "commit",
    "commit",
    "rollback",
    "rollback",
    "savepoint",
    "back",
    "back",
    "sync FULL",
    "sync FULL",
    "sync EXTRA",
    "sync NORMAL",
    "sync OFF",
    "checkpoint PASSIVE",
    "checkpoint PASSIVE",
    "checkpoint FULL",
    "checkpoint RESTART",
    "checkpoint TRUNCATE",
    "lock EXCLUSIVE",
    "lock NORMAL",
    "hold",
    "read",
    "close",
    "put 2",
];

/// Sequences that are delicate; `%` is the connection, `&` another one.
const PHRASES: [&str; 9] = [
    "%: lock EXCLUSIVE|%: put 1|%: put 1|%: begin|%: spill|%: rollback|%: lock NORMAL|&: put 3|%: put 1",
    "&: put 1|%: begin|%: put 1|%: savepoint|%: grow|%: back|%: commit|&: sync NORMAL|&: put 3|*: pause|%: put 1",
    "%: put 3|%: put 3|%: sync OFF|%: close",
    "%: put 3|%: sync OFF|%: checkpoint PASSIVE|&: sync OFF|&: put 2|%: close",
    "%: put 3|%: sync OFF|%: checkpoint PASSIVE|%: put 2|*: kill|&: read",
    "%: put 1|%: sync OFF|&: put 1|&: put 2|%: checkpoint PASSIVE",
    "%: checkpoint RESTART|%: put 2|&: sync OFF|&: put 1|%: put 1",
    "%: put 1|&: sync NORMAL|&: put 3|%: put 1|%: checkpoint FULL",
    "%: put 1|*: replace|&: put 1|&: put 1|%: put 1|&: put 2",
];

/// The program of this seed.
pub fn make(seed: u64) -> Program {
    let mut chance = Chance::new(seed);
    let count = 2 + chance.below(2);
    let processes = 1 + chance.below(3);
    let cast = (0..count).map(|number| Role {
        process: usize::try_from(1 + number % processes).expect("small"),
        waldio: number == 0 || chance.below(4) > 0,
        database: "app.db".to_owned(),
        parameters: (*chance.pick(&PARAMETERS)).to_owned(),
    });
    let mut program = Program { page_bytes: 4096, cast: cast.collect(), ..Program::default() };
    if chance.below(6) == 0 {
        program.page_bytes = 1024;
    }
    let is_embedded = chance.below(5) == 0;
    if is_embedded {
        program.page_bytes = 4096;
        for role in &mut program.cast {
            role.waldio = true;
            role.parameters.push_str("&waldio_layout=embedded");
        }
    }
    let length = usize::try_from(6 + chance.below(14)).expect("small");
    let mut who =
        || usize::try_from(if chance.below(2) == 0 { 0 } else { chance.below(count) }).expect("small");
    let mut turns = Vec::new();
    for _ in 0..length {
        turns.push((who(), who()));
    }
    for (who, other) in turns {
        if chance.below(12) == 0 {
            let words = if chance.below(3) == 0 { "kill" } else { "pause" };
            program.acts.push(Act::Order(Actor::World, words.to_owned()));
        } else if chance.below(7) == 0 {
            let text = chance.pick(&PHRASES);
            // The other files have no room for the layout.
            if !(is_embedded && text.contains("replace")) {
                program.acts.extend(phrase(text, who, other));
            }
        } else {
            let words = (*chance.pick(&ORDERS)).to_owned();
            program.acts.push(Act::Order(Actor::Connection(who), words));
        }
    }
    // Who closes a database that was moved away deletes what has its log's name now; a flush makes that durable.
    if program.has("replace") {
        let flushes = |act: &Act| matches!(act, Act::Order(_, words) if words == "flush");
        program.acts.retain(|act| !flushes(act));
    }
    if chance.below(2) == 0 && !program.has("replace") {
        for who in 0..program.cast.len() {
            program.acts.push(Act::Order(Actor::Connection(who), "close".to_owned()));
        }
    }
    program
}

fn phrase(text: &str, who: usize, other: usize) -> Vec<Act> {
    let act = |line: &str| {
        let (actor, words) = line.split_once(": ").expect("an actor and words");
        let actor = match actor {
            "%" => Actor::Connection(who),
            "&" => Actor::Connection(other),
            _ => Actor::World,
        };
        Act::Order(actor, words.to_owned())
    };
    text.split('|').map(act).collect()
}

/// Programs that once lost data at a cut.
pub const NAMED: [(&str, &str); 24] = [
    (
        // Nothing else makes the name of a log durable that was made without a sync.
        "flush_of_a_new_log",
        "page = 4096
         A = 1 waldio app.db
         A: sync OFF
         A: put 3
         A: flush",
    ),
    (
        "flush_of_anothers_new_log",
        "page = 4096
         A = 1 waldio app.db
         B = 2 waldio app.db
         A: sync OFF
         A: put 3
         B: flush",
    ),
    (
        "sight_of_a_new_log",
        "page = 4096
         A = 1 waldio app.db
         B = 2 waldio app.db waldio_durable_reads=on
         A: sync OFF
         A: put 3
         B: see",
    ),
    (
        "off_behind_flush",
        "page = 4096
         A = 1 waldio app.db
         A: put 3
         A: sync OFF
         A: checkpoint PASSIVE
         A: put 2
         A: flush",
    ),
    (
        // What a window left is flushed when its connection closes, in a log that others have begun anew meanwhile.
        "off_behind_window",
        "page = 4096
         A = 1 waldio app.db
         B = 2 waldio app.db waldio_group=64KiB,1000ms
         A: put 1
         B: put 1
         B: put 3
         A: sync OFF
         A: checkpoint RESTART
         A: put 2
         B: close",
    ),
    (
        // A checkpoint flushes the log for others' promises: not before the database that the old log was copied to.
        "off_behind_full",
        "page = 4096
         A = 1 waldio app.db
         A: put 3
         A: sync OFF
         A: checkpoint PASSIVE
         A: put 2
         A: checkpoint RESTART",
    ),
    (
        "off_behind_another_process",
        "page = 4096
         A = 1 waldio app.db
         B = 2 waldio app.db
         A: put 2
         A: sync OFF
         B: sync OFF
         A: checkpoint RESTART
         B: put 1
         A: close
         B: close",
    ),
    (
        // So does a recovery.
        "off_behind_full_killed",
        "page = 4096
         A = 1 waldio app.db
         A: put 3
         A: sync OFF
         A: checkpoint PASSIVE
         A: put 2
         *: kill
         A: read",
    ),
    (
        "exclusive_rollback",
        "page = 4096
         A = 1 waldio app.db waldio_persist=fua
         B = 2 stock app.db
         A: lock EXCLUSIVE
         A: put 1
         A: put 1
         A: begin
         A: spill
         A: rollback
         A: lock NORMAL
         B: put 3
         A: put 1",
    ),
    (
        // The mark that a shared flush leaves must not be where frames end that were taken back. `C: put 1` stands for as
        // many as it takes to come there.
        "undone_spill_then_direct",
        "page = 4096
         A = 1 waldio app.db waldio_persist=fua
         B = 1 waldio app.db waldio_persist=fua
         C = 2 stock app.db
         A: put 1
         B: put 1
         A: put 1
         B: put 1
         A: begin
         A: put 1
         A: savepoint
         A: grow
         A: back
         A: commit
         C: sync NORMAL
         C: put 1
         *: pause
         A: put 1
         A: put 1",
    ),
    (
        "replaced_files",
        "page = 4096
         A = 1 waldio app.db waldio_persist=flush
         B = 1 waldio app.db waldio_persist=flush
         C = 1 waldio app.db waldio_persist=flush
         A: put 1
         *: replace
         B: put 1
         C: put 1
         B: put 1
         A: put 1
         C: put 2",
    ),
    (
        "synchronous_off_at_close",
        "page = 4096
         A = 1 waldio app.db waldio_persist=flush
         A: put 3
         A: put 3
         A: put 3
         A: put 3
         A: put 3
         A: put 3
         A: sync OFF
         A: close",
    ),
    (
        "last_close_without_sync",
        "page = 1024
         A = 1 waldio app.db
         B = 1 waldio app.db
         A: put 3
         B: sync OFF
         B: read
         A: close
         B: close",
    ),
    (
        // The log is not begun anew before it goes: its checkpoint was long before.
        "last_close_behind_another_process",
        "page = 1024
         A = 1 waldio app.db
         B = 2 waldio app.db
         A: put 3
         B: sync OFF
         B: checkpoint PASSIVE
         B: close
         A: sync OFF
         A: close
         A: read",
    ),
    (
        "last_close_in_exclusive_mode",
        "page = 1024
         A = 1 waldio app.db
         A: lock EXCLUSIVE
         A: put 3
         A: sync OFF
         A: put 1
         A: close
         A: read",
    ),
    (
        "last_close_of_an_embedded_log",
        "page = 1024
         A = 1 waldio app.db waldio_layout=embedded
         A: put 3
         A: sync OFF
         A: put 1
         A: close
         A: read",
    ),
    (
        "plain_beside_window",
        "page = 4096
         A = 1 waldio app.db waldio_persist=flush&waldio_group=64KiB,1000ms
         B = 1 waldio app.db waldio_persist=flush
         A: read
         B: put 1
         B: put 1
         B: put 1",
    ),
    (
        "checkpoint_without_sync",
        "page = 4096
         A = 1 waldio app.db waldio_persist=flush
         B = 2 waldio app.db waldio_persist=flush&waldio_group=64KiB,1000ms
         A: put 1
         A: sync OFF
         B: put 3
         B: put 3
         B: put 3
         A: read
         A: checkpoint PASSIVE",
    ),
    (
        // A log begun anew must not be durable before the database that the old one was copied to.
        "new_log_before_database",
        "page = 4096
         A = 1 waldio app.db waldio_persist=flush
         B = 2 waldio app.db waldio_persist=flush&waldio_durable_reads=on
         B: sync OFF
         A: put 2
         B: checkpoint PASSIVE
         B: put 1",
    ),
    (
        // The same, where SQLite's own sync of the log comes first: that of a checkpoint.
        "new_log_synced_by_a_checkpoint",
        "page = 1024
         A = 1 waldio app.db
         B = 1 waldio app.db
         A: sync NORMAL
         A: put 3
         B: flush
         A: sync OFF
         A: checkpoint PASSIVE
         A: put 2
         A: close
         A: checkpoint FULL",
    ),
    (
        // The same with a log that is emptied.
        "emptied_log_before_database",
        "page = 1024
         A = 1 waldio app.db
         B = 1 waldio app.db
         A: sync NORMAL
         A: put 3
         B: flush
         A: sync OFF
         A: checkpoint TRUNCATE
         A: put 2
         A: close
         A: checkpoint FULL",
    ),
    (
        // Frames of a new log under the old header: the log ends where the first of them stands, at an old state.
        "new_frames_under_the_old_header",
        "page = 1024
         A = 1 waldio app.db
         B = 1 waldio app.db
         A: sync NORMAL
         A: put 8
         A: put 8
         A: put 8
         A: flush
         A: sync OFF
         A: checkpoint PASSIVE
         B: sync OFF
         B: put 3
         B: put 3
         B: put 3
         B: flush",
    ),
    (
        // The same without locks of the wal-index.
        "new_log_in_exclusive_mode",
        "page = 1024
         A = 1 waldio app.db
         A: sync NORMAL
         A: put 3
         A: flush
         A: sync OFF
         A: lock EXCLUSIVE
         A: put 1
         A: checkpoint PASSIVE
         A: put 2
         A: sync FULL
         A: checkpoint FULL",
    ),
    (
        "stock_beside",
        "page = 4096
         A = 1 waldio app.db waldio_persist=fua
         B = 2 stock app.db
         A: put 1
         A: put 1
         B: sync NORMAL
         B: put 3
         A: put 1
         A: checkpoint FULL",
    ),
];
