//! What a first process has to ask the kernel for: modules, mounts, power off.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use rustix::system::{RebootCommand, finit_module, reboot};

use crate::machine::qemu::error::GuestKernelError;

/// The filesystems that programs expect, where they expect them.
const MOUNTS: [(&str, &str); 5] = [
    ("proc", "/proc"),
    ("sysfs", "/sys"),
    ("devtmpfs", "/dev"),
    ("tracefs", "/sys/kernel/tracing"),
    ("tmpfs", "/tmp"),
];

/// As in linux/fs.h.
const FITHAW: libc::Ioctl = libc::_IOWR::<libc::c_int>('X' as u32, 120);
/// As in linux/loop.h.
const LOOP_CLR_FD: libc::Ioctl = 0x4C01;

/// Mounts what every program expects.
/// # Errors
/// As mount(2); the path stands before it.
pub fn mount_usual() -> Result<(), GuestKernelError> {
    for (kind, path) in MOUNTS {
        mount_at(kind, path, kind, MountFlags::empty(), "")?;
    }
    let shared = "/dev/shm";
    let terminals = "/dev/pts";
    for path in [shared, terminals] {
        fs::create_dir_all(path).map_err(|error| GuestKernelError::File { path: path.into(), error })?;
    }
    mount_at("devpts", terminals, "devpts", MountFlags::empty(), "ptmxmode=0666")?;
    mount_at("tmpfs", shared, "tmpfs", MountFlags::empty(), "")
}

/// Mounts the directory that QEMU shares as `tag`.
/// # Errors
/// As mount(2).
pub fn mount_share(tag: &str, path: &str) -> Result<(), GuestKernelError> {
    // 512 KiB a message instead of 8: a trace is written in a few of them.
    mount_at(tag, path, "9p", MountFlags::empty(), "trans=virtio,version=9p2000.L,msize=524288")
}

/// Mounts the files of the host, which QEMU offers as `tag`, to read only. What was read once stays in memory.
/// # Errors
/// As mount(2).
pub fn mount_host(tag: &str, path: &str) -> Result<(), GuestKernelError> {
    let options = "trans=virtio,version=9p2000.L,msize=524288,cache=loose";
    mount_at(tag, path, "9p", MountFlags::RDONLY, options)
}

/// Mounts memory.
/// # Errors
/// As mount(2).
pub fn mount_memory(path: &str) -> Result<(), GuestKernelError> {
    mount_at("tmpfs", path, "tmpfs", MountFlags::empty(), "mode=1777")
}

/// Shows the files below `lower` in `path`; what changes goes to `upper`, which needs the empty directory `work` beside it.
/// # Errors
/// As mount(2).
pub fn mount_overlay(lower: &str, upper: &str, work: &str, path: &str) -> Result<(), GuestKernelError> {
    let options = format!("lowerdir={lower},upperdir={upper},workdir={work}");
    mount_at("overlay", path, "overlay", MountFlags::empty(), &options)
}

/// Lets what is seen at `path` be changed there, or no more. What the kernel remembers of its names stays: a filesystem that is mounted
/// anew as a whole forgets them.
/// # Errors
/// As mount(2).
pub fn let_change(path: &str, may: bool) -> Result<(), GuestKernelError> {
    let flags = if may { MountFlags::BIND } else { MountFlags::BIND | MountFlags::RDONLY };
    rustix::mount::mount_remount(path, flags, c"").map_err(|error| GuestKernelError::Mount {
        source_name: path.to_owned(),
        path: path.to_owned(),
        kind: "what it was, with other rights".to_owned(),
        error,
    })
}

/// Shows a directory, with all that is mounted below it, in another place.
/// # Errors
/// As mount(2).
pub fn mount_again(from: &str, path: &str) -> Result<(), GuestKernelError> {
    rustix::mount::mount_bind_recursive(from, path).map_err(|error| GuestKernelError::Mount {
        source_name: from.to_owned(),
        path: path.to_owned(),
        kind: "the same".to_owned(),
        error,
    })
}

/// Has `command` run with `root` for its root, in the directory `work` below it.
pub fn run_below(command: &mut Command, root: &str, work: &str) {
    let (root, work) = (root.to_owned(), work.to_owned());
    // SAFETY: between fork and exec only chroot and chdir run, which are async-signal-safe, with strings made before the fork.
    unsafe {
        command.pre_exec(move || {
            rustix::process::chroot(root.as_str())?;
            Ok(rustix::process::chdir(work.as_str())?)
        });
    }
}

/// Mounts a filesystem without updates of access times.
/// # Errors
/// As mount(2).
pub fn mount_volume(device: &str, path: &str, kind: &str, options: &str) -> Result<(), GuestKernelError> {
    mount_at(device, path, kind, MountFlags::NOATIME, options)
}

fn mount_at(
    source: &str,
    path: &str,
    kind: &str,
    flags: MountFlags,
    options: &str,
) -> Result<(), GuestKernelError> {
    let options = CString::new(options)?;
    mount(source, path, kind, flags, options.as_c_str()).map_err(|error| GuestKernelError::Mount {
        source_name: source.to_owned(),
        path: path.to_owned(),
        kind: kind.to_owned(),
        error,
    })
}

/// Unmounts.
/// # Errors
/// As umount(2).
pub fn unmount_volume(path: impl AsRef<Path>) -> Result<(), GuestKernelError> {
    let path = path.as_ref();
    unmount(path, UnmountFlags::NOFOLLOW)
        .map_err(|error| GuestKernelError::Unmount { path: path.to_owned(), error })
}

/// Lets a filesystem be written to again that someone has frozen (fsfreeze(8)); one that is not frozen is no error.
/// # Errors
/// As open(2).
pub fn thaw(path: &Path) -> io::Result<()> {
    let flags = libc::O_DIRECTORY | libc::O_NONBLOCK;
    let directory = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    // SAFETY: the descriptor is open, and this request takes no argument.
    unsafe { libc::ioctl(directory.as_raw_fd(), FITHAW) };
    Ok(())
}

/// Lets all filesystems be written to again, those too that no path leads to. The kernel does it a moment later (sysrq.rst).
pub fn thaw_all() {
    // Without CONFIG_MAGIC_SYSRQ there is no such file.
    let _ = fs::write("/proc/sysrq-trigger", "j");
}

/// Swaps no more to the file or device at `path`.
/// # Errors
/// As swapoff(2).
pub fn swap_off(path: &Path) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: the path ends with a zero byte, and the kernel only reads it.
    if unsafe { libc::swapoff(path.as_ptr()) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Takes the file from a loop device, at once or when nobody uses the device any more (loop(4)).
/// # Errors
/// As open(2) and ioctl(2).
pub fn detach_loop(node: &Path) -> io::Result<()> {
    let device = File::open(node)?;
    // SAFETY: the descriptor is open, and this request takes no argument.
    if unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CLR_FD) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Loads the module in `file`; one that is there already is no error.
/// # Errors
/// As finit_module(2): the hardware or another module that it needs is missing, too.
pub fn load_module(file: &Path) -> Result<(), GuestKernelError> {
    let problem = |error: io::Error| GuestKernelError::File { path: file.to_owned(), error };
    let opened = File::open(file).map_err(problem)?;
    match finit_module(&opened, c"", 0) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => Ok(()),
        Err(error) => Err(problem(error.into())),
    }
}

/// The kernel's release.
pub fn release() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

/// Turns the machine off; comes back only where the kernel refuses.
pub fn power_off() {
    rustix::fs::sync();
    let _ = reboot(RebootCommand::PowerOff);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_loop_device_and_what_is_not_swapped_to_are_errors() {
        assert!(detach_loop(Path::new("/dev/null")).is_err());
        assert!(swap_off(Path::new("/dev/null/none")).is_err());
    }
}
