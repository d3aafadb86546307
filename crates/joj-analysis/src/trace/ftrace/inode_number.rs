//! Inode numbers of Btrfs on their way through a capture: each subvolume counts its own, and files of two have the same.
//!
//! ```text
//! bit 63: of a subvolume | 24 bits: its tree, 0 where a record does not say which | 39 bits: the inode's own number
//! ```
//!
//! Files outside of subvolumes, and of other filesystems, have their number alone (no filesystem gives one with the highest bit).

use crate::trace::event::FileKey;

/// BTRFS_FIRST_FREE_OBJECTID and the last: trees between are subvolumes and snapshots (linux/btrfs_tree.h).
const TREES: std::ops::Range<u64> = 256..1 << TREE_BITS;
const TREE_BITS: u32 = 24;
const INODE_BITS: u32 = 63 - TREE_BITS;
const MARK: u64 = 1 << 63;
/// As in `bpf/files.h`, so that both ways of capturing tell files apart alike.
const MIXED: u32 = 0x9e37_79b1;

/// The number of a file of this tree. `None` for one that has no room: of the 16,777,216th subvolume, say.
pub fn numbered(tree: u64, inode: u64) -> Option<u64> {
    // The tree of files outside of subvolumes is 5. Others than files' are below 256, or negative.
    if tree < TREES.start || tree >> 63 != 0 {
        return Some(inode);
    }
    (TREES.contains(&tree) && inode >> INODE_BITS == 0).then_some(MARK | tree << INODE_BITS | inode)
}

/// The number of a file of which a record does not say the subvolume, if it is of one.
pub fn of_some_tree(inode: u64) -> u64 {
    inode | MARK
}

/// True for such a number.
pub fn is_of_some_tree(number: u64) -> bool {
    number & MARK != 0 && tree(number) == 0
}

/// The subvolume's tree; 0 where the file is of none, or of one that is not known.
pub fn tree(number: u64) -> u64 {
    if number & MARK == 0 { 0 } else { number << 1 >> (INODE_BITS + 1) }
}

/// The number as stat(2) says it.
pub fn own(number: u64) -> u64 {
    if number & MARK == 0 { number } else { number & ((1 << INODE_BITS) - 1) }
}

/// The file as it is handed on: with the inode's own number, and the subvolume's mixed into the generation.
#[must_use]
pub fn handed_on(file: FileKey) -> FileKey {
    if file.inode & MARK == 0 {
        return file;
    }
    let mixed = u32::try_from(tree(file.inode)).unwrap_or(0).wrapping_mul(MIXED);
    FileKey { inode: own(file.inode), generation: file.generation.wrapping_add(mixed), ..file }
}

/// Whether two numbers may be one file's.
pub fn may_be_one(one: u64, other: u64) -> bool {
    one == other || (own(one) == own(other) && (is_of_some_tree(one) || is_of_some_tree(other)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_two_subvolumes_have_two_numbers() {
        let numbers = [5, 256, 257, (1 << 24) - 1].map(|tree| numbered(tree, 257).unwrap());
        for (place, number) in numbers.iter().enumerate() {
            assert_eq!(own(*number), 257);
            assert!(!numbers[..place].contains(number) && !is_of_some_tree(*number));
            assert!(may_be_one(*number, of_some_tree(257)) && !may_be_one(*number, of_some_tree(258)));
        }
        assert_eq!(numbers.map(tree), [0, 256, 257, (1 << 24) - 1]);
        assert!(!may_be_one(numbers[1], numbers[2]));
        assert_eq!(numbered(1 << 24, 257), None, "another's number would be worse than none");
        assert_eq!(numbered(256, 1 << 39), None);
        assert_eq!(numbered(9_u64.wrapping_neg(), 257), Some(257), "the tree of relocations");
    }

    #[test]
    fn what_is_handed_on_has_the_inodes_own_number() {
        let plain = FileKey { inode: 1 << 62, generation: 4, ..FileKey::NONE };
        assert_eq!(handed_on(plain), plain);
        let of =
            |tree| handed_on(FileKey { inode: numbered(tree, 300).unwrap(), generation: 4, ..FileKey::NONE });
        assert_eq!((of(256).inode, of(257).inode), (300, 300));
        assert_ne!(of(256).generation, of(257).generation);
        assert_eq!(
            handed_on(FileKey { inode: of_some_tree(300), generation: 4, ..FileKey::NONE }).generation,
            4
        );
    }
}
