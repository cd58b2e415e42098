//! Answers that stand in the configuration itself.

use crate::setting::{
    FieldTemplate, answer_text, flag, number, optional, rules, settings, text, texts,
};

settings! {
    /// An answer to every request and every method.
    pub struct Respond {
        /// The status.
        pub status: u16 = number(200, 200, 599, ""),
        /// The body, at most 64 KiB, as it is: no words are filled in. With 204, 205 and 304 there is none. An error without one
        /// has the page that other errors of this status have, and with `""` nothing.
        pub body: Option<String> = optional(text(&rules::ANSWER, ""), "the page of an error, or nothing"),
        /// A body with words, as in `headers`, and with groups of `regex`. A text of the client must not be taken for a page or
        /// a script: it is sent with `X-Content-Type-Options: nosniff`, and as `text/plain` or `application/octet-stream`,
        /// unless its words are no others than `{client_ip}`, `{client_port}` and `{scheme}`. One that is filled in to more
        /// than 64 KiB is 500.
        pub text: Option<FieldTemplate> = optional(answer_text(), "the answer has no words"),
        /// The media type of the body. If it is written, an empty body has it, too.
        pub media_type: Option<String> as "type" =
            optional(text(&rules::MIME_TYPE, "text/plain"), "`\"text/plain\"` of a text"),
        /// Names the type by the end of the path, as that of a file: by `types`, `mime`, `default_type` and `charset` of the route.
        pub type_by_path: bool = flag(false),
        /// Types in further lines of `Content-Type`, as nginx sends them with `add_header`. Browsers go by the last one; RFC 9110
        /// §5.3 has one line only.
        pub more_types: Vec<String> = texts(&rules::MIME_TYPE, &[]),
        /// Closes the connection without an answer.
        pub close: bool = flag(false),
    }
}

impl Respond {
    /// True if it has a body or a text.
    pub fn has_body(&self) -> bool {
        self.text.is_some() || self.body.as_ref().is_some_and(|body| !body.is_empty())
    }
}
