//! A value of a row, and the column that it stands in.

use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::errors::ParquetError;
use parquet::schema::types::Type;

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// A number that every row has.
    Number,
    /// A number that a row may not have: then it is NULL.
    OptionalNumber,
    /// A text; empty where nothing is known.
    Text,
}

/// A column of a table.
#[derive(Debug, Clone, Copy)]
pub struct TableColumn {
    /// Its name in the file.
    pub name: &'static str,
    /// What it holds.
    pub kind: ColumnKind,
}

/// A number that every row has.
pub const fn number(name: &'static str) -> TableColumn {
    TableColumn { name, kind: ColumnKind::Number }
}

/// A number, or NULL.
pub const fn optional(name: &'static str) -> TableColumn {
    TableColumn { name, kind: ColumnKind::OptionalNumber }
}

/// A text.
pub const fn text(name: &'static str) -> TableColumn {
    TableColumn { name, kind: ColumnKind::Text }
}

impl TableColumn {
    /// The column as the file's schema has it.
    pub fn field(&self) -> Result<Type, ParquetError> {
        let is_text = self.kind == ColumnKind::Text;
        let is_optional = self.kind == ColumnKind::OptionalNumber;
        Type::primitive_type_builder(self.name, if is_text { Physical::BYTE_ARRAY } else { Physical::INT64 })
            .with_repetition(if is_optional { Repetition::OPTIONAL } else { Repetition::REQUIRED })
            .with_logical_type(is_text.then_some(LogicalType::String))
            .build()
    }
}

/// A value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableCell<'a> {
    /// A number; what is larger than an INT64 is the largest.
    Of(u64),
    /// A number that may be negative.
    Signed(i64),
    /// NULL.
    Null,
    /// A text.
    Text(&'a str),
}

impl TableCell<'_> {
    /// A number, or NULL where it is not known.
    pub fn known(value: Option<u64>) -> Self {
        value.map_or(Self::Null, Self::Of)
    }

    /// The number that is written; `None` for NULL and for a text.
    pub fn stored(&self) -> Option<i64> {
        match self {
            Self::Of(value) => Some(i64::try_from(*value).unwrap_or(i64::MAX)),
            Self::Signed(value) => Some(*value),
            Self::Null | Self::Text(_) => None,
        }
    }
}
