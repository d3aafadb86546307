//! The eBPF programs: found in this file, fitted to the running kernel, loaded and attached.

use std::collections::HashSet;
use std::fs;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::{Mutex, PoisonError};

use libbpf_rs::{Link, MapCore, MapFlags, Object, ObjectBuilder, OpenObject, PrintLevel};

use crate::machine::capture::bpf::settings::{CompletionRoutines, ENDS, Settings};
use crate::machine::capture::error::BpfError;
use crate::machine::capture::selection::Selection;

/// libelf reads words of the object where they stand.
#[repr(C, align(8))]
pub(in crate::machine::capture) struct Aligned<T: ?Sized>(pub(in crate::machine::capture) T);

#[cfg(bpf_object)]
static OBJECT: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/trace.bpf.o")));
#[cfg(not(bpf_object))]
static OBJECT: &Aligned<[u8]> = &Aligned([]);

/// What libbpf said while it loaded: the verifier's reasons among it.
static COMPLAINTS: Mutex<String> = Mutex::new(String::new());
/// One load at a time: [`COMPLAINTS`] are the process's.
static LOADING: Mutex<()> = Mutex::new(());
/// Without these there is no trace; each of the others only adds to it.
const NEEDED: [&str; 5] = ["block_bio_queue", "block_rq_issue", "block_rq_complete", "sys_enter", "sys_exit"];

/// Functions of filesystems that have a tracepoint of the same name for the begin of a sync and none for its end: a program is on
/// their return.
const SYNC_ENDS: [(&str, &str); ENDS] =
    [("xfs_file_fsync", "xfs"), ("xfs_dir_fsync", "xfs"), ("btrfs_sync_file", "btrfs")];
/// How the names of those programs begin, behind `on_` (bpf/helpers.h).
const END_OF: &str = "end_of_";

/// Programs at work until this is dropped.
pub struct Attached {
    links: Vec<Link>,
    object: Object,
    notes: Vec<String>,
}

impl Attached {
    /// Loads and attaches everything that this kernel has tracepoints for.
    /// # Errors
    /// Why eBPF cannot be used here, and what would change it. Nothing is left attached.
    pub fn new(selection: &Selection) -> Result<Self, BpfError> {
        if OBJECT.0.is_empty() {
            let reason = option_env!("JOJ_NO_BPF").unwrap_or("without clang");
            return Err(BpfError::NotBuilt(reason));
        }
        let mut kernel = Described::read()?;
        let _alone = LOADING.lock().unwrap_or_else(PoisonError::into_inner);
        kernel.leave_out_refused_ends(selection);
        let (settings, object, links) = loop {
            let settings = kernel.settings(selection);
            let Refused { program, reason } = match attach(&settings, &kernel.programs, selection) {
                Ok((object, links)) => break (settings, object, links),
                Err(refused) => refused,
            };
            // A kernel whose structs changed under one program shall not lose all the others.
            if NEEDED.contains(&program.as_str()) || !kernel.programs.remove(&program) {
                return Err(reason);
            }
            if !program.starts_with(END_OF) {
                let what = format!("this kernel refuses the eBPF program for {program}");
                kernel.notes.push(format!("{what}: its events are missing"));
            }
        };
        let mut notes: Vec<String> = settings.note.iter().map(|note| (*note).to_owned()).collect();
        notes.append(&mut kernel.notes);
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        notes.extend(kernel.without_ends(&selection.kinds));
        notes.extend(kernel.without_overlay(&mounts).map(str::to_owned));
        Ok(Self { links, object, notes })
    }

    /// The ring buffer's map.
    /// # Errors
    /// The object has none: a fault of ours.
    pub fn events(&self) -> Result<impl MapCore + '_, BpfError> {
        map(&self.object, "events")
    }

    /// What this capture cannot see and others can, a sentence each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// No program runs any more; what was captured can still be read.
    pub fn detach(&mut self) {
        self.links.clear();
    }

    /// Events that were not handed up: no room, or a program that an interrupt met at work.
    pub fn lost(&self) -> u64 {
        lost(&self.object)
    }
}

/// What the programs of an object did not hand up: for their map `lost` there was no room, and some an interrupt met at work.
pub(in crate::machine::capture) fn lost(object: &Object) -> u64 {
    let no_room: u64 = map(object, "lost")
        .ok()
        .and_then(|map| map.lookup_percpu(&0_u32.to_ne_bytes(), MapFlags::ANY).ok().flatten())
        .map_or(0, |counts| {
            counts
                .iter()
                .filter_map(|count| count.first_chunk())
                .map(|count| u64::from_ne_bytes(*count))
                .sum()
        });
    let met: u64 = object
        .progs_mut()
        .filter(|program| program.autoload())
        .map(|program| misses(program.as_fd().as_raw_fd()))
        .sum();
    no_room + met
}

/// `recursion_misses` of a program, which the kernel shows since Linux 5.12.
fn misses(descriptor: i32) -> u64 {
    let text = fs::read_to_string(format!("/proc/self/fdinfo/{descriptor}")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("recursion_misses:"));
    line.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}

pub(in crate::machine::capture) fn map<'a>(
    object: &'a Object,
    name: &'static str,
) -> Result<libbpf_rs::Map<'a>, BpfError> {
    object.maps().find(|map| map.name() == name).ok_or(BpfError::NoMap(name))
}

/// Makes an object of bytes, without the program's own complaints on standard error; `rodata`: the end of the name of the map of
/// settings, and its bytes.
pub(in crate::machine::capture) fn open_with(
    bytes: &[u8],
    (name, settings): (&str, &[u8]),
) -> Result<OpenObject, BpfError> {
    libbpf_rs::set_print(Some((PrintLevel::Info, |_, text| {
        let mut complaints = COMPLAINTS.lock().unwrap_or_else(PoisonError::into_inner);
        // A verifier's log can have megabytes: its end has the reason.
        if complaints.len() > 1 << 20 {
            complaints.clear();
        }
        complaints.push_str(&text);
    })));
    let mut open = ObjectBuilder::default()
        .open_memory(bytes)
        .map_err(|error| refusal("read the eBPF object", &error))?;
    let mut map = open
        .maps_mut()
        .find(|map| map.name().to_string_lossy().ends_with(name))
        .ok_or(BpfError::NoSettings)?;
    map.set_initial_value(settings).map_err(|error| refusal("set up the eBPF programs", &error))?;
    Ok(open)
}

/// A program that this kernel does not take, and why; its name is empty where it is not one alone.
struct Refused {
    program: String,
    reason: BpfError,
}

impl From<BpfError> for Refused {
    fn from(reason: BpfError) -> Self {
        Self { program: String::new(), reason }
    }
}

/// Loads these programs, with [`LOADING`] locked.
fn load(settings: &Settings, programs: &HashSet<String>) -> Result<Object, Refused> {
    COMPLAINTS.lock().unwrap_or_else(PoisonError::into_inner).clear();
    open(settings, programs)?.load().map_err(|error| {
        let complaints = COMPLAINTS.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let program = refused_program(&complaints).unwrap_or_default().to_owned();
        Refused { program, reason: refusal("load the eBPF programs", &error) }
    })
}

/// Loads and attaches these programs, among them those that are needed.
fn attach(
    settings: &Settings,
    programs: &HashSet<String>,
    selection: &Selection,
) -> Result<(Object, Vec<Link>), Refused> {
    if let Some(name) = NEEDED.into_iter().find(|name| !programs.contains(*name)) {
        return Err(BpfError::NoTracepoint(name.to_owned()).into());
    }
    let object = load(settings, programs)?;
    let wanted = map(&object, "devices")?;
    for device in &selection.devices {
        let result = wanted.update(&device.0.to_ne_bytes(), &[1], MapFlags::ANY);
        result.map_err(|error| BpfError::TooManyDevices(error.to_string()))?;
    }
    let mut links = Vec::new();
    for program in object.progs_mut().filter(|program| program.autoload()) {
        let link = program.attach().map_err(|error| Refused {
            program: own_name(&program.name().to_string_lossy()).to_owned(),
            reason: refusal("attach the eBPF programs", &error),
        });
        links.push(link?);
    }
    Ok((object, links))
}

/// `on_NAME`: a tracepoint's name, or [`END_OF`] and a function's.
fn own_name(program: &str) -> &str {
    program.strip_prefix("on_").unwrap_or(program)
}

fn open(settings: &Settings, programs: &HashSet<String>) -> Result<OpenObject, BpfError> {
    let mut open = open_with(&OBJECT.0, (".rodata.settings", &settings.bytes))?;
    for mut program in open.progs_mut() {
        let is_wanted = programs.contains(own_name(&program.name().to_string_lossy()));
        program.set_autoload(is_wanted);
    }
    Ok(open)
}

/// What kernel and modules describe to eBPF.
#[derive(Default)]
struct Described {
    /// Programs that can be attached: names of tracepoints, and [`END_OF`] with names of functions.
    programs: HashSet<String>,
    /// What is missing, a sentence each.
    notes: Vec<String>,
    /// The function with which programs read a field by one instruction (Linux 6.2) instead of a call.
    can_cast: bool,
    /// How a file of overlayfs leads to the one below.
    knows_overlay: bool,
    routines: CompletionRoutines,
}

impl Described {
    fn read() -> Result<Self, BpfError> {
        let directory = fs::read_dir("/sys/kernel/btf").map_err(|_| BpfError::NoTypes)?;
        let mut described = Self { routines: CompletionRoutines::of_this_kernel(), ..Self::default() };
        for entry in directory.flatten() {
            let bytes = fs::read(entry.path()).unwrap_or_default();
            for text in bytes.split(|byte| *byte == 0) {
                if let Some(name) = text.strip_prefix(b"btf_trace_") {
                    described.programs.insert(String::from_utf8_lossy(name).into_owned());
                }
                if let Some((name, _)) = SYNC_ENDS.iter().find(|(name, _)| name.as_bytes() == text) {
                    described.programs.insert(format!("{END_OF}{name}"));
                }
                described.knows_overlay |= text == b"__upperdentry";
                described.can_cast |= text == b"bpf_rdonly_cast";
            }
        }
        Ok(described)
    }

    fn settings(&self, selection: &Selection) -> Settings {
        Settings::new(selection, &self.routines, self.can_cast, self.sync_ends())
    }

    /// Takes away the programs on functions that the kernel refuses. Some kernels refuse all of them, and each refusal among the other
    /// programs costs a load of those before it.
    fn leave_out_refused_ends(&mut self, selection: &Selection) {
        loop {
            let ends: HashSet<String> =
                self.programs.iter().filter(|name| name.starts_with(END_OF)).cloned().collect();
            let Err(Refused { program, .. }) = load(&self.settings(selection), &ends) else { return };
            if ends.is_empty() || !self.programs.remove(&program) {
                return;
            }
        }
    }

    /// Where the end of a sync is seen.
    fn sync_ends(&self) -> [bool; ENDS] {
        SYNC_ENDS.map(|(name, _)| self.programs.contains(&format!("{END_OF}{name}")))
    }

    /// What is said where files of overlayfs do not lead to those below.
    fn without_overlay(&self, mounts: &str) -> Option<&'static str> {
        (!self.knows_overlay && is_mounted("overlay", mounts)).then_some(
            "this kernel does not describe overlayfs: calls and locks of programs that use files through an overlay are not seen, \
             what they write is",
        )
    }

    /// What is said where sync calls are told without their end; `kinds`: of the filesystems that are captured.
    fn without_ends(&self, kinds: &[String]) -> Option<String> {
        let is_told = |name: &str| self.programs.contains(name);
        let has_end = |name: &str| self.programs.contains(&format!("{END_OF}{name}"));
        let is_lacking = |(name, kind): &&(&str, &'static str)| {
            is_told(name) && !has_end(name) && kinds.iter().any(|one| one == kind)
        };
        let mut lacking: Vec<&str> = SYNC_ENDS.iter().filter(is_lacking).map(|(_, kind)| *kind).collect();
        lacking.dedup();
        (!lacking.is_empty()).then(|| {
            format!(
                "this kernel does not show the end of a sync by io_uring, AIO or a kernel thread on {}: these calls (`file sync`) are \
                 counted, without a duration and without what was written for them",
                lacking.join(" and ")
            )
        })
    }
}

/// True where a filesystem of that kind is in /proc/self/mounts.
fn is_mounted(kind: &str, mounts: &str) -> bool {
    mounts.lines().any(|line| line.split_whitespace().nth(2) == Some(kind))
}

/// `libbpf: prog 'on_NAME': failed to load: -EINVAL`: the tracepoint's name.
fn refused_program(complaints: &str) -> Option<&str> {
    let (before, _) = complaints.rsplit_once("': failed to load")?;
    before.rsplit_once("prog 'on_").map(|(_, name)| name)
}

/// Says what failed, and what the most likely reason asks for.
pub(in crate::machine::capture) fn refusal(what: &'static str, error: &libbpf_rs::Error) -> BpfError {
    if let Ok(state) = fs::read_to_string("/sys/kernel/security/lockdown")
        && state.contains("[confidentiality]")
    {
        return BpfError::LockedDown(what);
    }
    if error.kind() == libbpf_rs::ErrorKind::PermissionDenied && !may_load() {
        return BpfError::NotPermitted { what, capabilities: CAPABILITIES };
    }
    let mut complaints = COMPLAINTS.lock().unwrap_or_else(PoisonError::into_inner);
    let reason = std::mem::take(&mut *complaints);
    let lines: Vec<&str> = reason.lines().filter(|line| !line.trim().is_empty()).collect();
    let complaints = lines[lines.len().saturating_sub(12)..].join("\n  ");
    BpfError::Refused { what, error: error.to_string(), complaints }
}

/// What a capture as root's needs: for the programs, for addresses in /proc/kallsyms, for what filesystems say of themselves, and to
/// read their layouts from the disks.
const CAPABILITIES: &str = "cap_bpf,cap_perfmon,cap_syslog,cap_sys_admin,cap_dac_read_search";

/// True with CAP_SYS_ADMIN (21), or CAP_PERFMON (38) and CAP_BPF (39).
fn may_load() -> bool {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let granted = line.and_then(|word| u64::from_str_radix(word.trim(), 16).ok()).unwrap_or(0);
    granted & 1 << 21 != 0 || granted & 3 << 38 == 3 << 38
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rights are a thread's own: this one gives its up and ends.
    #[test]
    fn without_rights_the_reason_says_what_to_grant() {
        // libbpf asks once a process what the kernel can do, and remembers a refusal for all threads: it asks with rights first.
        drop(Attached::new(&Selection::default()));
        let reason = std::thread::spawn(|| {
            let none = rustix::thread::CapabilitySet::empty();
            let sets = rustix::thread::CapabilitySets { effective: none, permitted: none, inheritable: none };
            rustix::thread::set_capabilities(None, sets).expect("giving up rights needs none");
            Attached::new(&Selection::default()).err()
        });
        let reason =
            reason.join().expect("the thread").expect("nobody without rights may load eBPF programs");
        let reason = reason.to_string();
        let known = ["cap_bpf", "no eBPF", "/sys/kernel/btf", "locked down"];
        assert!(known.iter().any(|words| reason.contains(words)), "{reason}");
    }

    #[test]
    fn the_refused_program_is_found_among_complaints() {
        let said = "libbpf: prog 'on_a': BPF program load failed: EINVAL\nlibbpf: prog 'on_xfs_iunlink': failed to load: -22\n\
                    libbpf: failed to load object 'x'\n";
        assert_eq!(refused_program(said), Some("xfs_iunlink"));
        assert_eq!(refused_program("libbpf: failed to load object 'x'"), None);
    }

    #[test]
    fn where_a_sync_or_its_end_is_not_seen_a_note_says_so() {
        let kinds = ["xfs", "btrfs"].map(str::to_owned);
        let programs = ["xfs_file_fsync", "xfs_dir_fsync", "btrfs_sync_file", "end_of_btrfs_sync_file"];
        let programs = programs.map(str::to_owned).into();
        let mut kernel = Described { programs, can_cast: true, ..Described::default() };
        assert_eq!(kernel.sync_ends(), [false, false, true]);
        let note = kernel.without_ends(&kinds).expect("XFS shows no end");
        assert_eq!(kernel.without_overlay("/dev/a / xfs rw 0 0\n"), None, "nobody uses one there");
        assert!(kernel.without_overlay("overlay /c overlay rw 0 0\n").is_some());
        assert_eq!(kernel.without_ends(&["ext4".to_owned()]), None, "nobody asks for XFS there");
        assert!(note.contains(" on xfs:") && note.contains("without a duration"), "{note}");
        kernel.programs.extend(["end_of_xfs_file_fsync", "end_of_xfs_dir_fsync"].map(str::to_owned));
        assert_eq!(kernel.without_ends(&kinds), None);
    }
}
