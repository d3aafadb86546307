//! Extended attributes of files (xattr(7)), copied: POSIX ACLs are such attributes, too, and capabilities of programs.

use std::ffi::{OsStr, OsString};
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::fs::{
    XattrFlags, lgetxattr, lgetxattr_query, llistxattr, llistxattr_query, lremovexattr, lsetxattr,
};
use rustix::io::Errno;

/// Who besides its owner, its group and all others may use a file, and what new files in a directory get of that.
const ACCESS: &str = "system.posix_acl_access";
const DEFAULT: &str = "system.posix_acl_default";

/// What copies do not have of their originals.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct NotTaken {
    /// Files that lack an attribute at least.
    pub files: u64,
    /// An attribute, and the name of the first file, below the directory.
    pub first: Option<String>,
}

impl NotTaken {
    /// Notes what one file lacks.
    pub fn add(&mut self, names: &[OsString], file: &Path) {
        let Some(name) = names.first() else { return };
        let file = if file == Path::new("") { Path::new(".") } else { file };
        self.files += 1;
        self.first.get_or_insert_with(|| format!("{} of {}", name.display(), file.display()));
    }
}

/// Copies all attributes but ACLs, before the permissions are set: those may keep its owner from setting more. Gives the names of those
/// that the copy does not have.
pub fn copy(from: &Path, to: &Path) -> Vec<OsString> {
    let names = names(from).into_iter().filter(|name| name != ACCESS && name != DEFAULT);
    names.filter(|name| !is_set(name, from, to)).collect()
}

/// Copies the ACLs, after the permissions: setting those changes an ACL. Where the access ACL is not taken, the file's group gets no more
/// than its entry says, as the mode has the most that the ACL gives anybody.
/// # Errors
/// As chmod(2).
pub fn copy_acls(from: &Path, to: &Path) -> io::Result<Vec<OsString>> {
    let names = [ACCESS, DEFAULT].map(OsString::from).into_iter();
    let not_taken: Vec<OsString> = names.filter(|name| !is_set(name, from, to)).collect();
    if not_taken.iter().any(|name| name == ACCESS)
        && let Some(of_group) = value(from, ACCESS.as_ref()).ok().flatten().as_deref().and_then(group_entry)
    {
        let mode = fs::symlink_metadata(to)?.permissions().mode();
        fs::set_permissions(to, Permissions::from_mode(mode & !0o070 | mode & (of_group << 3)))?;
    }
    Ok(not_taken)
}

/// Whether a directory has an ACL, or that cannot be found out.
pub fn has_acl(directory: &Path) -> bool {
    !matches!(value(directory, ACCESS.as_ref()), Ok(None))
}

/// A directory without the ACLs that it got from the one above: files made in it would have them.
pub fn remove_acls(directory: &Path) {
    for name in [ACCESS, DEFAULT] {
        let _ = lremovexattr(directory, name);
    }
}

/// True where both have the same in the end.
fn is_set(name: &OsStr, from: &Path, to: &Path) -> bool {
    let Ok(wanted) = value(from, name) else { return false };
    let Some(wanted) = wanted else { return true };
    // A label of the system is there already where it is the same for both.
    lsetxattr(to, name, &wanted, XattrFlags::empty()).is_ok()
        || value(to, name).is_ok_and(|it| it == Some(wanted))
}

/// The attributes that this user sees; none where the filesystem has none.
fn names(file: &Path) -> Vec<OsString> {
    let all = sized(|| llistxattr_query(file), |list| llistxattr(file, list)).unwrap_or_default();
    let names = all.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    names.map(|name| OsStr::from_bytes(name).to_owned()).collect()
}

/// An attribute's value; `None` where the file or the filesystem has none of that name.
fn value(file: &Path, name: &OsStr) -> Result<Option<Vec<u8>>, Errno> {
    match sized(|| lgetxattr_query(file, name), |value| lgetxattr(file, name, value)) {
        Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(None),
        found => found.map(Some),
    }
}

/// What has a length that is asked for first. It may have become longer then.
fn sized(
    length: impl Fn() -> Result<usize, Errno>,
    read: impl Fn(&mut [u8]) -> Result<usize, Errno>,
) -> Result<Vec<u8>, Errno> {
    loop {
        let mut found = vec![0; length()?];
        if found.is_empty() {
            return Ok(found);
        }
        match read(&mut found) {
            Err(Errno::RANGE) => {}
            read => {
                found.truncate(read?);
                return Ok(found);
            }
        }
    }
}

/// What an access ACL gives the file's group: a number of its format, 2, then entries of a tag, bits and a number (acl_ea in Linux's
/// posix_acl_xattr.h). The mask bounds it.
fn group_entry(acl: &[u8]) -> Option<u32> {
    const GROUP: u16 = 4;
    const MASK: u16 = 16;
    let entries = acl.get(4..)?.chunks_exact(8);
    let entry = |tag: u16| {
        let is_it = |entry: &&[u8]| u16::from_le_bytes([entry[0], entry[1]]) == tag;
        let bits = entries.clone().find(is_it)?;
        Some(u32::from(u16::from_le_bytes([bits[2], bits[3]])) & 7)
    };
    Some(entry(GROUP)? & entry(MASK).unwrap_or(7))
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// `user::rw-`, `user:65534:r--`, `group::GROUP`, `mask::r--`, `other::---`.
    pub fn acl(group: u8) -> Vec<u8> {
        let entry = |tag: u8, bits: u8, of: u32| [[tag, 0, bits, 0], of.to_le_bytes()].concat();
        let entries = [
            entry(1, 6, u32::MAX),
            entry(2, 4, 65534),
            entry(4, group, u32::MAX),
            entry(16, 4, u32::MAX),
            entry(32, 0, u32::MAX),
        ];
        [vec![2, 0, 0, 0], entries.concat()].concat()
    }

    #[test]
    fn the_group_has_its_own_entry_within_the_mask() {
        assert_eq!([0, 4, 6].map(|group| group_entry(&acl(group))), [Some(0), Some(4), Some(4)]);
        assert_eq!(group_entry(&acl(6)[..28]), Some(6), "an ACL without a mask");
        assert_eq!([&[][..], &[2, 0, 0, 0]].map(group_entry), [None, None]);
    }
}
