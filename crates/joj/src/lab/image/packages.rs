//! Debian's kernel and the programs that make filesystems: fetched once with apt, without root, and kept.
//!
//!   CACHE/RELEASE/vmlinuz        the kernel
//!   CACHE/RELEASE/modules/       its modules, and `list`: the order in which they are loaded
//!   CACHE/RELEASE/root/          the other packages, unpacked
//!   CACHE/RELEASE/complete       made last: without it the rest is a part

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::lab::image::error::ImageError;
use crate::lab::image::kernel_modules;

/// The package that depends on the newest kernel.
const KERNEL: &str = "linux-image-amd64";
/// What makes filesystems, and a shell.
const PROGRAMS: [&str; 6] =
    ["busybox-static", "e2fsprogs", "xfsprogs", "btrfs-progs", "nilfs-tools", "f2fs-tools"];
/// The packages of the programs' shared libraries.
const LIBRARIES: [&str; 15] = [
    "libblkid1",
    "libuuid1",
    "libinih1",
    "liburcu8",
    "libmount1",
    "libselinux1",
    "libpcre2-8-0",
    "libedit2",
    "liblzo2-2",
    "libext2fs2",
    "libcom-err2",
    "libss2",
    "libudev1",
    "libzstd1",
    "zlib1g",
];
/// Layout of the cache; another number is another directory.
const LAYOUT: u32 = 2;

/// What is in the cache.
#[derive(Debug, Clone)]
pub struct Packages {
    /// The kernel's release, for example `6.1.0-18-amd64`.
    pub release: String,
    directory: PathBuf,
}

impl Packages {
    pub fn kernel(&self) -> PathBuf {
        self.directory.join("vmlinuz")
    }

    /// Its modules, and `list`.
    pub fn modules(&self) -> PathBuf {
        self.directory.join("modules")
    }

    /// The file of a program.
    pub fn program(&self, name: &str) -> Option<PathBuf> {
        let root = self.directory.join("root");
        ["sbin", "usr/sbin", "bin", "usr/bin"]
            .map(|part| root.join(part).join(name))
            .into_iter()
            .find(|path| path.is_file())
    }

    /// Directories with libraries that this machine may not have.
    pub fn library_directories(&self) -> Vec<PathBuf> {
        let root = self.directory.join("root");
        ["lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu", "lib", "usr/lib"]
            .map(|part| root.join(part))
            .to_vec()
    }

    /// These programs with another kernel; `modules` is its directory below /lib/modules.
    /// # Errors
    /// Where the kernel or its modules cannot be read.
    pub fn with_kernel(&self, kernel: &Path, modules: &Path) -> Result<Packages, ImageError> {
        self.given_below(&cache_directory()?, kernel, modules)
    }

    /// The same in another cache; nothing is left there of what cannot be had.
    fn given_below(&self, cache: &Path, kernel: &Path, modules: &Path) -> Result<Packages, ImageError> {
        let release = modules.canonicalize().map_err(ImageError::file("read", modules))?;
        let release = release.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let directory = cache.join(format!("given-{release}"));
        let part = cache.join(format!("given-{release}.part-{}", std::process::id()));
        let made = self.copy_given(kernel, modules, &part).and_then(|()| {
            let _ = fs::remove_dir_all(&directory);
            fs::rename(&part, &directory).map_err(ImageError::file("make", &directory))
        });
        if made.is_err() {
            let _ = fs::remove_dir_all(&part);
        }
        made?;
        Ok(Packages { release, directory })
    }

    /// Another kernel and its modules, with these programs, in the new directory `to`.
    fn copy_given(&self, kernel: &Path, modules: &Path, to: &Path) -> Result<(), ImageError> {
        check_kernel(kernel)?;
        keep_modules(modules, &to.join("modules"))?;
        fs::copy(kernel, to.join("vmlinuz")).map_err(ImageError::file("copy", kernel))?;
        let root = to.join("root");
        std::os::unix::fs::symlink(self.directory.join("root"), &root)
            .map_err(ImageError::file("make", &root))
    }

    /// Those in the cache, or fetched now; `say` is told what takes long.
    /// # Errors
    /// What is missing and how to get it. A part that was fetched stays out of use.
    pub fn get(say: &dyn Fn(&str)) -> Result<Packages, ImageError> {
        let cache = cache_directory()?;
        if let Some(packages) = newest(&cache) {
            return Ok(packages);
        }
        fs::create_dir_all(&cache).map_err(ImageError::file("make", &cache))?;
        let image = kernel_package()?;
        let release = image.trim_start_matches("linux-image-").to_owned();
        let part = cache.join(format!("{release}.part-{}", std::process::id()));
        let made = fetch(&part, &image, &release, say);
        let directory = cache.join(&release);
        let moved = made.and_then(|()| {
            let _ = fs::remove_dir_all(&directory);
            fs::rename(&part, &directory).map_err(ImageError::file("make", &directory))
        });
        if moved.is_err() {
            let _ = fs::remove_dir_all(&part);
        }
        moved.map(|()| Packages { release, directory })
    }
}

/// `$XDG_CACHE_HOME/joj/lab-2`, or below `$HOME/.cache` (XDG Base Directory Specification).
/// # Errors
/// Where the environment names neither.
pub fn cache_directory() -> Result<PathBuf, ImageError> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")));
    let base = base.ok_or(ImageError::NoCache)?;
    Ok(base.join(format!("joj/lab-{LAYOUT}")))
}

/// Whether a file is a kernel that QEMU starts: QEMU alone would say nothing that helps.
/// Source: Linux, Documentation/arch/x86/boot.rst, "The Real-Mode Kernel Header".
fn check_kernel(kernel: &Path) -> Result<(), ImageError> {
    const MAGIC_AT: u64 = 0x202;
    let mut magic = [0; 4];
    let read = File::open(kernel).and_then(|file| {
        let is_file = file.metadata()?.is_file();
        let is_read = is_file && file.read_exact_at(&mut magic, MAGIC_AT).is_ok();
        Ok(is_read && magic == *b"HdrS")
    });
    match read {
        Ok(true) => Ok(()),
        Ok(false) => Err(ImageError::NotKernel(kernel.to_owned())),
        Err(error) => Err(ImageError::file("read", kernel)(error)),
    }
}

fn newest(cache: &Path) -> Option<Packages> {
    let complete = fs::read_dir(cache).ok()?.flatten().filter(|entry| entry.path().join("complete").exists());
    let newest = complete.max_by_key(|entry| entry.metadata().and_then(|facts| facts.modified()).ok())?;
    Some(Packages { release: newest.file_name().to_string_lossy().into_owned(), directory: newest.path() })
}

/// The package that `linux-image-amd64` depends on.
fn kernel_package() -> Result<String, ImageError> {
    let text = run("apt-cache", &["depends", KERNEL], Path::new("/"))?;
    let name = text.lines().find_map(|line| line.trim().strip_prefix("Depends: "));
    name.filter(|name| name.starts_with("linux-image-"))
        .map(str::to_owned)
        .ok_or(ImageError::NoKernel(KERNEL))
}

fn fetch(part: &Path, image: &str, release: &str, say: &dyn Fn(&str)) -> Result<(), ImageError> {
    let (debs, root, kernel) = (part.join("debs"), part.join("root"), part.join("kernel"));
    for directory in [&debs, &root, &kernel] {
        fs::create_dir_all(directory).map_err(ImageError::file("make", directory))?;
    }
    say("fetching Debian's kernel and the programs that make filesystems (76 MB, once)");
    let mut words = vec!["-q", "download", image];
    words.extend(PROGRAMS.iter().chain(&LIBRARIES));
    run("apt-get", &words, &debs).map_err(|error| ImageError::NotFetched(Box::new(error)))?;
    say("unpacking");
    let files = fs::read_dir(&debs).map_err(ImageError::file("read", &debs))?;
    for file in files.flatten().map(|entry| entry.path()) {
        let is_kernel =
            file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("linux-image-"));
        let to = if is_kernel { &kernel } else { &root };
        run("dpkg-deb", &["-x", &file.to_string_lossy(), &to.to_string_lossy()], part)?;
    }
    let boot = kernel.join(format!("boot/vmlinuz-{release}"));
    fs::rename(&boot, part.join("vmlinuz")).map_err(ImageError::file("find", &boot))?;
    keep_modules(&kernel.join("lib/modules").join(release), &part.join("modules"))?;
    // 400 MB of modules for hardware that the lab does not have.
    for directory in [&debs, &kernel, &root.join("usr/share")] {
        fs::remove_dir_all(directory).map_err(ImageError::file("remove", directory))?;
    }
    fs::write(part.join("complete"), "").map_err(ImageError::file("write", part))
}

/// Copies the modules that the guest needs, and writes the order in which they are loaded.
/// # Errors
/// Where they are not whole, or there is no room.
pub fn keep_modules(from: &Path, to: &Path) -> Result<(), ImageError> {
    fs::create_dir_all(to).map_err(ImageError::file("make", to))?;
    let mut list = String::new();
    for file in kernel_modules::in_order(from)? {
        let name = file.file_name().unwrap_or_default();
        fs::copy(&file, to.join(name)).map_err(ImageError::file("copy", &file))?;
        list.push_str(&name.to_string_lossy());
        list.push('\n');
    }
    fs::write(to.join("list"), list).map_err(ImageError::file("write", to))
}

/// What a program prints.
fn run(program: &'static str, words: &[&str], directory: &Path) -> Result<String, ImageError> {
    let output = Command::new(program).args(words).current_dir(directory).output();
    let output = output.map_err(|error| ImageError::NoProgram { program, error })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let reason = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = reason.lines().filter(|line| !line.trim().is_empty()).collect();
    let said = lines[lines.len().saturating_sub(3)..].join("; ");
    Err(ImageError::Failed { program, said })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_that_cannot_be_had_leaves_nothing_in_the_cache() {
        let base = std::env::temp_dir().join(format!("joj-given-{}", std::process::id()));
        let (cache, modules) = (base.join("cache"), base.join("modules"));
        fs::create_dir_all(&cache).unwrap();
        fs::create_dir_all(&modules).unwrap();
        let kernel = base.join("vmlinuz");
        fs::write(&kernel, [&[0; 0x202][..], b"HdrS"].concat()).unwrap();
        let own = Packages { release: "own".to_owned(), directory: base.join("own") };
        let told = |kernel: &Path| own.given_below(&cache, kernel, &modules).unwrap_err().to_string();
        let answers = [told(Path::new("/dev/null")), told(&base.join("none")), told(&kernel)];
        let left = fs::read_dir(&cache).unwrap().count();
        fs::create_dir_all(modules.join("kernel")).unwrap();
        let given = own.given_below(&cache, &kernel, &modules).map(|given| given.kernel().is_file());
        fs::remove_dir_all(&base).unwrap();
        for (answer, expected) in
            answers.iter().zip(["/dev/null is no bzImage", "cannot read", "cannot read"])
        {
            assert!(answer.contains(expected), "{answer}");
        }
        assert_eq!((left, given.ok()), (0, Some(true)));
    }
}
