//! `kettle run`: the server that a configuration file describes.

use std::process::ExitCode;

use kettle_config::Config;
use kettle_supervisor::{StartError, Supervisor, read};

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
    match start(config) {
        Ok(code) | Err(code) => code,
    }
}

fn start(config: Config) -> Result<ExitCode, ExitCode> {
    let supervisor = Supervisor::start(config, doctor::obstacle).map_err(|error| match error {
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
