//! The colours of a trace's pictures: Okabe and Ito's, told apart with any kind of colour vision, on light and dark pages.

use joj_analysis::filesystem::class::Class;

/// A class's colour, by its code.
pub const CLASS_COLOURS: [&str; Class::ALL.len()] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#8a8a8a"];

/// Colours of what has no order; what comes after them has the last.
const PALETTE: [&str; 8] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#b8a600", "#8a8a8a"];

/// A class's colour.
pub fn of_class(class: Class) -> &'static str {
    CLASS_COLOURS[usize::from(class.code())]
}

/// The colour of a class by its text; grey for what is none.
pub fn of_label(label: &str) -> &'static str {
    of_class(Class::from_text(label).unwrap_or_default())
}

/// The colour of the one that stands at `index`.
pub fn of_index(index: usize) -> &'static str {
    PALETTE[index.min(PALETTE.len() - 1)]
}
