//! Whose sync calls, commits and checkpoints a trace counts. Requests are everybody's in any case: a disk has them all.

use std::collections::BTreeSet;

use crate::trace::header::Header;

/// Whose they are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Wanted {
    /// Everybody's.
    #[default]
    Everybody,
    /// Those of processes with these numbers.
    Processes(BTreeSet<u32>),
}

impl Wanted {
    /// What the head of a trace asks for: one process, or a command with its children.
    pub fn of(header: &Header) -> Self {
        let numbers: BTreeSet<u32> = header
            .process
            .map_or_else(|| header.command_processes.iter().copied().collect(), |one| [one].into());
        if numbers.is_empty() { Self::Everybody } else { Self::Processes(numbers) }
    }

    /// True for one of them.
    pub fn includes(&self, process: u32) -> bool {
        match self {
            Self::Everybody => true,
            Self::Processes(numbers) => numbers.contains(&process),
        }
    }

    /// True where somebody's are left out.
    pub fn is_choice(&self) -> bool {
        matches!(self, Self::Processes(_))
    }

    /// A process made another: a child of one of them is one. Where it is a stranger's it has the number of one that has ended.
    pub fn forked(&mut self, parent: u32, child: u32) {
        if let Self::Processes(numbers) = self {
            if numbers.contains(&parent) {
                numbers.insert(child)
            } else {
                numbers.remove(&child)
            };
        }
    }

    /// Their numbers; none for everybody.
    pub fn numbers(&self) -> Vec<u32> {
        match self {
            Self::Everybody => Vec::new(),
            Self::Processes(numbers) => numbers.iter().copied().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_of_children_are_of_the_command_and_a_number_given_anew_is_not() {
        let mut wanted = Wanted::Processes([10].into());
        for (parent, child) in [(10, 11), (11, 12), (5, 6), (10, 13)] {
            wanted.forked(parent, child);
        }
        assert_eq!(wanted.numbers(), [10, 11, 12, 13]);
        wanted.forked(5, 12);
        assert!(!wanted.includes(12) && wanted.includes(11) && !wanted.includes(6));
        let mut everybody = Wanted::Everybody;
        everybody.forked(1, 2);
        assert!(everybody.includes(7) && !everybody.is_choice());
    }

    #[test]
    fn the_head_says_whose_are_wanted() {
        let command = Header { command_processes: vec![7, 8], ..Header::default() };
        assert_eq!(Wanted::of(&command).numbers(), [7, 8]);
        assert_eq!(Wanted::of(&Header { process: Some(9), ..command }).numbers(), [9]);
        assert_eq!(Wanted::of(&Header::default()), Wanted::Everybody);
    }
}
