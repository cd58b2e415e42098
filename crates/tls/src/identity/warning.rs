//! The doubts about an identity that loads: a server starts with it and names them, `kettle check` counts the serious ones as
//! mistakes.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use time::OffsetDateTime;

use crate::error::FileRole;

/// A finding about an identity that could be loaded. Its words stand where it is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentityWarning {
    path: PathBuf,
    text: String,
    is_serious: bool,
}

impl IdentityWarning {
    /// Makes one because of which clients will refuse the connection.
    pub(crate) fn serious(path: &Path, text: String) -> Self {
        Self { path: path.into(), text, is_serious: true }
    }

    /// Makes one in spite of which most clients connect.
    pub(crate) fn mild(path: &Path, text: impl Into<String>) -> Self {
        Self { path: path.into(), text: text.into(), is_serious: false }
    }

    /// Makes one about a file that is to be secret, if every user may read it.
    pub(crate) fn of_mode(role: FileRole, path: &Path, mode: u32) -> Option<Self> {
        let shown = path.display();
        (mode & READABLE_BY_OTHERS != 0).then(|| {
            let fault = format!("the {role} {shown} can be read by every user (mode {mode:04o})");
            Self::mild(path, format!("{fault}; run `chmod o-r {shown}`"))
        })
    }

    /// True if clients will refuse the connection because of it: `kettle check` fails then.
    pub fn is_serious(&self) -> bool {
        self.is_serious
    }

    /// The file it is about.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl fmt::Display for IdentityWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A moment as `2026-11-21 20:56:03 UTC`.
pub struct Utc(pub SystemTime);

impl fmt::Display for Utc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let moment = OffsetDateTime::from(self.0);
        let (hour, minute, second) = moment.to_hms();
        write!(f, "{} {hour:02}:{minute:02}:{second:02} UTC", moment.date())
    }
}

/// Everyone. A group is how operators let the serving user read a key that stays root's.
pub(crate) const READABLE_BY_OTHERS: u32 = 0o004;
