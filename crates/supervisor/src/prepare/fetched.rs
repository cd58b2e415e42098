//! The obstacles to certificates that are fetched: where the state lies, and programs that are not run.

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use kettle_acme::programs::may_be_run;
use kettle_config::{Config, Diagnostic, Sandboxing};
use kettle_kernel::file_system::FileSystem;

/// The warnings. None where nothing is fetched.
pub(super) fn warnings(config: &Config) -> Vec<Diagnostic> {
    if config.acme.is_empty() || config.wanted_certificates().next().is_none() {
        return Vec::new();
    }
    let state = &config.server.state_directory;
    let at = config.position_of("server.state_directory");
    let shown = state.display().to_string();
    let warn =
        |message: String, help: &str| config.diagnostic(at, &shown, message, Some(help.to_owned()));
    let mut warnings = Vec::new();
    if let Some(what) = passing(state) {
        let message = format!(
            "{shown} lies {what}: each start without it orders anew, and authorities count (Let's Encrypt: 5 certificates of the same \
             names in a week)"
        );
        warnings.push(warn(message, "name a folder that stays, such as one of a volume"));
    }
    let own = |path: &Path| std::path::absolute(path).ok().and_then(|it| it.canonicalize().ok());
    if config.server.sandbox != Sandboxing::Off
        && !config.path.as_os_str().is_empty()
        && let (Some(file), Some(state)) = (own(&config.path), own(state))
        && file.parent().is_some_and(|folder| state.starts_with(folder))
    {
        let message = format!(
            "{shown} lies in the folder of the configuration: a file that takes the place of this one, as editors write it, cannot be read \
             by a reload, since the keys of accounts are kept from the server"
        );
        warnings.push(warn(message, "name a folder elsewhere, such as /var/lib/kettle"));
    }
    let programs = config.wanted_certificates().flat_map(|it| [&it.how.hook, &it.how.after]);
    for program in programs.flatten() {
        // That it is not there is said elsewhere, or it comes later.
        if let Some(refused) =
            program.value.exists().then(|| may_be_run(program)).and_then(Result::err)
        {
            let shown = program.value.display().to_string();
            warnings.push(config.diagnostic(program.at, &shown, refused, None));
        }
    }
    warnings
}

/// Says where a folder lies that does not stay, if it does not: in memory, or in what goes with a container.
fn passing(folder: &Path) -> Option<&'static str> {
    let kind = |path: &Path| FileSystem::of(File::open(path).ok()?.as_fd()).ok();
    let absolute = std::path::absolute(folder).ok()?;
    let there = absolute.ancestors().find(|path| path.exists())?;
    let own = kind(there)?;
    if own.is_memory() {
        return Some("in memory (tmpfs), which is lost with the machine");
    }
    let device = |path: &Path| path.metadata().ok().map(|metadata| metadata.dev());
    let is_of_layer = own.name() == "overlayfs" && device(there) == device(Path::new("/"));
    is_of_layer.then_some("in the container's own layer, which is lost with it")
}
