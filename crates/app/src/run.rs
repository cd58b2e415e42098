//! `kettle run`: the server that a configuration file describes.

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
        Ok(config) => config,
        Err(diagnostics) => return fail_for_good_with(&diagnostics),
    };
    logging::start(&config.log.level);
    let path = argument.path().to_path_buf();
    match start(config, Some(Arc::new(move || read_again(&path)))) {
        Ok(supervisor) => run_to_end(supervisor, log_addresses),
        Err(code) => code,
    }
}

/// Loads, binds and starts all that a configuration asks for, or says what is wrong with it. Without a loader a reload
/// reads the files that it names, and no others.
///
/// # Errors
/// How the command exits.
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
    tracing::info!("{}", supervisor.placement_line());
}
