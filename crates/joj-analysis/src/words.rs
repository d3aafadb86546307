//! Choices that a saved trace has as numbers and texts have as words.

/// One of the words, with its code in saved traces and its spelling. Codes never change their meaning.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$entry:meta])* $word:ident = $code:literal $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
        #[repr(u8)]
        pub enum $name { $($(#[$entry])* $word = $code,)* }

        impl $name {
            /// Every word.
            pub const ALL: &'static [Self] = &[$(Self::$word),*];

            /// The number in a saved trace.
            pub fn code(self) -> u8 {
                self as u8
            }

            /// The word of a saved number; `None` where this version knows none.
            pub fn from_code(code: u8) -> Option<Self> {
                match code { $($code => Some(Self::$word),)* _ => None }
            }

            /// How it is spelled, in tables and in text formats.
            pub fn text(self) -> &'static str {
                match self { $(Self::$word => $text,)* }
            }

            /// The word that is spelled so.
            pub fn from_text(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|word| word.text() == text)
            }
        }
    };
}
pub(crate) use words;
