//! What SQL sees of us. Top to bottom:
//!
//! ```text
//! register_table     puts our VFS into SQLite's list of them
//! status_table       SELECT * FROM waldio_status
//! this_connection    how the databases of one connection go: through waldio or past it
//! convert_function   SELECT waldio_convert('main', 'embedded'), and back to 'stock'
//! ```

pub(crate) mod register_table;
pub(crate) mod status_table;
pub(crate) mod this_connection;
pub(crate) mod convert_function;
