//! Goal: the numbers, the line and the barrier keep their promises however the threads' steps are interleaved.
//! Method: `waldio`'s own code on a model checker's threads, locks and time (`waldio::testing::model`); each program below is
//! run under thousands of schedules, judged after each step that a user could see. Each promise is then broken by a
//! planted bug, which the same program must find.
//! Needs `--features model,planted-bugs`. `MODEL_SCHEDULES` and `MODEL_PREEMPTIONS` widen the search (`model/explore.rs`).
#![cfg(all(feature = "model", feature = "planted-bugs"))]

#[path = "model/explore.rs"]
mod explore;
#[path = "model/group_commit.rs"]
mod group_commit;
#[path = "model/lock_queue.rs"]
mod lock_queue;
#[path = "model/barrier.rs"]
mod barrier;
