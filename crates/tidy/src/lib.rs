//! The rules of the house, as checks over the files of the repository.
//!
//! What clippy can hold is in the root manifest and clippy.toml; here is the rest. Each check is a function from
//! files to violations, so that its own tests can hand it broken samples: a check that cannot fail is a defect.
//!
//! ```text
//! rules          every check, in one list
//! dependencies   which crate may use which, and who may not touch the machine
//! folders        how many files stand side by side, and what their names share
//! heads          whether a folder's head names its files
//! layers         a module uses only modules declared below it
//! links          links in Markdown lead to a file
//! text           length, header, whitespace, paths, names
//! type_names     a type's name stands for one thing in its crate
//! unsafe_code    which files may hold `unsafe`
//! paths          the paths (`a::b::c`) that code names;  code: source without comments and strings
//! tree           the files of the repository, and what a check says of one
//! ```

pub mod rules;

mod dependencies;
mod folders;
mod heads;
mod layers;
mod links;
mod text;
mod type_names;
mod unsafe_code;

mod paths;

mod code;
pub mod tree;
