//! `kettle serve`: a folder over HTTPS without a configuration file.

mod domains;

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use kettle_config::{
    Certificate, Config, Diagnostic, HttpsListener, ListenAddress, ListenerKind, Located, PlainHttp,
};
use kettle_supervisor::{Supervisor, prepare};

use crate::cli::ServeArguments;
use crate::one_liner::{
    log_to_terminal, print_certificates, run, site_names, url, urls_for_others,
};
use crate::output::{fail, fail_with, print_line};

/// Serves until told to stop.
pub(crate) fn serve(arguments: &ServeArguments) -> ExitCode {
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
    let has_domain = !arguments.domains.domain.is_empty();
    if let Some(refusal) = domains::refusal(&arguments.domains).filter(|_| has_domain) {
        return fail(refusal);
    }
    match config(arguments, &directory) {
        // The fate of the certificate is news.
        Ok(config) => {
            let level = if has_domain { "info" } else { "warn" };
            run(config, level, |supervisor| greet(supervisor, arguments, &directory))
        }
        Err(diagnostics) => fail_with(&diagnostics),
    }
}

/// The configuration that the command line stands for.
///
/// # Errors
/// The fault of the names that a certificate is fetched for.
fn config(arguments: &ServeArguments, directory: &Path) -> Result<Config, Vec<Diagnostic>> {
    let has_domain = !arguments.domains.domain.is_empty();
    let mut config = match has_domain {
        true => domains::config(&arguments.domains, arguments.listen, directory)?,
        false => Config::for_folder(directory, arguments.address()),
    };
    config.server.workers = arguments.workers.map(usize::from);
    // An author that saves a file and loads the page again wants to see it.
    config.limits.revalidate = Duration::ZERO;
    if !arguments.quiet {
        log_to_terminal(&mut config);
    }
    config.server.state_directory = prepare::default_state_directory();
    for listener in config.listeners.iter_mut().filter(|listener| listener.https().is_some()) {
        listener.kind = ListenerKind::Https(HttpsListener {
            path: arguments.path,
            crossover: arguments.crossover,
            // A person that tries things out types addresses by hand.
            plain_http: PlainHttp::Redirect,
            ..HttpsListener::default()
        });
    }
    for site in &mut config.sites {
        if !has_domain {
            site.names = site_names(arguments.address(), arguments.cert.is_none());
        }
        if let (Some(chain), Some(key)) = (&arguments.cert, &arguments.key) {
            site.self_signed = false;
            site.certificates = vec![Certificate {
                chain: Located::not_written(chain.clone()),
                key: Located::not_written(key.clone()),
                ..Certificate::default()
            }];
        }
        for route in &mut site.routes {
            route.listing = does_list(arguments);
        }
    }
    Ok(config)
}

/// Lists folders where it was asked to, and where nobody else can see them.
fn does_list(arguments: &ServeArguments) -> bool {
    arguments.browse || arguments.address().ip().is_loopback()
}

fn greet(supervisor: &Supervisor, arguments: &ServeArguments, directory: &Path) {
    for name in &arguments.domains.domain {
        print_line(format_args!("https://{name}/  ({})", directory.display()));
    }
    let is_named = !arguments.domains.domain.is_empty();
    let addresses = supervisor.addresses();
    for address in addresses.iter().filter(|_| !is_named).filter_map(ListenAddress::socket) {
        print_line(format_args!("{}  ({})", url(address), directory.display()));
        for url in urls_for_others(address) {
            print_line(format_args!("{url}  (from other devices)"));
        }
    }
    if !does_list(arguments) && !directory.join("index.html").exists() {
        print_line("There is no index.html here, so / gets 403; --browse lists folders");
    }
    print_certificates(supervisor);
    print_line(supervisor.tx_path_line());
}

#[cfg(test)]
mod tests;
