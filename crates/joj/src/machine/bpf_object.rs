//! The eBPF programs: found in this file, fitted to the running kernel, loaded and attached.

use std::collections::HashSet;
use std::fs;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::{Mutex, PoisonError};

use libbpf_rs::{Link, MapCore, MapFlags, Object, ObjectBuilder, OpenObject, PrintLevel};

use super::bpf_settings;
use super::capture_selection::Selection;

/// libelf reads words of the object where they stand.
#[repr(C, align(8))]
struct Aligned<T: ?Sized>(T);

#[cfg(bpf_object)]
static OBJECT: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/trace.bpf.o")));
#[cfg(not(bpf_object))]
static OBJECT: &Aligned<[u8]> = &Aligned([]);

/// What libbpf said while it loaded: the verifier's reasons among it.
static COMPLAINTS: Mutex<String> = Mutex::new(String::new());
/// Without these there is no trace; each of the others only adds to it.
const NEEDED: [&str; 5] = ["block_bio_queue", "block_rq_issue", "block_rq_complete", "sys_enter", "sys_exit"];

/// Programs at work until this is dropped.
pub struct Attached {
    links: Vec<Link>,
    object: Object,
}

impl Attached {
    /// Loads and attaches everything that this kernel has tracepoints for.
    /// # Errors
    /// Why eBPF cannot be used here, and what would change it. Nothing is left attached.
    pub fn new(selection: &Selection) -> Result<Self, String> {
        if OBJECT.0.is_empty() {
            let reason = option_env!("JOJ_NO_BPF").unwrap_or("without clang");
            return Err(format!("this joj was built {reason}: no eBPF"));
        }
        let open = open(selection, &Described::read()?)?;
        let object = open.load().map_err(|error| refusal("load the eBPF programs", &error))?;
        let wanted = map(&object, "devices")?;
        for device in &selection.devices {
            let result = wanted.update(&device.0.to_ne_bytes(), &[1], MapFlags::ANY);
            result.map_err(|error| format!("cannot capture more than 1024 devices at once: {error}"))?;
        }
        let mut links = Vec::new();
        for program in object.progs_mut().filter(|program| program.autoload()) {
            links.push(program.attach().map_err(|error| refusal("attach the eBPF programs", &error))?);
        }
        Ok(Self { links, object })
    }

    /// The ring buffer's map.
    /// # Errors
    /// The object has none: a fault of ours.
    pub fn events(&self) -> Result<impl MapCore + '_, String> {
        map(&self.object, "events")
    }

    /// No program runs any more; what was captured can still be read.
    pub fn detach(&mut self) {
        self.links.clear();
    }

    /// Events that were not handed up: no room, or a program that an interrupt met at work.
    pub fn lost(&self) -> u64 {
        let no_room: u64 = map(&self.object, "lost")
            .ok()
            .and_then(|map| map.lookup_percpu(&0_u32.to_ne_bytes(), MapFlags::ANY).ok().flatten())
            .map_or(0, |counts| {
                counts
                    .iter()
                    .filter_map(|count| count.first_chunk())
                    .map(|count| u64::from_ne_bytes(*count))
                    .sum()
            });
        let met: u64 = self
            .object
            .progs_mut()
            .filter(|program| program.autoload())
            .map(|program| misses(program.as_fd().as_raw_fd()))
            .sum();
        no_room + met
    }
}

/// `recursion_misses` of a program, which the kernel shows since Linux 5.12.
fn misses(descriptor: i32) -> u64 {
    let text = fs::read_to_string(format!("/proc/self/fdinfo/{descriptor}")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("recursion_misses:"));
    line.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}

fn map<'a>(object: &'a Object, name: &str) -> Result<libbpf_rs::Map<'a>, String> {
    object.maps().find(|map| map.name() == name).ok_or_else(|| format!("the eBPF object has no map `{name}`"))
}

fn open(selection: &Selection, kernel: &Described) -> Result<OpenObject, String> {
    libbpf_rs::set_print(Some((PrintLevel::Info, |_, text| {
        let mut complaints = COMPLAINTS.lock().unwrap_or_else(PoisonError::into_inner);
        // A verifier's log can have megabytes: its end has the reason.
        if complaints.len() > 1 << 20 {
            complaints.clear();
        }
        complaints.push_str(&text);
    })));
    let mut open = ObjectBuilder::default()
        .open_memory(&OBJECT.0)
        .map_err(|error| refusal("read the eBPF object", &error))?;
    for mut program in open.progs_mut() {
        let section = program.section().to_string_lossy().into_owned();
        let tracepoint = section.trim_start_matches("tp_btf/");
        let is_there = kernel.tracepoints.contains(tracepoint);
        if !is_there && NEEDED.contains(&tracepoint) {
            return Err(format!(
                "this kernel has no tracepoint {tracepoint} (CONFIG_BLK_DEV_IO_TRACE or CONFIG_FTRACE_SYSCALLS is off)"
            ));
        }
        program.set_autoload(is_there);
    }
    let mut settings = open
        .maps_mut()
        .find(|map| map.name().to_string_lossy().ends_with(".rodata.settings"))
        .ok_or("the eBPF object has no settings")?;
    settings
        .set_initial_value(&bpf_settings::bytes(selection, kernel.can_cast))
        .map_err(|error| refusal("set up the eBPF programs", &error))?;
    Ok(open)
}

/// What kernel and modules describe to eBPF.
struct Described {
    tracepoints: HashSet<String>,
    /// The function with which programs read a field by one instruction (Linux 6.2) instead of a call.
    can_cast: bool,
}

impl Described {
    fn read() -> Result<Self, String> {
        let directory = fs::read_dir("/sys/kernel/btf").map_err(|_| {
            "this kernel describes its types to nobody: /sys/kernel/btf is missing (CONFIG_DEBUG_INFO_BTF is off)"
        })?;
        let mut described = Self { tracepoints: HashSet::new(), can_cast: false };
        for entry in directory.flatten() {
            let bytes = fs::read(entry.path()).unwrap_or_default();
            for text in bytes.split(|byte| *byte == 0) {
                if let Some(name) = text.strip_prefix(b"btf_trace_") {
                    described.tracepoints.insert(String::from_utf8_lossy(name).into_owned());
                }
                described.can_cast |= text == b"bpf_rdonly_cast";
            }
        }
        Ok(described)
    }
}

/// Says what failed, and what the most likely reason asks for.
fn refusal(what: &str, error: &libbpf_rs::Error) -> String {
    if let Ok(state) = fs::read_to_string("/sys/kernel/security/lockdown")
        && state.contains("[confidentiality]")
    {
        return format!(
            "cannot {what}: this kernel is locked down (confidentiality), which forbids eBPF to read its memory"
        );
    }
    if error.kind() == libbpf_rs::ErrorKind::PermissionDenied && !may_load() {
        return format!(
            "cannot {what}: run joj as root, or grant it cap_bpf, cap_perfmon and cap_syslog (`sudo setcap cap_bpf,cap_perfmon,cap_syslog+ep JOJ`)"
        );
    }
    let mut complaints = COMPLAINTS.lock().unwrap_or_else(PoisonError::into_inner);
    let reason = std::mem::take(&mut *complaints);
    let lines: Vec<&str> = reason.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = lines[lines.len().saturating_sub(12)..].join("\n  ");
    format!("cannot {what}: {error}\n  {last}")
}

/// True with CAP_SYS_ADMIN (21), or CAP_PERFMON (38) and CAP_BPF (39).
fn may_load() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let granted = line.and_then(|word| u64::from_str_radix(word.trim(), 16).ok()).unwrap_or(0);
    granted & 1 << 21 != 0 || granted & 3 << 38 == 3 << 38
}
