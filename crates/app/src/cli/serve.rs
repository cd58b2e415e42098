//! The words of `kettle serve`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::Args;
use kettle_command_line::parse_size;
use kettle_config::TxPathChoice;

use super::{parse_host, parse_listen};

#[derive(Debug, Args)]
#[command(after_help = SERVE_EXAMPLES)]
pub(crate) struct ServeArguments {
    /// The folder to serve
    #[arg(default_value = ".", value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// Address and port; a port alone stays on this machine, `:PORT` is every address [default: 8443, with --domain :443]
    #[arg(long, value_name = "ADDRESS", value_parser = parse_listen)]
    pub(crate) listen: Option<SocketAddr>,
    /// The port alone, as in `--listen PORT`
    #[arg(long, short, value_name = "PORT", conflicts_with = "listen")]
    port: Option<u16>,
    /// The address alone: 0.0.0.0 is every address
    #[arg(long, value_name = "IP", conflicts_with = "listen", value_parser = parse_host)]
    bind: Option<IpAddr>,
    /// Certificate chain (PEM), in place of a generated certificate
    #[arg(long, value_name = "FILE", requires = "key")]
    pub(crate) cert: Option<PathBuf>,
    /// Private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) key: Option<PathBuf>,
    /// The place where records are encrypted: auto, user, kernel-write or kernel-sendfile
    #[arg(long, default_value = "auto", value_name = "PATH")]
    pub(crate) path: TxPathChoice,
    /// With `--path auto`: the size of file from which the kernel takes over
    #[arg(long, default_value = "64KiB", value_name = "SIZE", value_parser = parse_size)]
    pub(crate) crossover: u64,
    /// Worker threads [default: one for each CPU]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) workers: Option<u16>,
    /// List folders that have no index.html for other machines, too; on this machine's own addresses they are listed
    #[arg(long)]
    pub(crate) browse: bool,
    /// Write no line for each response to the terminal
    #[arg(long, short)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) domains: DomainArguments,
}

/// A certificate that is fetched for names of this machine.
#[derive(Debug, Args)]
#[group(skip)]
pub(crate) struct DomainArguments {
    /// A name that leads to this machine, for which a certificate is fetched and renewed (ACME); may be there several times
    #[arg(long, value_name = "NAME", conflicts_with_all = ["cert", "port", "bind"])]
    pub(crate) domain: Vec<String>,
    /// The address to which the authority may write about the certificate
    #[arg(long, value_name = "ADDRESS", requires = "domain")]
    pub(crate) email: Option<String>,
    /// Says that you agree to the terms of the authority
    #[arg(long, requires = "domain")]
    pub(crate) accept_terms: bool,
    /// The address at which requests to port 80 arrive, which are led to HTTPS [default: port 80 of the address of --listen]
    #[arg(long, value_name = "ADDRESS", requires = "domain", value_parser = parse_listen)]
    pub(crate) listen_http: Option<SocketAddr>,
    /// The authority: letsencrypt, letsencrypt-staging, or the URL of a directory
    #[arg(long, value_name = "URL", requires = "domain", default_value = "letsencrypt")]
    pub(crate) acme_directory: String,
    /// The issuer of that authority's own certificate (PEM), where browsers do not trust it
    #[arg(long, value_name = "FILE", requires = "domain")]
    pub(crate) acme_roots: Option<PathBuf>,
}

impl ServeArguments {
    /// The address to listen on, however it was said.
    pub(crate) fn address(&self) -> SocketAddr {
        let usual = match self.domains.domain.is_empty() {
            true => SocketAddr::from((Ipv4Addr::LOCALHOST, 8443)),
            false => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 443)),
        };
        let mut address = self.listen.unwrap_or(usual);
        address.set_ip(self.bind.unwrap_or(address.ip()));
        address.set_port(self.port.unwrap_or(address.port()));
        address
    }
}

const SERVE_EXAMPLES: &str = "\
Examples:
  kettle serve                        this folder at https://localhost:8443
  kettle serve site --listen :8443 --browse  for other machines, with lists of folders
  kettle serve --cert c.pem --key k.pem --listen :443
  kettle serve --path user            never the kernel, for comparison
  kettle serve site --domain example.org --domain www.example.org --email you@example.org --accept-terms
      https://example.org/ with a certificate of Let's Encrypt, which is renewed by itself. Ports 443 and 80 of the name must
      lead here. Try it first with --acme-directory letsencrypt-staging, whose certificates nobody trusts.

On a terminal each response is a line; --quiet ends that. Ctrl-C stops it, and requests in flight
are finished first.";
