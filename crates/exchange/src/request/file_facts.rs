//! The facts for one request on files: the program that was found for it, and those about which conditions ask. Routes are found without a wait: what is not known yet is wanted,
//! looked for, and the route is then found anew, so that all conditions of a request see one state.

use std::cell::{Cell, OnceCell, RefCell};

use kettle_runtime::disk::DiskDeadline;

/// The kind of file at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum There {
    /// Nothing that is served.
    Nothing,
    /// A file.
    File,
    /// A folder.
    Folder,
}

/// A path below a folder of the site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileQuestion {
    /// The number of the folder.
    pub look: usize,
    /// The path below it, without a slash at its beginning.
    pub relative: Box<str>,
}

/// A file that an application is to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Its path below the root of the route, with its slash.
    pub path: String,
    /// The part of the request's path that goes on behind it.
    pub path_info: String,
}

/// The findings for a request; most ask for nothing.
#[derive(Debug, Default)]
pub struct FileFacts(OnceCell<Box<Facts>>);

#[derive(Debug, Default)]
struct Facts {
    known: RefCell<Vec<(FileQuestion, There)>>,
    wanted: RefCell<Option<FileQuestion>>,
    deadline: Cell<Option<DiskDeadline>>,
}

impl FileFacts {
    /// Returns the kind of file; `None` if that is not known, and is wanted from now on.
    pub fn find(&self, look: usize, relative: &str) -> Option<There> {
        let Facts { known, wanted: first, .. } = &**self.0.get_or_init(Box::default);
        let known = known.borrow();
        let is_it = |wanted: &FileQuestion| wanted.look == look && *wanted.relative == *relative;
        if let Some((_, there)) = known.iter().find(|(wanted, _)| is_it(wanted)) {
            return Some(*there);
        }
        let wanted = || FileQuestion { look, relative: relative.into() };
        first.borrow_mut().get_or_insert_with(wanted);
        None
    }

    /// The first path that is wanted. Until it is known, what was found may be wrong.
    #[must_use]
    pub fn take_wanted(&self) -> Option<FileQuestion> {
        self.0.get()?.wanted.borrow_mut().take()
    }

    /// Notes what is there. False if a request has asked for too many.
    pub fn learn(&self, wanted: FileQuestion, there: There) -> bool {
        let mut known = self.0.get_or_init(Box::default).known.borrow_mut();
        known.push((wanted, there));
        known.len() <= KNOWN_MAX
    }

    /// When all looks of the request are given up.
    pub fn deadline(&self, begin: impl FnOnce() -> DiskDeadline) -> DiskDeadline {
        let facts = self.0.get_or_init(Box::default);
        let deadline = facts.deadline.get().unwrap_or_else(begin);
        facts.deadline.set(Some(deadline));
        deadline
    }
}

/// Ten steps through routes, each with as many conditions as there may be.
const KNOWN_MAX: usize = 1_000;
