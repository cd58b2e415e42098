//! `kettle terminate` and `kettle originate`: a tunnel without a configuration file.

use std::process::ExitCode;

use kettle_config::{
    Backend, BackendServer, BackendTls, Certificate, Config, Listener, ListenerKind, Located,
    Roots, ServerAddress, Site, TcpListener, TlsListener,
};
use kettle_supervisor::{Supervisor, prepare};

use crate::cli::{OriginateArguments, TerminateArguments, TunnelArguments};
use crate::one_liner::{log_to_terminal, print_certificates, run};
use crate::output::print_line;

/// Ends TLS in front of other servers until told to stop.
pub(crate) fn terminate(arguments: &TerminateArguments) -> ExitCode {
    let to: Vec<String> = arguments.to.iter().map(ServerAddress::to_string).collect();
    run(terminating(arguments), |supervisor| {
        for address in supervisor.addresses() {
            print_line(format_args!("TLS on {address}, plain to {}", to.join(", ")));
        }
        print_certificates(supervisor);
        print_line(supervisor.placement_line());
    })
}

/// Takes plain connections to a server that speaks TLS until told to stop.
pub(crate) fn originate(arguments: &OriginateArguments) -> ExitCode {
    run(originating(arguments), |supervisor: &Supervisor| {
        for address in supervisor.addresses() {
            print_line(format_args!("plain on {address}, TLS to {}", arguments.to));
        }
        print_line(supervisor.placement_line());
    })
}

fn terminating(arguments: &TerminateArguments) -> Config {
    let tunnel = &arguments.tunnel;
    let kind = ListenerKind::Tls(TlsListener {
        backend: Some(Located::not_written(BACKEND.to_owned())),
        alpn: arguments.alpn.clone(),
        starttls: tunnel.starttls,
        path: tunnel.path,
        crossover: tunnel.crossover,
        ..TlsListener::default()
    });
    let certificate = certificate(arguments.cert.as_ref(), arguments.key.as_ref());
    let site = Site {
        // Whatever name the machine is reached by.
        names: vec![Located::not_written("_".to_owned())],
        default: true,
        self_signed: certificate.is_none(),
        certificates: certificate.into_iter().collect(),
        ..Site::default()
    };
    let listener =
        Listener { address: Located::not_written(arguments.listen), kind, ..Listener::default() };
    let mut config = config(tunnel, listener, &arguments.to, None);
    config.sites = vec![site];
    config
}

fn originating(arguments: &OriginateArguments) -> Config {
    let tunnel = &arguments.tunnel;
    let tls = BackendTls {
        name: arguments.name.clone(),
        roots: match &arguments.roots {
            Some(file) => Roots::File(Located::not_written(file.clone())),
            None => Roots::System,
        },
        pins: arguments.pin.clone(),
        certificate: certificate(arguments.cert.as_ref(), arguments.key.as_ref()),
        alpn: arguments.alpn.clone(),
        starttls: tunnel.starttls,
    };
    let kind = ListenerKind::Tcp(TcpListener {
        backend: Located::not_written(BACKEND.to_owned()),
        path: tunnel.path,
        crossover: tunnel.crossover,
    });
    let listener =
        Listener { address: Located::not_written(arguments.listen), kind, ..Listener::default() };
    config(tunnel, listener, std::slice::from_ref(&arguments.to), Some(tls))
}

/// What both directions have in common.
fn config(
    tunnel: &TunnelArguments,
    listener: Listener,
    to: &[ServerAddress],
    tls: Option<BackendTls>,
) -> Config {
    let servers = to.iter().map(|address| BackendServer {
        address: Located::not_written(address.clone()),
        ..BackendServer::default()
    });
    let backend = Backend {
        name: Located::not_written(BACKEND.to_owned()),
        servers: servers.collect(),
        send_proxy: tunnel.proxy,
        tls,
        ..Backend::default()
    };
    let mut config = Config::default();
    (config.listeners, config.backends) = (vec![listener], vec![backend]);
    config.server.workers = tunnel.workers.map(usize::from);
    config.server.state_directory = prepare::default_state_directory();
    if !tunnel.quiet {
        log_to_terminal(&mut config);
    }
    config
}

fn certificate(
    chain: Option<&std::path::PathBuf>,
    key: Option<&std::path::PathBuf>,
) -> Option<Certificate> {
    Some(Certificate {
        chain: Located::not_written(chain?.clone()),
        key: Located::not_written(key?.clone()),
        ..Certificate::default()
    })
}

/// The only backend there is.
const BACKEND: &str = "backend";
