//! A model of what LS-MVBT writes: pages of a multi-version B-tree, one flush a transaction, and no journal.
//!
//! Source: Kim, Nam, Park, Won, "Resolving Journaling of Journal Anomaly in Android I/O: Multi-Version B-tree with Lazy Split" (FAST'14).
//! Its code was not published. What is modelled is which pages a transaction writes, not SQLite's work for them, and no recovery: a
//! transaction of several pages that a power cut divides stays divided.
//!
//! ```text
//! run    a run: rows before, transactions under the clock, everything read back
//! tree   which pages an insert, an update or a delete changes
//! page   a page and its bytes
//! ```

pub mod run;
mod tree;
mod page;
