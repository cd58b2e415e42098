//! Which folders the paths of roots name now.
//!
//! Requests look for their files at the same time, some on threads that wait for a disk. A look that was overtaken by another one,
//! which saw a release that came later, is begun again: no client is answered by a release that is older than one it has seen.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use kettle_kernel::transfer::Wait;
use rustix::io::Errno;

use super::file_route::FileRoute;
use super::root::{Root, SWAPS_MAX};

/// The roots of one worker's routes as they were last seen.
#[derive(Debug)]
pub struct CurrentRoots {
    /// The time a root is taken for what its path names.
    revalidate: Duration,
    /// By the number of their route.
    seen: RefCell<HashMap<u64, SeenRoot>>,
}

/// A root, and when it was last known to be what its path names.
#[derive(Clone, Debug)]
struct SeenRoot {
    root: Arc<Root>,
    looked: Duration,
    /// The route's generation when that look began.
    generation: u64,
}

/// The finding of a lookup, and the root below which it was found.
#[derive(Debug)]
pub struct RootLookup<T> {
    /// The finding.
    pub found: T,
    /// Below what.
    pub root: Arc<Root>,
    /// When that was last known to be what its path names.
    pub looked: Duration,
    /// True if the root is another one than before: what is remembered of that is out of date.
    pub is_root_new: bool,
}

impl CurrentRoots {
    /// Nothing was seen so far; roots are looked at again after this time.
    pub fn new(revalidate: Duration) -> Self {
        Self { revalidate, seen: RefCell::default() }
    }

    /// Forgets which roots there were.
    pub fn forget(&self) {
        self.seen.borrow_mut().clear();
    }

    /// The root as it was last seen, and whether that was within the period of revalidation.
    pub fn known(&self, route: &FileRoute, now: Duration) -> Known {
        let generation = route.generation.now();
        match self.seen.borrow().get(&route.number) {
            Some(seen) => {
                let is_fresh = now < seen.looked + self.revalidate && seen.generation == generation;
                let fresh_since = is_fresh.then_some(seen.looked);
                Known { root: Arc::clone(&seen.root), fresh_since, generation }
            }
            None => Known { root: Arc::clone(&route.root), fresh_since: None, generation },
        }
    }

    /// True if this is the root that was seen last.
    pub fn is_current(&self, route: &FileRoute, root: &Root) -> bool {
        self.seen.borrow().get(&route.number).is_some_and(|seen| seen.root.is(root))
    }

    /// True if another look has seen a root meanwhile that this one knows nothing of. Which of the two came
    /// first cannot be told.
    pub fn is_overtaken(&self, route: &FileRoute, known: &Known, below: &Below) -> bool {
        let seen = self.seen.borrow();
        let current = seen.get(&route.number).map_or(&route.root, |seen| &seen.root);
        !current.is(&known.root) && !current.is(&below.root)
    }

    /// Remembers the root something was seen below, unless that look was overtaken.
    pub fn remember<T>(
        &self,
        route: &FileRoute,
        known: &Known,
        below: Below,
        found: T,
        now: Duration,
    ) -> RootLookup<T> {
        let looked = match (known.fresh_since, below.is_renewed) {
            (Some(looked), false) => looked,
            _ => now,
        };
        let is_overtaken = self.is_overtaken(route, known, &below);
        let mut seen = self.seen.borrow_mut();
        let current = seen.get(&route.number);
        let is_root_new = !current.map_or(&route.root, |seen| &seen.root).is(&below.root);
        // A look that took long does not make its root older than it is.
        let is_newer = is_root_new
            || current
                .is_none_or(|seen| seen.looked < looked || seen.generation < known.generation);
        if is_newer && !is_overtaken {
            let root = Arc::clone(&below.root);
            seen.insert(route.number, SeenRoot { root, looked, generation: known.generation });
        }
        RootLookup { found, root: below.root, looked, is_root_new }
    }
}

/// A root that may be out of date.
#[derive(Clone)]
pub struct Known {
    /// As it was last seen.
    pub root: Arc<Root>,
    /// When it was last looked at, if that was within the period of revalidation, and no worker has found out anything since.
    fresh_since: Option<Duration>,
    /// The route's generation.
    generation: u64,
}

/// The root that was looked below.
pub struct Below {
    /// Another one than was known, if its path names another folder.
    pub root: Arc<Root>,
    /// True if its path was looked at.
    is_renewed: bool,
}

impl Known {
    /// Looks for something below the root, and looks at the root's path before where that is due.
    ///
    /// Unless `is_sure` of what was found, the path must still name the same root afterwards: what
    /// is missing in a release that was just exchanged for another may be in that one.
    ///
    /// # Errors
    /// The kernel's, if there is no root; [`Errno::AGAIN`] if the look may not wait and would have to.
    pub fn look_below<T>(
        &self,
        wait: Wait,
        look: impl Fn(&Root) -> T,
        is_sure: impl Fn(&T) -> bool,
    ) -> Result<(Below, T), Errno> {
        let mut is_renewed = self.fresh_since.is_none();
        let mut root = if is_renewed { self.root.renewed(wait)? } else { Arc::clone(&self.root) };
        let mut swaps_left = SWAPS_MAX;
        loop {
            let found = look(&root);
            if is_sure(&found) {
                return Ok((Below { root, is_renewed }, found));
            }
            let renewed = root.renewed(wait)?;
            is_renewed = true;
            swaps_left -= 1;
            if Arc::ptr_eq(&root, &renewed) || swaps_left == 0 {
                return Ok((Below { root, is_renewed }, found));
            }
            root = renewed;
        }
    }
}

#[cfg(test)]
mod tests;
