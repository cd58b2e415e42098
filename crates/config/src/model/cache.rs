//! `[[cache]]`: disk stores for responses of backends, and `[site.route.cache]`: what of a route is kept there.

use std::path::PathBuf;
use std::time::Duration;

use crate::located::Located;
use crate::setting::{
    MIB, duration, flag, located_path, located_text, optional, required, rules, settings, size,
    text, texts,
};

settings! {
    /// A disk store for responses of backends.
    pub struct Cache {
        /// The name that routes call it by.
        pub name: Located<String> = required(located_text(&rules::BACKEND_NAME)),
        /// Its folder, on a local file system, which the user that serves may write to and nobody else uses. A start makes it if
        /// it is missing and its parent is there: for that user, mode 0700.
        pub directory: Located<PathBuf> = required(located_path()),
        /// The room on the disk. The object that is used least makes room.
        pub size: u64 = size(1024 * MIB, MIB, 1024 * 1024 * 1024 * MIB),
        /// The longest response that is kept.
        pub max_object: u64 = size(256 * MIB, 1, 1024 * 1024 * MIB),
    }
}

settings! {
    /// Which responses of a backend are kept, and for how long.
    pub struct RouteCache {
        /// The `[[cache]]` they are kept in.
        pub store: Located<String> = required(located_text(&rules::BACKEND_NAME)),
        /// The time a response is used whose backend does not say it, by `Cache-Control` or `Expires`. `"0s"`: it is not kept.
        pub default: Duration = duration(
            Duration::ZERO, Duration::ZERO, Duration::from_hours(24 * 365)),
        /// Up to how long a response is used that says only when it was last modified: for a tenth of the time since then.
        /// `"0s"`: for `default`, like one that says nothing.
        pub heuristic: Duration = duration(
            Duration::ZERO, Duration::ZERO, Duration::from_hours(24 * 365)),
        /// A header of responses that says what this cache does, in place of `Cache-Control` and `Expires`, which are for others
        /// then (RFC 9213): `CDN-Cache-Control`, or one of your own.
        pub targeted: Option<String> = optional(text(&rules::HEADER_NAME, ""), "`Cache-Control` only"),
        /// The additional time for which a response may be used when the backend fails, where the response does not say that
        /// itself.
        pub stale_if_error: Duration = duration(
            Duration::ZERO, Duration::ZERO, Duration::from_hours(24 * 365)),
        /// Headers of requests that the backend sees, and by which responses may differ. No other header of a client's reaches
        /// a backend whose response is kept.
        pub vary: Vec<String> = texts(&rules::FIELD_NAME, &["accept-encoding"]),
        /// Answers requests with cookies as if they had none. Otherwise they get what is kept only where the backend said that
        /// it is for everybody (`public`, `s-maxage`), and are passed on as they are where it did not.
        pub ignore_cookies: bool = flag(false),
        /// The header of responses that lists what `kettle ctl cache purge --tag` knows them by. Clients do not see it.
        pub tags: Option<String> = optional(text(&rules::HEADER_NAME, ""), "no tags"),
    }
}
