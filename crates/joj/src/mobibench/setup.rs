//! The options of `joj mobibench` as what is to be run, or what is wrong with them.

use std::path::Path;

use joj_analysis::bench::key::JournalMode;
use joj_analysis::mobibench::setup::{DatabaseWork, FileSync, FileWork, MobibenchSetup, MobibenchWork};

use crate::command_line::mobibench::MobibenchOptions;
use crate::mobibench::error::MobibenchUsage;

/// What the options ask for.
/// # Errors
/// What no machine could run.
pub fn setup(options: &MobibenchOptions) -> Result<MobibenchSetup, MobibenchUsage> {
    if options.script.is_some() {
        return Err(MobibenchUsage::Script);
    }
    let directory = &options.directory;
    // /dev/shm is a directory like others.
    if directory.starts_with("/dev") && (directory == Path::new("/dev") || !directory.is_dir()) {
        return Err(MobibenchUsage::Device(directory.clone()));
    }
    if directory.exists() && !directory.is_dir() {
        return Err(MobibenchUsage::NoDirectory(directory.clone()));
    }
    let work = match options.operation {
        None => MobibenchWork::Files(files(options)?),
        Some(operation) => {
            let (transactions, threads) = (options.transactions, options.threads);
            if transactions < u64::from(threads) {
                return Err(MobibenchUsage::NoTransaction { transactions, threads });
            }
            let journal_mode = match (&options.waldio, options.journal_mode) {
                (None, mode) => mode,
                (Some(_), JournalMode::Wal) => JournalMode::Waldio,
                (Some(_), _) => return Err(MobibenchUsage::NoLog),
            };
            MobibenchWork::Databases(DatabaseWork {
                operation,
                transactions: transactions / u64::from(threads),
                journal_mode,
                synchronous: options.synchronous,
                pause_ms: options.pause_ms,
                tables: options.tables,
                databases: options.databases,
                random_ids: options.random_ids.is_some(),
            })
        }
    };
    let directory = directory.to_string_lossy().into_owned();
    Ok(MobibenchSetup { directory, threads: options.threads, work })
}

fn files(options: &MobibenchOptions) -> Result<FileWork, MobibenchUsage> {
    let work = FileWork {
        file_kb: options.file_kb / u64::from(options.threads),
        record_kb: options.record_kb,
        access: options.access,
        sync: options.sync,
        repeat_percent: options.repeat_percent,
    };
    if work.records() == 0 {
        return Err(MobibenchUsage::NoRecord {
            file_kb: options.file_kb,
            threads: options.threads,
            record_kb: options.record_kb,
        });
    }
    let page_bytes = rustix::param::page_size() as u64;
    let is_synced = matches!(work.sync, FileSync::MmapAsync | FileSync::MmapSync);
    if is_synced && !work.record_bytes().is_multiple_of(page_bytes) {
        return Err(MobibenchUsage::NoPages { record_kb: work.record_kb, page_kb: page_bytes / 1024 });
    }
    Ok(work)
}
