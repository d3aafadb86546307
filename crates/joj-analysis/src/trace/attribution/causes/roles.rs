//! For whom threads write, by their names: kernel threads work for others.

use crate::bench::key::Word;
use crate::filesystem::Filesystem;
use crate::trace::texts::{Text, Texts};

/// For whom threads write, by their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Role {
    /// For themselves.
    #[default]
    Own,
    /// For others: write-back, filesystems' workers, loop devices.
    Helper,
    /// For those who wait for a commit: jbd2's thread.
    Journal,
}

/// What is known of threads' names, by the names' numbers.
#[derive(Debug, Default)]
pub struct Roles(Vec<Option<Role>>);

impl Roles {
    /// What threads of that name are.
    pub fn of(&self, name: Text) -> Role {
        self.0.get(name.0 as usize).copied().flatten().unwrap_or_default()
    }

    /// Looks at a name once, not at each request.
    pub fn learn(&mut self, name: Text, texts: &Texts) {
        let at = name.0 as usize;
        if self.0.len() <= at {
            self.0.resize(at + 1, None);
        }
        self.0[at].get_or_insert_with(|| role(texts.get(name)));
    }
}

fn role(name: &str) -> Role {
    if name.starts_with("jbd2/") {
        return Role::Journal;
    }
    let of_filesystems = Filesystem::ALL.iter().flat_map(|filesystem| filesystem.facts().threads);
    let is_helper = of_filesystems.chain(&["kworker/", "loop"]).any(|prefix| name.starts_with(prefix));
    if is_helper { Role::Helper } else { Role::Own }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_not_taken_for_kernel_threads() {
        let roles = ["jbd2/vda-8", "kworker/u4:1", "sqlite3"].map(role);
        assert_eq!(roles, [Role::Journal, Role::Helper, Role::Own]);
    }
}
