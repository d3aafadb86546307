//! Commits over several databases, with ATTACH.

use std::collections::HashMap;

use crate::recording::page_transactions::RecordedCommit;

/// Commits of one thread to several databases that were under way together are one: with ATTACH.
pub fn join(commits: Vec<RecordedCommit>) -> Vec<RecordedCommit> {
    let mut joined: Vec<RecordedCommit> = Vec::new();
    // By thread its last commit.
    let mut last: HashMap<u32, usize> = HashMap::new();
    for commit in commits {
        let before = last.get(&commit.thread).copied();
        let is_part = before.is_some_and(|before| {
            let before: &RecordedCommit = &joined[before];
            let is_new = |part: usize| before.parts.iter().all(|known| known.database != part);
            commit.begin_ns < before.end_ns && is_new(commit.parts[0].database)
        });
        if let Some(before) = before.filter(|_| is_part) {
            let before = &mut joined[before];
            before.end_ns = before.end_ns.max(commit.end_ns);
            before.write_ns = before.write_ns.min(commit.write_ns);
            before.syncs.add(&commit.syncs);
            before.written_bytes += commit.written_bytes;
            before.parts.extend(commit.parts);
        } else {
            last.insert(commit.thread, joined.len());
            joined.push(commit);
        }
    }
    joined
}
