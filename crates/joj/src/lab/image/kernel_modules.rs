//! Which files of a kernel package the guest needs, in the order in which the kernel takes them.
//!
//! Source: modinfo(8): a module names those it needs itself, in its section `.modinfo`, as `depends=a,b`.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::lab::image::error::ImageError;

/// What the guest cannot do without, or a filesystem asks for while it is mounted: the kernel would call modprobe then.
/// Checksums come before those that look for them (libcrc32c gives up where there is none).
const WANTED: [&str; 23] = [
    "crc32c_generic",
    "crc32c_intel",
    "crc32_generic",
    "crc32_pclmul",
    "xxhash_generic",
    "blake2b_generic",
    "sha256_generic",
    "virtio_pci",
    "9pnet_virtio",
    "9p",
    "overlay",
    "nbd",
    "brd",
    "ext4",
    "xfs",
    "btrfs",
    "nilfs2",
    "f2fs",
    "lz4_compress",
    "lz4hc_compress",
    "nls_utf8",
    "virtio_rng",
    "virtio_blk",
];

/// Every wanted module behind those that it needs. What is built into the kernel is no file, and left out.
/// # Errors
/// Where the directory cannot be read or has no module that others need.
pub fn in_order(modules: &Path) -> Result<Vec<PathBuf>, ImageError> {
    let mut files = HashMap::new();
    collect(&modules.join("kernel"), &mut files).map_err(ImageError::file("read", modules))?;
    let built_in = fs::read_to_string(modules.join("modules.builtin")).unwrap_or_default();
    let built_in: HashSet<String> = built_in.lines().map(|line| name_of(Path::new(line))).collect();
    let mut order = Order { files: &files, built_in: &built_in, ready: HashSet::new(), list: Vec::new() };
    for wanted in WANTED {
        // A kernel without one of them may still run what does not need it: the guest says what it cannot mount.
        if files.contains_key(wanted) {
            order.add(wanted, 0)?;
        }
    }
    Ok(order.list)
}

struct Order<'kernel> {
    files: &'kernel HashMap<String, PathBuf>,
    built_in: &'kernel HashSet<String>,
    ready: HashSet<String>,
    list: Vec<PathBuf>,
}

impl Order<'_> {
    fn add(&mut self, name: &str, depth: u32) -> Result<(), ImageError> {
        if self.built_in.contains(name) || self.ready.contains(name) {
            return Ok(());
        }
        let file = self
            .files
            .get(name)
            .filter(|_| depth < 32)
            .ok_or_else(|| ImageError::NoModule(name.to_owned()))?;
        let bytes = fs::read(file).map_err(ImageError::file("read", file))?;
        for needed in needs(&bytes) {
            self.add(&needed, depth + 1)?;
        }
        self.ready.insert(name.to_owned());
        self.list.push(file.clone());
        Ok(())
    }
}

/// Names of the modules that these bytes of one say it needs.
fn needs(module: &[u8]) -> Vec<String> {
    const KEY: &[u8] = b"\0depends=";
    let Some(at) = module.windows(KEY.len()).position(|window| window == KEY) else { return Vec::new() };
    let text = &module[at + KEY.len()..];
    let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
    let names = String::from_utf8_lossy(&text[..end]);
    names.split(',').filter(|name| !name.is_empty()).map(|name| name.replace('-', "_")).collect()
}

fn collect(directory: &Path, files: &mut HashMap<String, PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "ko") {
            files.insert(name_of(&path), path);
        }
    }
    Ok(())
}

/// The kernel makes no difference between `-` and `_`.
fn name_of(path: &Path) -> String {
    path.file_stem().map(|stem| stem.to_string_lossy().replace('-', "_")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_names_what_it_needs() {
        assert_eq!(
            needs(b"\x7fELF..\0license=GPL\0depends=mbcache,jbd2,crc-itu-t\0name=x\0"),
            ["mbcache", "jbd2", "crc_itu_t"]
        );
        assert!(needs(b"\0depends=\0").is_empty());
        assert!(needs(b"").is_empty());
    }
}
