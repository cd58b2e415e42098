//! Files that a route refuses by their names, whatever is there.

use kettle_config::{Coding, DenyPatterns, Route};
use kettle_exchange::request::as_read_otherwise;

/// The files that a route denies.
#[derive(Clone, Debug)]
pub struct DeniedFiles {
    /// The route's, without its last slash.
    prefix: String,
    patterns: DenyPatterns,
    /// Forms of a file that lie next to it, and are not served where the file is not.
    codings: Vec<Coding>,
}

impl DeniedFiles {
    /// Those of a route; none if it denies none.
    pub fn of(route: &Route) -> Option<Self> {
        (!route.deny_files.is_empty()).then(|| Self {
            prefix: route.replaced().to_owned(),
            patterns: DenyPatterns::new(&route.deny_files),
            codings: route.precompressed.clone(),
        })
    }

    /// True for the decoded path of a denied file, or of a compressed form of one; also if only a server that reads paths
    /// otherwise would find the file there.
    pub fn have(&self, path: &str) -> bool {
        let read_otherwise = as_read_otherwise(path).filter(|plain| plain != path);
        self.fit(path) || read_otherwise.is_some_and(|plain| self.fit(&plain))
    }

    /// The same for a path below the route's prefix, without a leading slash.
    pub fn have_below(&self, relative: &str) -> bool {
        self.have(&format!("{}/{relative}", self.prefix))
    }

    fn fit(&self, path: &str) -> bool {
        let plain = path.strip_suffix('/').unwrap_or(path);
        let mut files = self.codings.iter().filter_map(|it| plain.strip_suffix(it.suffix()));
        self.patterns.fit(path) || files.any(|file| self.patterns.fit(file))
    }
}
