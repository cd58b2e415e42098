//! The faults of the folders and files that routes name, for the operator.

use std::path::PathBuf;

use kettle_config::{Config, Diagnostic, Located};
use kettle_kernel::process;
use rustix::io::Errno;

use crate::guard::UsersMistake;

/// A mistake in a file that the configuration names.
pub(super) fn users_diagnostic(mistake: UsersMistake) -> Diagnostic {
    let UsersMistake { path, line, message, help } = mistake;
    let column = usize::from(line > 0);
    let offending = String::new();
    let source_line = None;
    Diagnostic { path, line, column, offending, message, help, source_line }
}

/// A root that cannot be opened.
pub(super) fn root_diagnostic(
    config: &Config,
    root: &Located<PathBuf>,
    error: Errno,
) -> Diagnostic {
    let path = root.value.display().to_string();
    let (message, help) = match error {
        // Containers with an old seccomp profile answer EPERM to calls they do not know.
        Errno::NOSYS | Errno::PERM => (
            "files cannot be opened safely here: openat2 is missing".to_owned(),
            Some(
                "run Linux 5.6 or later, in a container that allows openat2 or a unit without RestrictSUIDSGID="
                    .to_owned(),
            ),
        ),
        Errno::MFILE => (format!("cannot open {path}: {error}"), Some(descriptors_help())),
        error => (format!("cannot open {path}: {error}"), None),
    };
    config.diagnostic(root.at, &path, message, help)
}

/// Returns the advice where descriptors have run out.
fn descriptors_help() -> String {
    let limit = process::open_files_limit().current.map_or_else(String::new, |it| format!(" {it}"));
    format!(
        "this process may have{limit} descriptors, of which each folder that a route serves takes one: raise LimitNOFILE= of the \
         unit, --ulimit nofile= of the container, or `ulimit -n`, and restart kettle"
    )
}
