//! Goal: commits that followed each other do so in a replay, also on several databases.
//! Method: recordings made by hand.

use super::Made;
use crate::recording::page_transactions::derive::derive;
use crate::recording::page_transactions::plan::{PlannedCommit, TransactionPlan};

/// Commits by these threads on these databases, one after the other.
fn made(commits: &[(u32, u32)]) -> Made {
    let mut made = Made::new();
    for (thread, database) in commits {
        made.thread = *thread;
        let (own, path) = (10 * thread + 100 * database, format!("/d/{database}.db"));
        let journal = format!("{path}-journal");
        made.open(own, &path).open(own + 1, &journal).journal(own + 1, 2);
        made.pages(own, &[1, 3]).sync(own).unlink(&journal);
    }
    made
}

/// What a commit waits for: of another connection so many.
fn waits(commit: &PlannedCommit) -> Vec<(u32, u32)> {
    commit.waits.iter().map(|wait| (wait.connection, wait.commits)).collect()
}

fn of(plan: &TransactionPlan) -> Vec<Vec<(u32, u32)>> {
    plan.commits.iter().map(waits).collect()
}

#[test]
fn a_thread_commits_to_its_second_database_behind_the_first() {
    let found = derive(&made(&[(1, 1), (1, 1), (1, 2), (1, 2), (1, 1)]).recording).unwrap();
    let plan = TransactionPlan::of(&found).unwrap();
    assert_eq!(plan.connections.len(), 2);
    assert_eq!(of(&plan), [vec![], vec![], vec![(0, 2)], vec![], vec![(1, 2)]]);
    for at in 1..5 {
        assert_eq!(plan.commits[at].ready_ns, found.commits[at - 1].end_ns, "commit {at}");
    }
    assert_eq!(of(&TransactionPlan::overlapping_as_recorded(&found).unwrap()), of(&plan));
}

/// As the processes of a script, each with a database of its own.
#[test]
fn a_thread_that_commits_later_begins_behind_what_was_over() {
    let found = derive(&made(&[(1, 1), (1, 1), (2, 2), (1, 1), (2, 2)]).recording).unwrap();
    let plan = TransactionPlan::of(&found).unwrap();
    assert_eq!(of(&plan), [vec![], vec![], vec![(0, 2)], vec![], vec![]], "then both go on");
    let kept = TransactionPlan::overlapping_as_recorded(&found).unwrap();
    assert_eq!(of(&kept), [vec![], vec![], vec![(0, 2)], vec![(1, 1)], vec![(0, 3)]]);
}

#[test]
fn commits_that_overlapped_do_so_again() {
    let mut found = derive(&made(&[(1, 1), (2, 2), (1, 1)]).recording).unwrap();
    found.commits[0].end_ns = found.commits[1].begin_ns + 1;
    found.commits[1].end_ns = found.commits[2].begin_ns + 1;
    for plan in [TransactionPlan::of(&found), TransactionPlan::overlapping_as_recorded(&found)] {
        assert_eq!(of(&plan.unwrap()), [vec![], vec![], vec![]]);
    }
}
