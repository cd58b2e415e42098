//! `kettle terminate` and `kettle originate`: a tunnel without a configuration file.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use kettle_command_line::parse_size;
use kettle_config::{SendProxy, ServerAddress, StartTls, TunnelPathChoice};

use super::parse_listen;

#[derive(Debug, Args)]
#[command(after_help = TERMINATE_EXAMPLES)]
pub(crate) struct TerminateArguments {
    /// The target of connections: HOST:PORT, a port of this machine, or unix:/PATH; several share them
    #[arg(long, required = true, value_name = "ADDRESS", value_parser = parse_server)]
    pub(crate) to: Vec<ServerAddress>,
    /// Address and port; a port alone stays on this machine, `:PORT` is every address
    #[arg(long, default_value = "8443", value_name = "ADDRESS", value_parser = parse_listen)]
    pub(crate) listen: SocketAddr,
    /// Certificate chain (PEM), in place of a generated certificate
    #[arg(long, value_name = "FILE", requires = "key")]
    pub(crate) cert: Option<PathBuf>,
    /// Private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) key: Option<PathBuf>,
    /// Protocols that the backend speaks, agreed on with clients by ALPN: h2,http/1.1
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parse_alpn)]
    pub(crate) alpn: Vec<String>,
    #[command(flatten)]
    pub(crate) tunnel: TunnelArguments,
}

#[derive(Debug, Args)]
#[command(after_help = ORIGINATE_EXAMPLES)]
pub(crate) struct OriginateArguments {
    /// The server that speaks TLS: HOST:PORT
    #[arg(long, value_name = "HOST:PORT", value_parser = parse_tls_server)]
    pub(crate) to: ServerAddress,
    /// Address and port; a port alone stays on this machine, `:PORT` is every address
    #[arg(long, value_name = "ADDRESS", value_parser = parse_listen)]
    pub(crate) listen: SocketAddr,
    /// The name in the server's certificate, if not the host of --to
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Authorities that are trusted (PEM), in place of the system's
    #[arg(long, value_name = "FILE", conflicts_with = "pin")]
    pub(crate) roots: Option<PathBuf>,
    /// The server's public key, sha256/BASE64, in place of any authority; may be repeated
    #[arg(long, value_name = "PIN")]
    pub(crate) pin: Vec<String>,
    /// Certificate chain (PEM) to show to the server
    #[arg(long, value_name = "FILE", requires = "key")]
    pub(crate) cert: Option<PathBuf>,
    /// Private key of that certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) key: Option<PathBuf>,
    /// Protocols offered by ALPN
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parse_alpn)]
    pub(crate) alpn: Vec<String>,
    #[command(flatten)]
    pub(crate) tunnel: TunnelArguments,
}

/// The arguments of both directions.
#[derive(Debug, Args)]
pub(crate) struct TunnelArguments {
    /// Tell the server whom a connection is for by a PROXY header: v1 or v2
    #[arg(long, default_value = "off", value_name = "VERSION", hide_default_value = true)]
    pub(crate) proxy: SendProxy,
    /// The dialogue before TLS: smtp or postgres
    #[arg(long, default_value = "off", value_name = "PROTOCOL", hide_default_value = true)]
    pub(crate) starttls: StartTls,
    /// The place where records are encrypted: auto, user or kernel-splice
    #[arg(long, default_value = "auto", value_name = "PATH")]
    pub(crate) path: TunnelPathChoice,
    /// With `--path auto`: after how many bytes the kernel takes over
    #[arg(long, default_value = "256KiB", value_name = "SIZE", value_parser = parse_size)]
    pub(crate) crossover: u64,
    /// Worker threads [default: one for each CPU]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) workers: Option<u16>,
    /// Write no line for each connection to the terminal
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// An address with a port, a port of this machine, or a Unix socket.
fn parse_server(text: &str) -> Result<ServerAddress, String> {
    match text.strip_prefix(':').unwrap_or(text).parse::<u16>() {
        Ok(port) => ServerAddress::parse(&format!("127.0.0.1:{port}")),
        Err(_) => ServerAddress::parse(text),
    }
}

/// TLS is not spoken over Unix sockets.
fn parse_tls_server(text: &str) -> Result<ServerAddress, String> {
    match parse_server(text)? {
        ServerAddress::Unix(_) => Err("a server that speaks TLS is a HOST:PORT".to_owned()),
        server => Ok(server),
    }
}

fn parse_alpn(text: &str) -> Result<String, String> {
    let is_visible = text.bytes().all(|byte| byte.is_ascii_graphic());
    match (1..=255).contains(&text.len()) && is_visible {
        true => Ok(text.to_owned()),
        false => Err("write registered names, such as h2,http/1.1".to_owned()),
    }
}

const TERMINATE_EXAMPLES: &str = "\
Examples:
  kettle terminate --to 8080            https://localhost:8443 before port 8080 of this machine
  kettle terminate --to unix:/run/varnish.sock --proxy v2 --alpn h2,http/1.1 --listen :443 \\
                   --cert c.pem --key k.pem
  kettle terminate --to 10.0.0.5:5432 --starttls postgres --listen :5432 --cert c.pem --key k.pem

Without --cert a certificate is generated, which no client trusts by itself. For several names,
health checks or clients with certificates write a configuration: kettle reference.";

const ORIGINATE_EXAMPLES: &str = "\
Examples:
  kettle originate --listen 2525 --to mail.example:465
  kettle originate --listen 2525 --to mail.example:587 --starttls smtp
  kettle originate --listen 5432 --to 10.0.0.5:5433 --name db.example --roots ca.pem
  kettle originate --listen 8080 --to 10.0.0.6:443 --pin sha256/47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=

The server's certificate is always verified: by the system's authorities, those of --roots, or its key.";

#[cfg(test)]
mod tests {
    use kettle_config::ServerAddress;

    use super::parse_server;

    #[test]
    fn servers_are_written_as_people_write_them() {
        for (text, expected) in [
            ("8080", "127.0.0.1:8080"),
            (":8080", "127.0.0.1:8080"),
            ("[::1]:80", "[::1]:80"),
            ("App.Example:80", "app.example:80"),
            ("unix:/run/a.sock", "unix:/run/a.sock"),
        ] {
            let parsed = parse_server(text);
            assert_eq!(parsed.as_ref().map(ServerAddress::to_string), Ok(expected.to_owned()));
        }
        for text in ["", "0", "app", "http://a:80", "70000", "a:b", "unix:a", "::1", "::443"] {
            assert!(parse_server(text).is_err(), "{text}");
        }
        assert!(super::parse_tls_server("unix:/run/a.sock").is_err());
    }
}
