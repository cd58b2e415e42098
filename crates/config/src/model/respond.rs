//! Answers that stand in the configuration itself.

use crate::setting::{flag, number, optional, rules, settings, text};

settings! {
    /// An answer that is the same for every request and every method.
    pub struct Respond {
        /// The status.
        pub status: u16 = number(200, 200, 599, ""),
        /// The body, at most 64 KiB, as it is: no words are filled in. With 204, 205 and 304 there is none. An empty one of
        /// an error is the page that other errors of this status have.
        pub body: String = text(&rules::ANSWER, ""),
        /// The media type of the body. Where it is written, an empty body has it, too.
        pub media_type: Option<String> as "type" =
            optional(text(&rules::MIME_TYPE, "text/plain"), "`\"text/plain\"` of a text"),
        /// Closes the connection without an answer.
        pub close: bool = flag(false),
    }
}
