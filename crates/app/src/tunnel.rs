//! `kettle terminate` and `kettle originate`: a tunnel without a configuration file.

use std::net::SocketAddr;
use std::process::ExitCode;

use kettle_config::{
    Backend, BackendServer, BackendTls, Certificate, Config, Listener, ListenerKind, Located,
    Roots, ServerAddress, Site, TcpListener, TlsListener, do_protocols_fit, leads_back,
};
use kettle_supervisor::{Supervisor, prepare};

use crate::cli::{OriginateArguments, TerminateArguments, TunnelArguments};
use crate::one_liner::{log_to_terminal, print_certificates, run, site_names};
use crate::output::{fail, print_line};

/// Ends TLS in front of other servers until told to stop.
pub(crate) fn terminate(arguments: &TerminateArguments) -> ExitCode {
    if let Some(code) = refuse(arguments.listen, &arguments.to, &arguments.alpn) {
        return code;
    }
    let to: Vec<String> = arguments.to.iter().map(ServerAddress::to_string).collect();
    run(terminating(arguments), "warn", |supervisor| {
        for address in supervisor.addresses() {
            print_line(format_args!("TLS on {address}, plain to {}", to.join(", ")));
        }
        print_certificates(supervisor);
        print_line(supervisor.tx_path_line());
    })
}

/// Takes plain connections to a server that speaks TLS until told to stop.
pub(crate) fn originate(arguments: &OriginateArguments) -> ExitCode {
    let to = std::slice::from_ref(&arguments.to);
    if let Some(code) = refuse(arguments.listen, to, &arguments.alpn) {
        return code;
    }
    run(originating(arguments), "warn", |supervisor: &Supervisor| {
        for address in supervisor.addresses() {
            print_line(format_args!("plain on {address}, TLS to {}", arguments.to));
        }
        print_line(supervisor.tx_path_line());
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
        names: site_names(arguments.listen, certificate.is_none()),
        default: true,
        self_signed: certificate.is_none(),
        certificates: certificate.into_iter().collect(),
        ..Site::default()
    };
    let listener = Listener {
        address: Located::not_written(arguments.listen.into()),
        kind,
        ..Listener::default()
    };
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
        ..BackendTls::default()
    };
    let kind = ListenerKind::Tcp(TcpListener {
        backend: Located::not_written(BACKEND.to_owned()),
        path: tunnel.path,
        crossover: tunnel.crossover,
    });
    let listener = Listener {
        address: Located::not_written(arguments.listen.into()),
        kind,
        ..Listener::default()
    };
    config(tunnel, listener, std::slice::from_ref(&arguments.to), Some(tls))
}

/// Returns the configuration that both directions have in common.
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

/// Refuses a listener that is not allowed in a configuration either.
fn refuse(listen: SocketAddr, to: &[ServerAddress], alpn: &[String]) -> Option<ExitCode> {
    if !do_protocols_fit(alpn) {
        return Some(fail("--alpn names more protocols than a ClientHello has room for"));
    }
    let own = to.iter().find(|to| leads_back(listen, to))?;
    Some(fail(format_args!("--to {own} leads back here: this command listens on {listen}")))
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use clap::Parser as _;
    use kettle_config::{SendProxy, StartTls};

    use super::*;
    use crate::cli::{Cli, Command};

    fn closest(words: &str) -> Config {
        match Cli::try_parse_from(words.split_whitespace()).unwrap().command {
            Command::Terminate(arguments) => terminating(&arguments),
            Command::Originate(arguments) => originating(&arguments),
            other => panic!("{other:?}"),
        }
    }

    fn servers(config: &Config) -> Vec<String> {
        config.backends[0].servers.iter().map(|server| server.address.to_string()).collect()
    }

    #[track_caller]
    fn assert_files(certificate: &Certificate) {
        let files = [&certificate.chain, &certificate.key].map(|file| &*file.value);
        assert_eq!(files, ["c.pem", "k.pem"].map(Path::new));
    }

    #[test]
    fn the_words_of_terminate_are_settings() {
        let config = closest(
            "kettle terminate --to 8080 --to unix:/run/a.sock --cert c.pem --key k.pem \
             --alpn h2,http/1.1 --proxy v2 --starttls smtp --workers 3 --crossover 1MiB",
        );
        assert_eq!(servers(&config), ["127.0.0.1:8080", "unix:/run/a.sock"]);
        let tls = config.listeners[0].tls().unwrap();
        assert_eq!((tls.starttls, tls.crossover), (StartTls::Smtp, 1_048_576));
        assert_eq!(tls.alpn, ["h2", "http/1.1"]);
        assert_eq!(config.server.workers, Some(3));
        assert_eq!(config.backends[0].send_proxy, SendProxy::V2);
        assert!(config.backends[0].tls.is_none() && !config.sites[0].self_signed);
        assert_files(&config.sites[0].certificates[0]);
        assert!(closest("kettle terminate --to 8080").sites[0].self_signed);
    }

    #[test]
    fn the_words_of_originate_are_settings() {
        let config = closest(
            "kettle originate --listen 2525 --to mail.example:587 --pin sha256/a= --pin sha256/b= \
             --starttls smtp --cert c.pem --key k.pem --name mx.example --alpn smtp --proxy v1",
        );
        assert_eq!(servers(&config), ["mail.example:587"]);
        assert!(matches!(config.listeners[0].kind, ListenerKind::Tcp(_)));
        let tls = config.backends[0].tls.as_ref().unwrap();
        assert_eq!((tls.starttls, tls.name.as_deref()), (StartTls::Smtp, Some("mx.example")));
        assert_eq!(tls.pins, ["sha256/a=", "sha256/b="]);
        assert_eq!(tls.alpn, ["smtp"]);
        assert_eq!(config.backends[0].send_proxy, SendProxy::V1);
        assert_files(tls.certificate.as_ref().unwrap());
    }
}
