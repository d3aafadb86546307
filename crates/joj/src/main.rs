//! The `joj` command.

fn main() {}
