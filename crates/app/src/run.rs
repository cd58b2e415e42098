//! `kettle run`: the server that a configuration file describes.

use std::env;
use std::process::ExitCode;
use std::sync::Arc;

use kettle_config::Config;
use kettle_supervisor::{Loader, StartError, Supervisor, hold_commands, read, read_again};

use crate::cli::ConfigArgument;
use crate::output::{fail, fail_for_good_with, fail_with};
use crate::{doctor, logging};

/// Does what a command does that serves, whose signals wait until it does: whoever knows the number of this process may tell it
/// to reload.
pub(crate) fn holding_commands(serve: impl FnOnce() -> ExitCode) -> ExitCode {
    match hold_commands() {
        Ok(()) => serve(),
        Err(error) => fail(format_args!("signals cannot be held: {error}")),
    }
}

/// Serves until told to stop.
pub(crate) fn run(argument: &ConfigArgument) -> ExitCode {
    let config = match read(argument.path()) {
        Ok(config) => with_socket_of_unit(config),
        Err(diagnostics) => return fail_for_good_with(&diagnostics),
    };
    logging::start(&config.log.level);
    let path = argument.path().to_path_buf();
    match start(config, Some(Arc::new(move || read_again(&path).map(with_socket_of_unit)))) {
        Ok(supervisor) => run_to_end(supervisor, log_addresses),
        Err(code) => code,
    }
}

/// Under systemd `systemctl reload` asks at the control socket, so there is one where the file says nothing of it: in the folder that
/// `RuntimeDirectory=` of the unit makes (systemd.exec(5)).
fn with_socket_of_unit(mut config: Config) -> Config {
    if config.admin.socket.is_none()
        && let Some(folders) = env::var_os("RUNTIME_DIRECTORY")
        && let Some(folder) = env::split_paths(&folders).next().filter(|it| it.is_absolute())
    {
        config.admin.socket = Some(folder.join("admin.sock"));
    }
    config
}

/// Loads, binds and starts all that a configuration asks for, or says what is wrong with it. Without a loader a reload
/// reads the files that it names, and no others.
///
/// # Errors
/// The exit code of the command.
pub(crate) fn start(config: Config, loader: Option<Loader>) -> Result<Supervisor, ExitCode> {
    Supervisor::start(config, loader, doctor::obstacle).map_err(|error| match error {
        StartError::Diagnostics(diagnostics) => fail_with(&diagnostics),
        StartError::Refused(message) => fail(message),
    })
}

/// Runs a server to its end, and says how the command exits. `ready` is called once it serves.
pub(crate) fn run_to_end(supervisor: Supervisor, ready: impl FnOnce(&Supervisor)) -> ExitCode {
    let outcome = supervisor.run(ready);
    outcome.unwrap_or_else(|error| fail(format_args!("the server cannot go on: {error}")))
}

/// Says where it listens, and where records are encrypted.
pub(crate) fn log_addresses(supervisor: &Supervisor) {
    for address in supervisor.addresses() {
        tracing::info!("listening on {address}");
    }
    tracing::info!("{}", supervisor.tx_path_line());
}
