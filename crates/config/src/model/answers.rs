//! The parts of a server's answer that clients get otherwise: where its redirects lead, and of its cookies paths, domains and
//! flags.

use crate::setting::{
    Expression, FieldTemplate, answer_words, expression, optional, required, rules, settings, text,
    word_list,
};
use crate::word::words;

words! {
    /// A word about a cookie that browsers heed.
    pub enum CookieFlag {
        /// Browsers send it over TLS only.
        Secure = "secure",
        /// No script sees it.
        HttpOnly = "httponly",
        /// Browsers send it with what pages of the same site ask for.
        SameSiteStrict = "samesite=strict",
        /// Browsers send it also where a link of another site leads here.
        SameSiteLax = "samesite=lax",
        /// Browsers send it with what pages of any site ask for.
        SameSiteNone = "samesite=none",
        /// Takes `Secure` away.
        NoSecure = "nosecure",
        /// Takes `HttpOnly` away.
        NoHttpOnly = "nohttponly",
        /// Takes `SameSite` away.
        NoSameSite = "nosamesite",
    }
}

settings! {
    /// Another text in place of what a server says.
    pub struct AnswerRewrite {
        /// The text that is meant. `{scheme}`, `{host}` (without its port) and `{port}` are those that the client asks for.
        pub from: Option<FieldTemplate> = optional(answer_words(), "all, unless `regex` says it"),
        /// In place of `from`: a regular expression that a part of what the server says fits. `to` takes the place of all of it, with
        /// `{1}` for the first group, and `{name}` for the group of that name.
        pub regex: Option<Expression> = expression("`from` decides"),
        /// The text that clients get, with the same words.
        pub to: FieldTemplate = required(answer_words()),
    }
}

settings! {
    /// Words that some cookies get, or lose.
    pub struct CookieFlags {
        /// The name of the cookie, in upper or lower case.
        pub name: Option<String> =
            optional(text(&rules::COOKIE_NAME, ""), "all, unless `regex` says it"),
        /// In place of `name`: a regular expression that a part of the name fits.
        pub regex: Option<Expression> = expression("`name` decides"),
        /// The words.
        pub flags: Vec<CookieFlag> = word_list(&[]),
    }
}

impl AnswerRewrite {
    /// The text that clients get, in which names of groups are those of the expression.
    ///
    /// # Errors
    /// A group that it has not.
    pub fn filled(&self) -> Result<FieldTemplate, String> {
        match &self.regex {
            Some(expression) => self.to.clone().with_groups(expression),
            None => self.to.clone().without_groups(),
        }
    }
}
