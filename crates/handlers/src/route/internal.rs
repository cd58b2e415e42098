//! The files that servers may hand over: those of a site's internal routes, by where they lie.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::{Route, Site};

/// The folders of a site's internal routes, each with what it stands for in a path.
#[derive(Debug)]
pub(super) struct InternalRoutes(HashMap<PathBuf, String>);

impl InternalRoutes {
    /// Those of a site; none if it has no internal route.
    pub(super) fn of(site: &kettle_config::Site) -> Option<Box<Self>> {
        let internal = || site.routes.iter().filter(|route| route.internal);
        internal().next()?;
        let mut roots = HashMap::new();
        for route in internal().filter(|route| route.regex.is_none()) {
            if let Some(root) = &route.root {
                let prefix = route.replaced().to_owned();
                roots.entry(root.value.clone()).or_insert(prefix);
            }
        }
        Some(Box::new(Self(roots)))
    }

    /// The path that a file has by the nearest folder above it.
    fn path_of(&self, file: &Path) -> Option<String> {
        let above = file.ancestors().skip(1);
        let (root, prefix) = above.into_iter().find_map(|folder| self.0.get_key_value(folder))?;
        let below = file.strip_prefix(root).ok()?.to_str()?;
        Some(format!("{prefix}/{below}"))
    }
}

impl Site {
    /// True if its servers may name what is sent in place of their answers.
    pub fn takes_over(&self) -> bool {
        self.internal.is_some()
    }

    /// The path of a file of an internal route.
    pub fn path_of(&self, file: &str) -> Option<String> {
        self.internal.as_ref()?.path_of(Path::new(file))
    }
}

impl Route {
    /// True if no client may ask for it.
    pub fn is_internal(&self) -> bool {
        self.rules.as_ref().is_some_and(|rules| rules.is_internal)
    }
}
