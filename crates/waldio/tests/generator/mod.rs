//! A generator of programs: what several connections in several processes do and what befalls them, one act at a time.
//!
//! ```text
//! seed -> make -> Program -> run { Side of stock processes, Side with waldio } -> Failure -> shrink -> shortest Program
//! ```
//!
//! An explorer of our own over a plain list of acts, not proptest-state-machine: a program is text that somebody can read,
//! change and run again; most acts are SQL whose outcome the other side tells, so there is no state to model; and acts that
//! lost their meaning (a COMMIT whose BEGIN was taken out) do no harm, so deleting lines is all the shrinking needed.

pub mod check;
pub mod engine;
pub mod make;
pub mod named;
pub mod program;
pub mod shrink;
pub mod side;
pub mod verdict;
pub mod worker;
