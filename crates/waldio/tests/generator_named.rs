//! Goal: what once lost data, hung or differed does so no more.
//! Method: each named program of `generator/named.rs` runs on the system's SQLite and with waldio side by side, as the
//! generator runs its own (`generator/engine.rs` says what must hold).

#![allow(clippy::unwrap_used, reason = "the lint takes only functions marked #[test] for tests")]
#![allow(dead_code, reason = "the generator's other users use more of it")]

mod generator;
mod real;

use generator::check::Judge;
use generator::engine::run;
use generator::named::named;
use generator::program::Program;
use generator::worker::at_work;

const WORKER: &str = "worker_process";

/// Not a test: the processes of all others are this one, run again.
#[test]
fn worker_process() {
    at_work(WORKER);
}

#[track_caller]
fn holds(name: &str) {
    let program = Program::parse(named(name));
    if let Err(failure) = run(WORKER, &mut Judge::new(WORKER), &program) {
        panic!("{name}: {failure}\n\n{program}");
    }
}

#[test]
fn exclusive_rollback_leaves_nothing() {
    holds("exclusive_rollback");
}

#[test]
fn replaced_files_are_other_files() {
    holds("replaced_files");
}

#[test]
fn no_file_takes_the_place_of_a_standard_descriptor() {
    holds("closed_descriptors");
    holds("closed_descriptors_in_line");
}

#[test]
fn no_lock_goes_with_a_standard_descriptor() {
    holds("locks_beside_closed_descriptors");
}

#[test]
fn a_folder_that_cannot_be_opened_is_written_to() {
    holds("unreadable_folder");
}

#[test]
fn a_passing_lack_of_descriptors_passes() {
    holds("no_descriptor_at_first_commit");
}

#[test]
fn a_file_beside_the_log_that_can_only_be_read_is_not_used() {
    holds("file_beside_the_log_not_opened");
}

#[test]
fn a_refused_cachestat_hurts_nobody() {
    holds("refused_cachestat");
}

#[test]
fn a_refused_durable_write_hurts_nobody() {
    holds("refused_pwritev2");
}

#[test]
fn a_sleep_lasts() {
    holds("sleep_after_refusal");
}

#[test]
fn a_free_lock_is_granted() {
    holds("stale_refusal");
}

#[test]
fn a_crashed_log_outlives_one_failed_open() {
    holds("crashed_log_not_opened_1");
}

#[test]
fn a_crashed_log_outlives_two_failed_opens() {
    holds("crashed_log_not_opened_2");
}

#[test]
fn a_crashed_log_outlives_three_failed_opens() {
    holds("crashed_log_not_opened_3");
}

#[test]
fn deleted_text_is_gone() {
    holds("deleted_text");
}

#[test]
fn a_close_leaves_the_files_of_stock() {
    holds("files_after_close");
}

#[test]
fn a_crashed_database_is_read_without_room() {
    holds("full_disk_after_crash");
}

#[test]
fn an_interrupted_sync_is_one_error_at_most() {
    holds("interrupted_sync");
    holds("interrupted_database_sync");
}

#[test]
fn a_limit_that_is_lifted_is_gone() {
    holds("file_size_limit");
    holds("file_size_limit_in_exclusive_mode");
}

#[test]
fn a_limit_that_is_lifted_is_gone_for_a_cut_log() {
    holds("file_size_limit_after_truncate");
}

#[test]
fn a_read_only_connection_converts_nothing() {
    holds("convert_read_only");
}

#[test]
fn a_query_only_connection_converts_nothing() {
    holds("convert_query_only");
}

#[test]
fn a_refused_stock_connection_reads_after_the_last_close() {
    holds("refused_stock_connection_stays");
}

#[test]
fn a_kept_log_is_stocks() {
    holds("embedded_persist_wal");
}

#[test]
fn a_long_name_is_no_reason_to_refuse() {
    holds("long_name");
}

#[test]
fn a_forked_child_sleeps() {
    holds("forked_child_sleeps");
}
