//! What befalls the files.

use std::fs;
use std::os::unix::fs::MetadataExt;

use super::{Engine, Stop};
use crate::generator::side::Side;
use crate::generator::verdict::Kind;

impl<'run> Engine<'run> {
    pub(super) fn world(&mut self, words: &str) -> Result<(), Stop> {
        let words: Vec<&str> = words.split_whitespace().collect();
        match words[..] {
            ["check"] => self.check(),
            ["files"] => self.same_files(),
            ["mode", bits] => {
                let bits = u32::from_str_radix(bits, 8).expect("octal digits");
                // Without the right to make files SQLite fails, too, but not in the same statement.
                self.compares &= bits & 0o300 == 0o300;
                self.stock.set_mode(bits);
                self.waldio.set_mode(bits);
                Ok(())
            }
            ["replace", name] => self.replace(name),
            ["chmod", name, bits] => {
                let bits = u32::from_str_radix(bits, 8).expect("octal digits");
                for side in [&self.stock, &self.waldio] {
                    let permissions = std::os::unix::fs::PermissionsExt::from_mode(bits);
                    fs::set_permissions(side.path(name), permissions).unwrap();
                }
                Ok(())
            }
            ["remember", name] => {
                self.remembered = fs::read(self.waldio.path(name)).ok();
                Ok(())
            }
            ["unchanged", name] => {
                if fs::read(self.waldio.path(name)).ok() != self.remembered {
                    return Err(Stop::Broken(Kind::FilesDiffer, format!("{name} has changed")));
                }
                Ok(())
            }
            ["absent", text] => self.absent(text),
            _ => panic!("not something that befalls the files: {words:?}"),
        }
    }

    /// Database and log are moved away and new ones stand in their place, as a deployment does it.
    fn replace(&mut self, name: &str) -> Result<(), Stop> {
        let base = self.judge.base(self.program.page_bytes, self.program.reserved_bytes);
        for side in [&self.stock, &self.waldio] {
            // With all that belongs to it, waldio's own files as well.
            for entry in fs::read_dir(side.folder()).unwrap().map(Result::unwrap) {
                let from = entry.file_name().to_string_lossy().into_owned();
                if from.starts_with(name) {
                    fs::rename(side.path(&from), side.path(&format!("old-{from}"))).unwrap();
                }
            }
            fs::copy(&base, side.path(name)).unwrap();
            side.give_away();
        }
        if let Some(index) = self.program.databases().iter().position(|database| database == name) {
            self.acknowledged[index].clear();
            self.acknowledged_by_stock[index].clear();
        }
        for (who, role) in self.program.cast.iter().enumerate() {
            self.past[who] |= role.database == name && self.waldio.is_open(who);
        }
        Ok(())
    }

    /// The same files with the same owners and modes as on stock's side. Sizes of logs may differ while they are in use.
    fn same_files(&self) -> Result<(), Stop> {
        if !self.compares {
            // What failed on one side only may be there on the other.
            return Ok(());
        }
        let (expected, found) = (listing(&self.stock), listing(&self.waldio));
        if expected != found {
            let what = format!("stock:  {expected:?}\nwaldio: {found:?}");
            return Err(Stop::Broken(Kind::FilesDiffer, what));
        }
        Ok(())
    }

    /// No file on waldio's side holds this text, unless stock's does.
    fn absent(&self, text: &str) -> Result<(), Stop> {
        let holds = |side: &Side<'run>| {
            let files = fs::read_dir(side.folder()).unwrap().map(|entry| entry.unwrap().path());
            files
                .filter(|path| {
                    let bytes = fs::read(path).unwrap_or_default();
                    bytes.windows(text.len()).any(|window| window == text.as_bytes())
                })
                .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
                .collect::<Vec<String>>()
        };
        let (expected, found) = (holds(&self.stock), holds(&self.waldio));
        if expected.is_empty() && !found.is_empty() {
            return Err(Stop::Broken(Kind::FilesDiffer, format!("{text:?} is still in {found:?}")));
        }
        Ok(())
    }
}

fn listing(side: &Side<'_>) -> Vec<String> {
    let entries = fs::read_dir(side.folder()).unwrap().map(Result::unwrap);
    let mut all: Vec<String> = entries
        .filter_map(|entry| {
            let status = entry.metadata().ok()?;
            let name = entry.file_name().to_string_lossy().into_owned();
            Some(format!("{name} {:o} {}", status.mode(), status.uid()))
        })
        .collect();
    all.sort();
    all
}
