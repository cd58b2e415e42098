//! `when`: what must hold of a request besides its path.

use std::path::PathBuf;

use crate::located::Located;
use crate::setting::{
    Expression, FieldTemplate, Network, TRY_PATH, expression, field_words, flag, located_path,
    networks, optional, rules, settings, text, texts, word,
};
use crate::word::words;

words! {
    /// The way a client asks.
    pub enum Scheme {
        /// Without TLS.
        Http = "http",
        /// With TLS, or by a trusted proxy that says so.
        Https = "https",
    }
}

words! {
    /// The kind of file that is looked for on the disk.
    pub enum FileKind {
        /// A file.
        File = "file",
        /// A folder, with or without a slash at the end of the path.
        Folder = "folder",
        /// Either.
        Any = "any",
    }
}

words! {
    /// The treatment of a request that meets a symbolic link.
    pub enum Symlinks {
        /// Links are not followed: such a file gets 403, and a condition finds none.
        Never = "never",
        /// Links are followed as long as they lead to something below the root, absolute ones too.
        Beneath = "beneath",
        /// Links are followed anywhere. Anyone with the right to write below the root may then publish any file kettle can
        /// read.
        Follow = "follow",
    }
}

settings! {
    /// A condition: one of `method`, `scheme`, `host`, `header`, `cookie`, `query`, `network`, `of` and `file`, and what is asked of it.
    pub struct Condition {
        /// The request has one of these methods.
        pub method: Vec<String> = texts(&rules::METHOD, &[]),
        /// The request came by this scheme.
        pub scheme: Option<Scheme> = optional(word(Scheme::Https), "not asked"),
        /// The request is for one of these hosts. The port and the case of letters do not count.
        pub host: Vec<String> = texts(&rules::ASKED_HOST, &[]),
        /// The name of a request header. Of several of that name the first counts.
        pub header: Option<String> = optional(text(&rules::FIELD_NAME, ""), "not asked"),
        /// The name of a cookie. Upper and lower case are two.
        pub cookie: Option<String> = optional(text(&rules::COOKIE_NAME, ""), "not asked"),
        /// The name of a query argument. Its value counts as it was sent, without being decoded.
        pub query: Option<String> = optional(text(&rules::ARGUMENT_NAME, ""), "not asked"),
        /// The client is in one of these networks. Of a PROXY header and a trusted proxy the client is whom that names.
        pub network: Vec<Network> = networks(),
        /// A text with words, as in `request_headers`: `"{uri}"`, `"{map:bots}"`.
        pub of: Option<FieldTemplate> = optional(field_words(), "not asked"),
        /// With `header`, `cookie`, `query` or `of`: it is this text. Without `text` and `regex` it is there, and not empty.
        pub text: Option<String> = optional(text(&rules::ANY_TEXT, ""), "not asked"),
        /// With `header`, `cookie`, `query` or `of`: a part of it fits this regular expression. `(?i)` at its beginning takes upper
        /// and lower case for one.
        pub regex: Option<Expression> = expression("not asked"),
        /// This is there, below the route's `root`, as the route itself would find it: with its `symlinks` and `dotfiles`. It is
        /// remembered for `limits.revalidate`. A disk that does not say it in time leads to 503. At most 100 of these may be asked of
        /// one path.
        pub file: Option<FileKind> = optional(word(FileKind::File), "not asked"),
        /// With `file`: the path to look for, with words as in `try`. One without words may begin with a dot.
        pub file_path: Option<String> = optional(text(&TRY_PATH, ""), "the one asked for, as the route finds its files"),
        /// With `file`: the folder below which the path is looked for.
        pub file_root: Option<Located<PathBuf>> = optional(located_path(), "the route's"),
        /// With `file_root`: the beginning of the path, in whole segments, in whose place that folder stands.
        pub file_prefix: Option<String> = optional(text(&rules::PREFIX, "/"), "none: the whole path is looked for"),
        /// With `file`: what happens at a symbolic link.
        pub file_symlinks: Option<Symlinks> = optional(word(Symlinks::Follow), "the route's `symlinks`"),
        /// With `file`: a name that begins with a dot is found, too.
        pub file_dotfiles: Option<bool> = optional(flag(true), "the route's `dotfiles`"),
        /// Turns the condition round.
        pub not: bool = flag(false),
    }
}

/// The subject of a condition.
#[derive(Clone, Copy, Debug)]
pub enum Subject<'c> {
    /// The method.
    Method(&'c [String]),
    /// The scheme.
    Scheme(Scheme),
    /// The host without its port.
    Host(&'c [String]),
    /// The header of this name.
    Header(&'c str),
    /// The cookie of this name.
    Cookie(&'c str),
    /// The query argument of this name.
    Query(&'c str),
    /// The address of the client.
    Network(&'c [Network]),
    /// A text with words.
    Of(&'c FieldTemplate),
    /// A file on the disk.
    File(FileKind),
}

impl Condition {
    /// All that it asks about. A valid one asks about one thing.
    pub fn subjects(&self) -> impl Iterator<Item = Subject<'_>> {
        let list = |list: &'_ Vec<String>| !list.is_empty();
        let all = [
            Some(&self.method).filter(|it| list(it)).map(|it| Subject::Method(it)),
            self.scheme.map(Subject::Scheme),
            Some(&self.host).filter(|it| list(it)).map(|it| Subject::Host(it)),
            self.header.as_deref().map(Subject::Header),
            self.cookie.as_deref().map(Subject::Cookie),
            self.query.as_deref().map(Subject::Query),
            Some(&self.network).filter(|it| !it.is_empty()).map(|it| Subject::Network(it)),
            self.of.as_ref().map(Subject::Of),
            self.file.map(Subject::File),
        ];
        all.into_iter().flatten()
    }
}

impl Subject<'_> {
    /// True if the key of a stored response says it, too. A map counts as what it is made of, which is looked at elsewhere.
    pub fn is_of_url(&self) -> bool {
        match self {
            Self::Method(_) | Self::Scheme(_) => true,
            // The key has the site's name for whatever else is asked for, and the path that a rewrite made.
            Self::Host(_) | Self::Of(_) | Self::File(_) => false,
            Self::Header(_) | Self::Cookie(_) | Self::Query(_) | Self::Network(_) => false,
        }
    }

    /// True if `text` and `regex` may be asked of it.
    pub fn is_text(&self) -> bool {
        matches!(self, Self::Header(_) | Self::Cookie(_) | Self::Query(_) | Self::Of(_))
    }
}
