//! Tables of a route about who may ask it.

use std::path::PathBuf;
use std::time::Duration;

use crate::located::Located;
use crate::setting::{
    duration, flag, located_path, located_texts, number, optional, required, rules, settings, text,
    texts,
};

settings! {
    /// A name and a password (RFC 7617).
    pub struct BasicAuth {
        /// A file of lines `name:hash`, with hashes of bcrypt, as `htpasswd -B` writes them, or Argon2. With `tls.watch` a
        /// changed file is read again; one with a mistake is not taken.
        pub users: Located<PathBuf> = required(located_path()),
        /// The name of the area that browsers show when they ask for a password.
        pub realm: String = text(&rules::REALM, "restricted"),
    }
}

settings! {
    /// The rate at which one client may ask. A client that asks more gets 429. The figures hold for all workers together, and
    /// for each route by itself; a reload begins them anew, but not one that only takes changed files (`tls.watch`).
    pub struct RateLimit {
        /// Requests that a client may send in each `period`.
        pub requests: u32 = number(10, 1, 1_000_000, "requests"),
        /// The time that `requests` are for.
        pub period: Duration = duration(
            Duration::from_secs(1), Duration::from_secs(1), Duration::from_hours(24)),
        /// Requests that may come at once after a pause.
        pub burst: u32 = number(20, 1, 1_000_000, "requests"),
        /// Requests of a client that may be under way at once, to the last byte of their responses. If responses are kept, one whose
        /// client has left counts until its backend has answered.
        pub concurrent: Option<u32> = optional(number(10, 1, 1_000_000, "requests"), "no limit"),
    }
}

settings! {
    /// Pages of other origins whose scripts may read the responses (the CORS protocol of browsers).
    pub struct Cors {
        /// The origins, such as `"https://app.example.org"`; `"*"` is every one.
        pub origins: Vec<Located<String>> = required(located_texts(&rules::ORIGIN)),
        /// Methods that scripts may use.
        pub methods: Vec<String> = texts(&rules::METHOD, &["GET", "HEAD"]),
        /// Header fields that scripts may send beyond those that every page may.
        pub headers: Vec<String> = texts(&rules::FIELD_NAME, &[]),
        /// Header fields of responses that scripts may read beyond those that every page may.
        pub expose: Vec<String> = texts(&rules::FIELD_NAME, &[]),
        /// Lets scripts send cookies and passwords along.
        pub credentials: bool = flag(false),
        /// The time for which browsers remember the answer to a preflight.
        pub max_age: Duration = duration(
            Duration::from_mins(10), Duration::ZERO, Duration::from_hours(24)),
    }
}

settings! {
    /// URLs that somebody with a secret has made, and that end: `?expires=SECONDS&signature=HEX`.
    pub struct SignedUrls {
        /// A file with one or two secrets, each a line of 32 characters or more. Two are for the time of a change: URLs of
        /// both are taken. It is watched like files of users.
        pub secret: Located<PathBuf> = required(located_path()),
        /// True if the client's address is signed too: of IPv6 the first 64 bits.
        pub client: bool = flag(false),
    }
}
