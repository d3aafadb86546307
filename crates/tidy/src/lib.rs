//! The rules of the house, as checks over the files of the repository.
//!
//! What clippy can hold is in the root manifest and clippy.toml; here is the rest. Each check is a function from
//! files to violations, so that its own tests can hand it broken samples: a check that cannot fail is a defect.

pub mod rules;

mod dependencies;
mod folders;
mod layers;
mod links;
mod text;
mod type_names;
mod unsafe_code;

mod paths;

mod code;
pub mod tree;
