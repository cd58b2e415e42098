//! `kettle serve`: a folder over HTTPS without a configuration file.

use std::io::{self, IsTerminal};
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;

use kettle_config::{
    Certificate, Config, HttpsListener, ListenerKind, Located, LogFormat, LogTarget, PlainHttp,
};
use kettle_supervisor::prepare::MadeCertificate;
use kettle_supervisor::{StartError, Supervisor, prepare};

use crate::cli::ServeArguments;
use crate::output::{fail, fail_with, print_line};
use crate::{doctor, logging};

/// Serves until told to stop.
pub(crate) fn serve(arguments: &ServeArguments) -> ExitCode {
    logging::start("warn");
    let directory = match arguments.directory.canonicalize() {
        Ok(directory) => directory,
        Err(error) => {
            let directory = arguments.directory.display();
            return fail(format_args!(
                "cannot serve {directory}: {error}\nhelp: `kettle serve DIR` serves the folder DIR, \
                 `kettle serve` this one"
            ));
        }
    };
    let config = config(arguments, &directory);
    let supervisor = match Supervisor::start(config, doctor::obstacle) {
        Ok(supervisor) => supervisor,
        Err(StartError::Findings(findings)) => return fail_with(&findings),
        Err(error) => return fail(error),
    };
    let outcome = supervisor.run(|supervisor| greet(supervisor, arguments, &directory));
    outcome.unwrap_or_else(|error| fail(format_args!("the server cannot go on: {error}")))
}

/// The configuration that the command line stands for.
fn config(arguments: &ServeArguments, directory: &Path) -> Config {
    let mut config = Config::for_folder(directory, arguments.address());
    config.server.workers = arguments.workers.map(usize::from);
    if io::stdout().is_terminal() && !arguments.quiet {
        config.log.access = Some(LogTarget::Stdout);
        config.log.format = LogFormat::Short;
        config.log.buffer = 0;
    }
    config.server.state_directory = prepare::default_state_directory();
    for listener in &mut config.listeners {
        listener.kind = ListenerKind::Https(HttpsListener {
            path: arguments.path,
            crossover: arguments.crossover,
            // Who tries things out types addresses by hand.
            plain_http: PlainHttp::Redirect,
        });
    }
    for site in &mut config.sites {
        // Whatever name the machine is reached by, this is its only site.
        site.names = vec![Located::not_written("_".to_owned())];
        if let (Some(chain), Some(key)) = (&arguments.cert, &arguments.key) {
            site.self_signed = false;
            site.certificates = vec![Certificate {
                chain: Located::not_written(chain.clone()),
                key: Located::not_written(key.clone()),
                ..Certificate::default()
            }];
        }
        for route in &mut site.routes {
            route.listing = arguments.browse;
        }
    }
    config
}

fn greet(supervisor: &Supervisor, arguments: &ServeArguments, directory: &Path) {
    for address in supervisor.addresses() {
        print_line(format_args!("{}  ({})", url(address), directory.display()));
    }
    if !arguments.browse && !directory.join("index.html").exists() {
        print_line("There is no index.html here, so / gets 403; --browse lists folders");
    }
    for fingerprint in supervisor.fingerprints() {
        print_line(format_args!("Certificate: SHA-256 {fingerprint}"));
    }
    if let (Some(made), Some(address)) =
        (supervisor.made_certificate(), supervisor.addresses().first())
    {
        print_line(how_to_trust(made, *address));
    }
    print_line(supervisor.placement_line());
}

/// The certificate was made on this machine, so that clients warn until they are told to trust it.
fn how_to_trust(made: &MadeCertificate, address: SocketAddr) -> String {
    let url = url(address);
    match made {
        MadeCertificate::KeptIn(file) => {
            format!("Made on this machine. Trust it: curl --cacert {} {url}", file.display())
        }
        MadeCertificate::InMemory { reason } => {
            let host = url.trim_start_matches("https://").trim_end_matches('/');
            let port = if address.port() == HTTPS_PORT { ":443" } else { "" };
            format!(
                "Made for this run only ({reason}). Trust it:\n  \
                 openssl s_client -connect {host}{port} </dev/null 2>/dev/null | openssl x509 >kettle.pem\n  \
                 curl --cacert kettle.pem {url}"
            )
        }
    }
}

/// What to type into a browser on this machine.
fn url(address: SocketAddr) -> String {
    let port = address.port();
    let host = match address.ip() {
        ip if ip.is_loopback() || ip.is_unspecified() => "localhost".to_owned(),
        ip if ip.is_ipv6() => format!("[{ip}]"),
        ip => ip.to_string(),
    };
    match port {
        HTTPS_PORT => format!("https://{host}/"),
        _ => format!("https://{host}:{port}/"),
    }
}

/// The port a browser takes when none is written.
const HTTPS_PORT: u16 = 443;

#[cfg(test)]
mod tests;
