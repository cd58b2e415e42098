//! `kettle run`: the server that a configuration file describes.

use std::process::ExitCode;
use std::sync::Arc;

use kettle_config::Config;
use kettle_supervisor::{Loader, StartError, Supervisor, read};

use crate::cli::ConfigArgument;
use crate::output::{fail, fail_with};
use crate::{doctor, logging};

/// Serves until told to stop.
pub(crate) fn run(argument: &ConfigArgument) -> ExitCode {
    let config = match read(argument.path()) {
        Ok(config) => config,
        Err(findings) => return fail_with(&findings),
    };
    logging::start(&config.log.level);
    let path = argument.path().to_path_buf();
    match start(config, Arc::new(move || read(&path))) {
        Ok(code) | Err(code) => code,
    }
}

fn start(config: Config, loader: Loader) -> Result<ExitCode, ExitCode> {
    let supervisor =
        Supervisor::start(config, Some(loader), doctor::obstacle).map_err(|error| match error {
            StartError::Findings(findings) => fail_with(&findings),
            StartError::Refused(message) => fail(message),
        })?;
    let outcome = supervisor.run(|supervisor| {
        for address in supervisor.addresses() {
            tracing::info!("listening on {address}");
        }
        tracing::info!("{}", supervisor.placement_line());
    });
    outcome.map_err(|error| fail(format_args!("the server cannot go on: {error}")))
}
