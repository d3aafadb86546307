//! What programs do: calls that make something durable, locks, threads. And commits of journals.

use crate::trace::event::EventKind;
use crate::trace::ftrace::known::{Known, Values};
use crate::trace::ftrace::record::{Call, NameChange, What};

/// Locks by which SQLite's transactions are seen (`attribution::transactions`): write locks of bytes 120 and 121 of the shared memory's file (WAL) and of
/// the 512 bytes from 2^30 on of a database, and what gives back 120, 121 or RESERVED (2^30 + 1). Those of readers tell nothing.
const SQLITE_LOCKS: &str = "ret == 0 && ((type == 1 && fl_start >= 120 && fl_end <= 121) || \
    (type == 1 && fl_start >= 1073741824 && fl_end <= 1073742335) || \
    (type == 2 && fl_start <= 121 && fl_end >= 120) || \
    (type == 2 && fl_start <= 1073741825 && fl_end >= 1073741825))";

/// RWF_DSYNC or RWF_SYNC (linux/fs.h).
const DURABLE: u64 = 2 | 4;
/// CLONE_THREAD (linux/sched.h).
const CLONE_THREAD: u64 = 0x10000;

const fn call(
    names: &'static [&'static str],
    fields: &'static [&'static str],
    read: fn(&Values<'_>) -> Option<What>,
) -> Known {
    let without = "which system call began a sync, where the filesystem does not tell";
    Known { system: "syscalls", names, fields, device_field: "", filter: "", without, read }
}

/// Names are heard of from elsewhere, without times.
const fn name_call(names: &'static [&'static str], read: fn(&Values<'_>) -> Option<What>) -> Known {
    let without = "when files got and lost their names";
    Known { system: "syscalls", names, fields: &["ret"], device_field: "", filter: "ret == 0", without, read }
}

fn added(values: &Values<'_>) -> Option<What> {
    (values.signed(0)? == 0).then_some(What::NamesChanged(NameChange::Added))
}

fn renamed(values: &Values<'_>) -> Option<What> {
    (values.signed(0)? == 0).then_some(What::NamesChanged(NameChange::Renamed))
}

fn removed(values: &Values<'_>) -> Option<What> {
    (values.signed(0)? == 0).then_some(What::NamesChanged(NameChange::Removed))
}

const fn call_end(names: &'static [&'static str]) -> Known {
    call(names, &["ret"], |values| Some(What::CallEnd(values.signed(0)?)))
}

/// The events of calls, locks and threads that joj reads.
pub(super) const CALLS: &[Known] = &[
    call(&["sys_enter_fsync"], &["fd"], |values| begin(Call::Fsync, values)),
    call(&["sys_enter_fdatasync"], &["fd"], |values| begin(Call::Fdatasync, values)),
    call(&["sys_enter_sync_file_range", "sys_enter_sync_file_range2"], &["fd"], |values| {
        begin(Call::SyncFileRange, values)
    }),
    call(&["sys_enter_syncfs"], &["fd"], |values| begin(Call::Syncfs, values)),
    call(&["sys_enter_msync"], &[], |values| begin(Call::Msync, values)),
    call(&["sys_enter_sync"], &[], |values| begin(Call::Sync, values)),
    Known {
        filter: "flags & 6",
        without: "durable writes (pwritev2 with RWF_DSYNC)",
        ..call(&["sys_enter_pwritev2"], &["fd", "pos_l", "pos_h", "flags"], durable_write)
    },
    call_end(&["sys_exit_fsync"]),
    call_end(&["sys_exit_fdatasync"]),
    call_end(&["sys_exit_sync_file_range", "sys_exit_sync_file_range2"]),
    call_end(&["sys_exit_syncfs"]),
    call_end(&["sys_exit_msync"]),
    call_end(&["sys_exit_sync"]),
    call_end(&["sys_exit_pwritev2"]),
    name_call(&["sys_exit_link"], added),
    name_call(&["sys_exit_linkat"], added),
    name_call(&["sys_exit_rename"], renamed),
    name_call(&["sys_exit_renameat"], renamed),
    name_call(&["sys_exit_renameat2"], renamed),
    name_call(&["sys_exit_unlink"], removed),
    name_call(&["sys_exit_unlinkat"], removed),
    name_call(&["sys_exit_rmdir"], removed),
    Known {
        system: "filelock",
        names: &["posix_lock_inode"],
        fields: &["s_dev", "i_ino", "fl_start", "fl_end", "type|fl_type", "ret"],
        device_field: "s_dev",
        filter: SQLITE_LOCKS,
        without: "SQLite's locks, and with them where a transaction begins and ends",
        read: lock,
    },
    Known {
        system: "jbd2",
        // From here on nothing joins the transaction; the other one is a moment earlier.
        names: &["jbd2_commit_flushing", "jbd2_start_commit"],
        fields: &["dev", "transaction"],
        device_field: "dev",
        filter: "",
        without: "when the journal begins to commit",
        read: |values| journal(EventKind::JournalBegin, values),
    },
    Known {
        system: "jbd2",
        names: &["jbd2_end_commit"],
        fields: &["dev", "transaction"],
        device_field: "dev",
        filter: "",
        without: "when the journal has committed",
        read: |values| journal(EventKind::JournalEnd, values),
    },
    Known {
        system: "xfs",
        names: &["xfs_log_force"],
        fields: &["dev", "lsn"],
        device_field: "dev",
        filter: "",
        without: "for which checkpoint of its log a sync call waits",
        read: |values| {
            let (device, transaction) = (values.device(0)?, values.signed(1)?);
            Some(What::Journal { kind: EventKind::JournalWait, device, transaction })
        },
    },
    Known {
        system: "task",
        names: &["task_newtask"],
        fields: &["pid", "comm", "clone_flags"],
        device_field: "",
        filter: "",
        without: "which process a thread belongs to that ended soon",
        read: |values| {
            Some(What::NewThread {
                thread: values.small(0)?,
                same_process: values.number(2)? & CLONE_THREAD != 0,
                command: values.command(1)?,
            })
        },
    },
    Known {
        system: "task",
        names: &["task_rename"],
        fields: &["pid", "newcomm"],
        device_field: "",
        filter: "",
        without: "the name of a program that ended soon",
        read: |values| Some(What::Renamed { thread: values.small(0)?, command: values.command(1)? }),
    },
];

/// Registers hold descriptors; their upper half is whatever it was.
fn descriptor(values: &Values<'_>) -> Option<u32> {
    u32::try_from(values.number(0)? & 0xffff_ffff).ok()
}

fn begin(call: Call, values: &Values<'_>) -> Option<What> {
    Some(What::CallBegin { call, descriptor: descriptor(values), offset: 0 })
}

fn durable_write(values: &Values<'_>) -> Option<What> {
    let (low, high) = (values.number(1)?, values.number(2)?);
    // 64-bit kernels get the whole offset in the first register; -1 means the file's own position.
    let offset = low | high.checked_shl(32).unwrap_or(0);
    let durable = values.number(3)? & DURABLE != 0;
    let offset = if offset == u64::MAX { 0 } else { offset };
    durable.then_some(What::CallBegin { call: Call::Pwritev2, descriptor: descriptor(values), offset })
}

fn lock(values: &Values<'_>) -> Option<What> {
    let mode = values.signed(4)?;
    ((0..=2).contains(&mode) && values.signed(5)? == 0).then_some(())?;
    Some(What::Lock { file: values.inode(0, 1)?, first: values.number(2)?, last: values.number(3)?, mode })
}

fn journal(kind: EventKind, values: &Values<'_>) -> Option<What> {
    // A tid_t, unsigned in some versions and not in others.
    let transaction = i64::from(u32::try_from(values.number(1)? & 0xffff_ffff).ok()?);
    Some(What::Journal { kind, device: values.device(0)?, transaction })
}
