//! What was open before: threads, directories and descriptors of a process, by /proc.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use joj_analysis::recording::flags::{O_CLOEXEC, S_IFREG};
use joj_analysis::recording::paths;
use joj_analysis::recording::system_calls::captured::capture::{CallCapture, HeldDescriptor};
use joj_analysis::recording::system_calls::captured::{FirstPageHead, log_page_bytes};

use super::numbers::open_flags;

/// A process's threads, its own number first.
pub fn threads(process: u32) -> io::Result<Vec<u32>> {
    let mut threads: Vec<u32> = fs::read_dir(format!("/proc/{process}/task"))?
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    threads.sort_by_key(|thread| (*thread != process, *thread));
    Ok(threads)
}

/// A process and its descendants.
pub fn with_descendants(process: u32) -> Vec<u32> {
    let mut found = vec![process];
    let mut at = 0;
    while let Some(&parent) = found.get(at) {
        for thread in threads(parent).unwrap_or_default() {
            let path = format!("/proc/{parent}/task/{thread}/children");
            let children = fs::read_to_string(path).unwrap_or_default();
            found.extend(children.split_whitespace().filter_map(|word| word.parse::<u32>().ok()));
        }
        at += 1;
    }
    found
}

/// The directory of a process; `None` where that has no name any more.
pub fn directory(process: &str) -> Option<String> {
    let path = format!("/proc/{process}/cwd");
    let link = fs::read_link(&path).unwrap_or_else(|_| PathBuf::from("/"));
    let is_gone = fs::metadata(path).is_ok_and(|status| nameless_below(process, &link, &status).is_some());
    (!is_gone).then(|| text_of(&link))
}

/// What a process takes for `/` (chroot), as joj calls it; `None` where joj cannot see it.
pub fn root(process: &str) -> Option<String> {
    let path = format!("/proc/{process}/root");
    let (link, root) = (fs::read_link(&path).ok()?, fs::metadata(path).ok()?);
    let seen = fs::metadata(&link).ok().filter(|_| link.has_root())?;
    ((seen.dev(), seen.ino()) == (root.dev(), root.ino())).then(|| text_of(&link))
}

/// Where the kernel's path of what is open is no name of it any more: a directory on that path which is there. Something may be called
/// `x (deleted)` as well.
fn nameless_below(process: &str, path: &Path, open: &Metadata) -> Option<PathBuf> {
    let name =
        path.as_os_str().as_bytes().strip_suffix(b" (deleted)").filter(|name| name.starts_with(b"/"))?;
    let found = |path: &Path| {
        let mut seen = PathBuf::from(format!("/proc/{process}/root")).into_os_string();
        seen.push(path);
        fs::symlink_metadata(seen).ok()
    };
    let is_it = |now: Metadata| (now.dev(), now.ino()) == (open.dev(), open.ino());
    if open.nlink() > 0 && found(path).is_some_and(is_it) {
        return None;
    }
    let above = Path::new(OsStr::from_bytes(name)).ancestors().skip(1);
    let there = |path: &&Path| found(path).is_some_and(|now| now.is_dir());
    Some(above.filter(|path| path.has_root()).find(there).unwrap_or(Path::new("/")).to_owned())
}

/// Tells a capture what processes that run have open; descriptors that share a description share it in the recording.
pub fn tell_running(capture: &mut CallCapture, processes: &[u32]) {
    let mut known = KnownDescriptions::default();
    for &process in processes {
        let root = root(&process.to_string()).filter(|root| root != "/");
        for (thread, number) in threads(process).unwrap_or_default().into_iter().zip(0_u32..) {
            let sibling = (number > 0).then_some(process);
            capture.thread(thread, sibling, directory(&process.to_string()).as_deref());
            if let Some(root) = root.as_ref().filter(|_| sibling.is_none()) {
                capture.root(thread, root);
            }
        }
        for (mut held, file) in descriptors(&process.to_string()) {
            held.same_as = known.same_as(process, &held, file);
            capture.held(process, &held);
        }
    }
}

/// Descriptors that were told, by file.
#[derive(Debug, Default)]
struct KnownDescriptions(HashMap<FileIdentity, Vec<KnownDescriptor>>);

/// One of them.
#[derive(Debug, Clone, Copy)]
struct KnownDescriptor {
    process: u32,
    number: i32,
    position: u64,
    /// O_ flags, but for that of the descriptor alone.
    flags: u32,
}

impl KnownDescriptions {
    /// One that was told and is of the same description.
    fn same_as(&mut self, process: u32, held: &HeldDescriptor, file: FileIdentity) -> Option<(u32, i32)> {
        let (number, position) = (held.number, held.position);
        let this = KnownDescriptor { process, number, position, flags: held.flags & !O_CLOEXEC };
        let alike = self.0.entry(file).or_default();
        let found = alike.iter().copied().find(|other| is_one_description(*other, this));
        alike.push(this);
        found.map(|other| (other.process, other.number))
    }
}

/// True where two descriptors of a file are of one open file description. Where the kernel does not tell: those that stand at the same
/// place. A program that runs moves it between two looks.
fn is_one_description(one: KnownDescriptor, other: KnownDescriptor) -> bool {
    const KCMP_FILE: libc::c_int = 0;
    // SAFETY: takes numbers only.
    let result = unsafe {
        libc::syscall(libc::SYS_kcmp, one.process, other.process, KCMP_FILE, one.number, other.number)
    };
    // 1 and 2 say which comes first.
    result == 0 || result < 0 && (one.position, one.flags) == (other.position, other.flags)
}

/// Tells a capture what a command has open that this process starts: what this one has, but for what execve closes.
pub fn tell_command(capture: &mut CallCapture, process: u32, inherited: &Inherited) {
    capture.thread(process, None, directory("self").as_deref());
    let (own, mut known) = (std::process::id(), KnownDescriptions::default());
    for (held, file) in &inherited.0 {
        let same_as = known.same_as(own, held, *file).map(|(_, number)| (process, number));
        capture.held(process, &HeldDescriptor { same_as, ..held.clone() });
    }
}

/// What a command inherits from this process.
#[derive(Debug, Default)]
pub struct Inherited(Vec<(HeldDescriptor, FileIdentity)>);

/// What a command would inherit now.
pub fn inherited() -> Inherited {
    let own = descriptors("self").into_iter();
    Inherited(own.filter(|(held, _)| held.flags & O_CLOEXEC == 0).collect())
}

/// SQLite's logs that processes have open: where they are, inode and device.
#[cfg(feature = "bpf")]
pub fn logs_of(processes: &[u32]) -> Vec<(PathBuf, (u64, u64))> {
    let all = processes.iter().flat_map(|process| {
        let held = descriptors(&process.to_string()).into_iter();
        held.filter(|(held, _)| held.known.ends_with("-wal")).map(move |(held, file)| {
            (PathBuf::from(format!("/proc/{process}/fd/{}", held.number)), (file.1, file.0))
        })
    });
    all.collect()
}

/// Device and inode.
type FileIdentity = (u64, u64);

fn descriptors(process: &str) -> Vec<(HeldDescriptor, FileIdentity)> {
    let Ok(entries) = fs::read_dir(format!("/proc/{process}/fd")) else { return Vec::new() };
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let mut found: Vec<_> = numbers.filter_map(|number| descriptor(process, number)).collect();
    found.sort_by_key(|(held, _)| held.number);
    found
}

fn descriptor(process: &str, number: i32) -> Option<(HeldDescriptor, FileIdentity)> {
    let path = format!("/proc/{process}/fd/{number}");
    let link = fs::read_link(&path).ok()?;
    let status = fs::metadata(&path).ok()?;
    let nameless_below = nameless_below(process, &link, &status).map(|directory| text_of(&directory));
    let told = fs::read_to_string(format!("/proc/{process}/fdinfo/{number}")).unwrap_or_default();
    let word = |name: &str| told.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let position = word("pos:").and_then(|word| word.parse().ok()).unwrap_or(0);
    let flags = word("flags:").and_then(|word| u64::from_str_radix(word, 8).ok()).unwrap_or(0);
    let flags = u32::try_from(open_flags(flags)).unwrap_or(0);
    let is_regular = status.mode() & 0o170_000 == S_IFREG;
    let first_page = if is_regular {
        first_bytes(Path::new(&path)).and_then(|head| FirstPageHead::of(&head))
    } else {
        None
    };
    let held = HeldDescriptor {
        number,
        known: text_of(&link),
        nameless_below,
        mode: status.mode(),
        flags,
        position,
        bytes: status.len(),
        first_page,
        same_as: None,
    };
    Some((held, (status.dev(), status.ino())))
}

/// Bytes of a page of a SQLite log, by its own header; `None` where it is none.
pub fn page_bytes_of_log(path: &Path) -> Option<u32> {
    log_page_bytes(&first_bytes(path)?)
}

/// The first bytes of a file, of which only the numbers of SQLite's headers are used.
fn first_bytes(path: &Path) -> Option<[u8; FirstPageHead::BYTES]> {
    let mut head = [0; FirstPageHead::BYTES];
    let read = File::open(path).ok()?.read_at(&mut head, 0).ok()?;
    (read >= 32).then_some(head)
}

fn text_of(path: &Path) -> String {
    paths::text_of(path.as_os_str().as_bytes()).into_owned()
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn this_process_has_itself_its_threads_and_its_descriptors() {
        let process = std::process::id();
        assert_eq!(threads(process).expect("/proc")[0], process);
        assert_eq!(with_descendants(process)[0], process);
        assert!(directory("self").is_some_and(|directory| directory.starts_with('/')));
        let path = std::env::temp_dir().join(format!("joj-held-{process}"));
        fs::write(&path, "12345").expect("a file");
        let file = File::open(&path).expect("it");
        let all = descriptors("self");
        let (held, _) = all.iter().find(|(held, _)| held.known.contains("joj-held-")).expect("it is open");
        assert_eq!((held.bytes, held.position, held.first_page), (5, 0, None));
        assert!(
            held.flags & O_CLOEXEC != 0 && inherited().0.iter().all(|(one, _)| one.number != held.number)
        );
        let (own, copy) = (file.as_raw_fd(), file.try_clone().expect("a copy"));
        let other = File::open(&path).expect("it again");
        let of = |number, position| KnownDescriptor { process, number, position, flags: 0 };
        // It was written through meanwhile.
        let is_one = |number: i32| is_one_description(of(own, 0), of(number, 5));
        assert_eq!([is_one(copy.as_raw_fd()), is_one(other.as_raw_fd())], [true, false]);
        drop(file);
        fs::remove_file(&path).expect("it goes");
    }

    #[test]
    fn what_is_called_so_is_told_from_what_is_deleted() {
        let directory = std::env::temp_dir().join(format!("joj-nameless-{}", std::process::id()));
        let below = directory.join("below");
        fs::create_dir_all(&below).expect("a directory");
        let told = |file: &File| {
            let (held, _) = descriptor("self", file.as_raw_fd()).expect("it is open");
            held.nameless_below.map(PathBuf::from)
        };
        let real = File::create(below.join("x (deleted)")).expect("a file");
        let [gone, other] = ["x", "y"].map(|name| File::create(below.join(name)).expect("a file"));
        fs::hard_link(below.join("y"), below.join("z")).expect("another name");
        for name in ["x", "y"] {
            fs::remove_file(below.join(name)).expect("it goes");
        }
        assert_eq!(
            [told(&real), told(&gone), told(&other)],
            [None, Some(below.clone()), Some(below.clone())]
        );
        fs::remove_dir_all(&below).expect("it goes");
        assert_eq!(told(&real), Some(directory.clone()), "below what is there");
        fs::remove_dir_all(&directory).expect("it goes");
    }
}
