//! Goal: what once was lost at a power cut is lost no more.
//! Method: each named program of `generator/cut_programs.rs` runs on the simulated disk as crash/generated_cuts.rs runs its own.

use crate::generator::cut_programs::NAMED;
use crate::generator::cuts::Lab;
use crate::generator::program::Program;
use crate::support::explore::Stats;

#[track_caller]
fn holds(name: &str) {
    holds_with(&Lab::new(), name, |text| text);
}

#[track_caller]
fn holds_with(lab: &Lab, name: &str, change: impl Fn(String) -> String) {
    let (_, text) = NAMED.iter().find(|(other, _)| *other == name).unwrap();
    let program = Program::parse(&change((*text).to_owned()));
    let found = lab.finding(&program, &mut Stats::default());
    assert!(found.is_none(), "{name}: {}\n\n{program}", found.unwrap());
}

/// Also where stock loses something in the same program.
#[track_caller]
fn holds_where_stock_does_not(name: &str) {
    let (_, text) = NAMED.iter().find(|(other, _)| *other == name).unwrap();
    let program = Program::parse(text);
    let found = Lab::new().strict_finding(&program, &mut Stats::default());
    assert!(found.is_none(), "{name}: {}\n\n{program}", found.unwrap());
}

#[test]
fn a_rollback_in_exclusive_mode_leaves_nothing() {
    holds("exclusive_rollback");
}

#[test]
fn what_was_undone_is_no_mark_of_what_is_durable() {
    let lab = Lab::new();
    for count in 1..16 {
        let puts = vec!["C: put 1"; count].join("\n");
        holds_with(&lab, "undone_spill_then_direct", |text| text.replace("C: put 1", &puts));
    }
}

#[test]
fn replaced_files_are_flushed_themselves() {
    holds("replaced_files");
}

#[test]
fn synchronous_off_takes_nothing_that_full_kept() {
    holds("synchronous_off_at_close");
}

#[test]
fn a_last_close_without_sync_takes_nothing_that_full_kept() {
    holds_where_stock_does_not("last_close_without_sync");
    holds_where_stock_does_not("last_close_behind_another_process");
    holds_where_stock_does_not("last_close_in_exclusive_mode");
    holds_where_stock_does_not("last_close_of_an_embedded_log");
}

#[test]
fn a_plain_connection_beside_a_window_promises_what_it_says() {
    holds("plain_beside_window");
}

#[test]
fn a_checkpoint_without_sync_waits_for_other_connections_promises() {
    holds("checkpoint_without_sync");
}

#[test]
fn a_stock_connection_beside_is_covered() {
    holds("stock_beside");
}

#[test]
fn a_checkpoint_without_sync_makes_no_log_durable_before_the_database() {
    holds("off_behind_full");
    holds("off_behind_another_process");
}

#[test]
fn a_flush_that_somebody_wants_makes_no_log_durable_before_the_database() {
    holds("off_behind_flush");
    holds("off_behind_window");
}

#[test]
fn a_log_that_somebody_wants_durable_has_its_name() {
    holds("flush_of_a_new_log");
    holds("flush_of_anothers_new_log");
    holds("sight_of_a_new_log");
}

#[test]
fn a_recovery_makes_no_log_durable_before_the_database() {
    holds("off_behind_full_killed");
}

#[test]
fn a_new_log_is_not_durable_before_the_database() {
    holds("new_log_before_database");
}

#[test]
fn a_log_begins_anew_behind_the_synced_database() {
    holds_where_stock_does_not("new_log_synced_by_a_checkpoint");
}

#[test]
fn a_log_is_emptied_behind_the_synced_database() {
    holds_where_stock_does_not("emptied_log_before_database");
}

#[test]
fn no_frame_of_a_new_log_comes_before_its_header() {
    holds_where_stock_does_not("new_frames_under_the_old_header");
}

#[test]
fn in_exclusive_mode_too_a_log_begins_anew_behind_the_synced_database() {
    holds_where_stock_does_not("new_log_in_exclusive_mode");
}
