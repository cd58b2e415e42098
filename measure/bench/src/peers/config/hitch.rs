//! The words of hitch.conf.

use kettle_kernel::process;

use super::{ConfigInput, Words};

pub(super) fn words(input: &ConfigInput<'_>) -> Words {
    let backend = input.setup.backend;
    let backend = backend.map(|to| format!("[{}]:{}", to.ip(), to.port())).unwrap_or_default();
    // It insists on another user when it is started by root, and takes none otherwise.
    let user = if process::is_root() { "user = \"nobody\"\ngroup = \"nogroup\"" } else { "" };
    vec![("BACKEND_IN_BRACKETS", backend), ("USER", user.to_owned())]
}
