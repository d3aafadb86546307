//! Every creation, renaming and removal on a filesystem, with the file's number, generation and name (fanotify).
//!
//! It sees files that are gone before anybody could ask for their names: SQLite's rollback journals live for a millisecond.
//!
//! ```text
//! message | u32 length | version.. | u16 head length | u64 mask | fd | pid | information ..
//! information | u8 type, u8, u16 length | fsid 8 | handle: u32 bytes, i32 type, .. | name, 0 |
//! ```
//!
//! Source: fanotify(7), fanotify_init(2). Needs Linux 5.17 (FAN_REPORT_TARGET_FID) and CAP_SYS_ADMIN.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use joj_analysis::trace::texts::name_of;

use crate::machine::files::file_handle::{Handle, identity};

/// FAN_CLOEXEC | FAN_NONBLOCK | FAN_REPORT_TID | FAN_REPORT_DFID_NAME_TARGET
const INIT: u32 = 1 | 2 | 0x100 | 0x1e00;
/// FAN_MARK_ADD | FAN_MARK_FILESYSTEM
const MARK: u32 = 1 | 0x100;
const CREATE: u64 = 0x100;
const DELETE: u64 = 0x200;
const RENAME: u64 = 0x1000_0000;
const DIRECTORY: u64 = 0x4000_0000;
const OVERFLOW: u64 = 0x4000;
/// FAN_EVENT_INFO_TYPE_*
const TARGET: u8 = 1;
const NAMED_IN: u8 = 2;
const RENAMED_FROM: u8 = 10;
const RENAMED_TO: u8 = 12;
const HEAD_BYTES: usize = 24;

/// A file has another number of names now, or another name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// As [`identity`] gives it.
    pub inode: u64,
    pub generation: u32,
    /// The file itself.
    pub handle: Handle,
    /// True for a directory.
    pub directory: bool,
    /// A name was added.
    pub created: bool,
    /// A name was removed, perhaps the one just added.
    pub deleted: bool,
    /// The thread that did it; 0 where it is of a namespace that we do not see.
    pub thread: u32,
    /// The directory of the name.
    pub parent: Handle,
    /// The name of the file in that directory.
    pub name: String,
    /// Directory and name before, where it was renamed.
    pub before: Option<(Handle, String)>,
}

/// Watches one filesystem.
#[derive(Debug)]
pub struct Watch {
    messages: File,
    area: Vec<u8>,
}

impl Watch {
    /// Begins to watch the filesystem mounted there.
    /// # Errors
    /// As fanotify_init(2) and fanotify_mark(2): EINVAL before Linux 5.17, EPERM without CAP_SYS_ADMIN, EXDEV for a subvolume.
    pub fn new(mount_point: &Path) -> io::Result<Self> {
        Self::at(libc::AT_FDCWD, CString::new(mount_point.as_os_str().as_bytes())?)
    }

    /// The same of a Btrfs of which only subvolumes are mounted; `disk` is one of its disks. A watch begins at the filesystem's root.
    /// That is mounted for the moment, where no process sees it.
    /// # Errors
    /// As [`Watch::new`], and as fsopen(2), fsconfig(2), fsmount(2).
    pub fn of_btrfs(disk: &Path) -> io::Result<Self> {
        use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags};
        let settings = rustix::mount::fsopen("btrfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
        rustix::mount::fsconfig_set_string(settings.as_fd(), "source", disk)?;
        rustix::mount::fsconfig_set_string(settings.as_fd(), "subvolid", "5")?;
        rustix::mount::fsconfig_create(settings.as_fd())?;
        let mount = rustix::mount::fsmount(
            settings.as_fd(),
            FsMountFlags::FSMOUNT_CLOEXEC,
            MountAttrFlags::MOUNT_ATTR_RDONLY,
        )?;
        Self::at(mount.as_raw_fd(), c".".to_owned())
    }

    fn at(directory: RawFd, path: CString) -> io::Result<Self> {
        // SAFETY: plain numbers.
        let descriptor = unsafe { libc::fanotify_init(INIT, 0) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel just gave this descriptor to us alone.
        let messages = unsafe { File::from_raw_fd(descriptor) };
        let mask = CREATE | DELETE | RENAME | DIRECTORY;
        // SAFETY: the descriptors are open, `path` ends with a zero byte and lives until the call returns.
        let result =
            unsafe { libc::fanotify_mark(messages.as_raw_fd(), MARK, mask, directory, path.as_ptr()) };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { messages, area: vec![0; 1 << 16] })
    }

    /// Readable where something changed.
    /// # Errors
    /// EMFILE.
    pub fn descriptor(&self) -> io::Result<OwnedFd> {
        self.messages.try_clone().map(OwnedFd::from)
    }

    /// What changed since the last call, in order. The flag is true if the kernel threw some away.
    /// # Errors
    /// As read(2).
    pub fn changes(&mut self) -> io::Result<(Vec<Change>, bool)> {
        let (mut changes, mut lost) = (Vec::new(), false);
        loop {
            match self.messages.read(&mut self.area) {
                Ok(0) => return Ok((changes, lost)),
                Ok(bytes) => lost |= read_messages(&self.area[..bytes], &mut changes),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok((changes, lost)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Returns true if there were more than the kernel could keep.
fn read_messages(mut bytes: &[u8], changes: &mut Vec<Change>) -> bool {
    let mut lost = false;
    while let Some(length) = number(bytes, 0, 4).and_then(|length| usize::try_from(length).ok()) {
        let Some(message) = bytes.get(..length).filter(|message| message.len() >= HEAD_BYTES) else { break };
        lost |= number(message, 8, 8).is_some_and(|mask| mask & OVERFLOW != 0);
        changes.extend(change(message));
        bytes = &bytes[length..];
    }
    lost
}

fn change(message: &[u8]) -> Option<Change> {
    let mask = number(message, 8, 8)?;
    let mut rest = message.get(usize::try_from(number(message, 6, 2)?).ok()?..)?;
    let (mut target, mut place, mut before) = (None, None, None);
    while let (Some(&kind), Some(length)) = (rest.first(), number(rest, 2, 2)) {
        let length = usize::try_from(length).ok()?;
        let information = rest.get(..length).filter(|information| information.len() >= 20)?;
        let handle_bytes = usize::try_from(number(information, 12, 4)?).ok()?;
        let handle_kind = i32::from_ne_bytes(information.get(16..20)?.try_into().ok()?);
        let handle = information.get(20..20_usize.checked_add(handle_bytes)?)?;
        match kind {
            TARGET => {
                let identity = identity(handle_kind, handle);
                target = identity.map(|identity| (identity, (handle_kind, handle.to_vec())));
            }
            NAMED_IN | RENAMED_TO | RENAMED_FROM => {
                let name = information[20 + handle_bytes..].split(|byte| *byte == 0).next().unwrap_or(&[]);
                let which = if kind == RENAMED_FROM { &mut before } else { &mut place };
                *which = Some(((handle_kind, handle.to_vec()), name_of(name).into_owned()));
            }
            _ => {}
        }
        rest = &rest[length..];
    }
    let (((inode, generation), handle), (parent, name)) = (target?, place?);
    Some(Change {
        inode,
        generation,
        handle,
        directory: mask & DIRECTORY != 0,
        created: mask & CREATE != 0,
        deleted: mask & DELETE != 0,
        thread: u32::try_from(number(message, 20, 4)?).ok()?,
        parent,
        name,
        before,
    })
}

/// A number in the machine's own byte order.
fn number(bytes: &[u8], offset: usize, size: usize) -> Option<u64> {
    let field = bytes.get(offset..offset + size)?;
    Some(match size {
        2 => u64::from(u16::from_ne_bytes(field.try_into().ok()?)),
        4 => u64::from(u32::from_ne_bytes(field.try_into().ok()?)),
        _ => u64::from_ne_bytes(field.try_into().ok()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message() -> Vec<u8> {
        let information = |kind: u8, handle: [u32; 2], name: &[u8]| {
            let mut bytes = vec![kind, 0];
            bytes.extend(u16::try_from(28 + name.len()).unwrap().to_ne_bytes());
            bytes.extend([0; 8]);
            bytes.extend([8_u32, 1, handle[0], handle[1]].iter().flat_map(|word| word.to_ne_bytes()));
            bytes.extend(name);
            bytes
        };
        let mut body = information(NAMED_IN, [2, 0], b"a.db\0\0\0\0");
        body.extend(information(TARGET, [12, 99], b""));
        let mut bytes = u32::try_from(HEAD_BYTES + body.len()).unwrap().to_ne_bytes().to_vec();
        bytes.extend([3, 0, 24, 0]);
        bytes.extend((CREATE | DELETE).to_ne_bytes());
        bytes.extend([0xff; 4]);
        bytes.extend(4711_u32.to_ne_bytes());
        bytes.extend(body);
        bytes
    }

    #[test]
    fn a_message_names_the_file_and_what_happened() {
        let mut changes = Vec::new();
        assert!(!read_messages(&[message(), message()].concat(), &mut changes));
        assert_eq!(changes.len(), 2);
        let change = &changes[0];
        assert_eq!((change.inode, change.generation, change.name.as_str()), (12, 99, "a.db"));
        assert!(change.created && change.deleted && !change.directory && change.thread == 4711);
        assert_eq!(change.parent, (1, [2_u32, 0].iter().flat_map(|word| word.to_ne_bytes()).collect()));
    }

    #[test]
    fn a_cut_message_is_none() {
        let whole = message();
        for length in 0..whole.len() {
            let mut changes = Vec::new();
            read_messages(&whole[..length], &mut changes);
            assert_eq!(changes, []);
        }
    }
}
