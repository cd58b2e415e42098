//! Tables of a route about who may ask it.

use std::path::PathBuf;

use crate::located::Located;
use crate::setting::{located_path, required, rules, settings, text};

settings! {
    /// A name and a password (RFC 7617).
    pub struct BasicAuth {
        /// A file of lines `name:hash`, with hashes of bcrypt, as `htpasswd -B` writes them, or Argon2. With `tls.watch` a
        /// changed file is read again; one with a mistake is not taken.
        pub users: Located<PathBuf> = required(located_path()),
        /// What browsers show to whom they ask for a password.
        pub realm: String = text(&rules::REALM, "restricted"),
    }
}
