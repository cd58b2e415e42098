//! Enumerations that are written as one word in the file.
//!
//! Word, meaning and Rust name of a choice are declared once; the parser, the reference page and
//! the schema read them from there.

/// An enumeration whose values are written as words.
pub(crate) trait Word: Copy + Eq + 'static {
    /// Every value, in the order the documentation lists them.
    const ALL: &'static [Self];

    /// The word for this value.
    fn word(self) -> &'static str;

    /// The meaning of the value, as written in its doc comment.
    fn meaning(self) -> &'static str;
}

/// Declares an enumeration of words: `/// meaning` `Name = "word",`.
macro_rules! words {
    (
        $(#[doc = $about:literal])+
        pub enum $name:ident { $($(#[doc = $meaning:literal])+ $variant:ident = $word:literal,)+ }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[doc = $meaning])+ $variant,)+ }

        impl $name {
            /// The word for this value in the configuration file.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::word::UnknownWord;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text {
                    $($word => Ok(Self::$variant),)+
                    _ => Err($crate::word::UnknownWord::among::<Self>(text)),
                }
            }
        }

        impl $crate::word::Word for $name {
            const ALL: &'static [Self] = &[$(Self::$variant,)+];

            fn word(self) -> &'static str {
                self.as_str()
            }

            fn meaning(self) -> &'static str {
                match self { $(Self::$variant => concat!($($meaning, "\n"),+).trim(),)+ }
            }
        }
    };
}
pub(crate) use words;

/// A word that is none of an enumeration's values; its text lists those that are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownWord {
    text: String,
    known: Vec<&'static str>,
}

impl UnknownWord {
    pub(crate) fn among<W: Word>(text: &str) -> Self {
        Self { text: text.to_owned(), known: W::ALL.iter().map(|value| value.word()).collect() }
    }
}

impl std::fmt::Display for UnknownWord {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "\"{}\" is none of: {}", self.text, self.known.join(", "))
    }
}

impl std::error::Error for UnknownWord {}
