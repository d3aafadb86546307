//! What SQL sees of us.

pub(crate) mod register_table;
pub(crate) mod status_table;
pub(crate) mod convert_function;
