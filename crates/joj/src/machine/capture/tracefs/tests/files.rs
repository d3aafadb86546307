//! Goal: a number stands for one file after another, and never for two at once.
//! Method: files that nobody can be asked for.

use super::*;

#[test]
fn a_number_is_nobodys_between_two_files() {
    let file = FileKey { device: DeviceNumber(8), inode: 12, generation: 0 };
    let mut files = Files::default();
    assert!(!files.is_gone(file), "nobody said anything of it");
    files.identify(file, 0);
    assert!(!files.is_gone(file));
    files.ended(file);
    assert!(files.is_gone(file));
    files.created(file, false, 0);
    assert!(!files.is_gone(file), "another has it");
    files.identify(file, 0);
    files.ended(file);
    assert!(files.is_gone(file));
}

#[test]
fn an_inode_that_comes_back_after_its_last_name_went_is_another_file() {
    let file = FileKey { device: DeviceNumber(8), inode: 12, generation: 0 };
    let mut files = Files::default();
    files.known.insert((file.device, 12), Known { generation: 5, ..Known::default() });
    files.fetched(file);
    assert_eq!(files.identify(file, 0).generation, 5, "it was out of memory for a while");
    files.identify(file, 0).nameless = true;
    files.fetched(file);
    assert_ne!(files.identify(file, 0).generation, 5);
}
