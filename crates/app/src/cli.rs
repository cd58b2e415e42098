//! The command line: what it accepts, and the help that teaches it.

mod serve;
mod tunnel;

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, CommandFactory, Parser, Subcommand};
use kettle_config::option_advice;
use kettle_doctor::Target;

use crate::version::VERSION;

pub(crate) use serve::{DomainArguments, ServeArguments};
pub(crate) use tunnel::{OriginateArguments, TerminateArguments, TunnelArguments};

/// An HTTPS server whose TLS records are encrypted where it costs least: here or in the kernel.
#[derive(Debug, Parser)]
#[command(version = VERSION, after_help = EXAMPLES, propagate_version = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Says of a command that is none where it stands, if it is one below `ctl`; of an option what it is here, by the table
/// that mistakes of a configuration are told from. `words` are those of the command line.
pub(crate) fn with_advice(mut error: clap::Error, words: &[OsString]) -> clap::Error {
    let all = Cli::command();
    if let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg)
        && error.kind() == ErrorKind::UnknownArgument
        && let Some(option) = option.strip_prefix("--")
    {
        let known = options_of(&all, words);
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let (kind, meant) = match option_advice(option, &known) {
            Ok(known) => (ContextKind::SuggestedArg, ContextValue::String(format!("--{known}"))),
            Err(advice) => {
                let advice = advice.into_iter().map(Into::into).collect();
                (ContextKind::Suggested, ContextValue::StyledStrs(advice))
            }
        };
        for guess in [ContextKind::SuggestedArg, ContextKind::Suggested] {
            error.remove(guess);
        }
        error.insert(kind, meant);
        return error;
    }
    if let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand)
        && let Some(ctl) = all.find_subcommand("ctl")
        && ctl.find_subcommand(word).is_some()
    {
        let meant = ContextValue::Strings(vec![format!("ctl {word}")]);
        error.insert(ContextKind::SuggestedSubcommand, meant);
    }
    error
}

/// The long options of the command that the words name.
fn options_of(all: &clap::Command, words: &[OsString]) -> Vec<String> {
    let names = words.iter().skip(1).filter_map(|word| word.to_str());
    let command = names.fold(all, |command, name| command.find_subcommand(name).unwrap_or(command));
    command.get_arguments().filter_map(|it| Some(it.get_long()?.to_owned())).collect()
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve a folder over HTTPS, with no configuration
    Serve(ServeArguments),
    /// End TLS in front of another server, with no configuration
    Terminate(TerminateArguments),
    /// Speak TLS to another server for clients that cannot
    Originate(OriginateArguments),
    /// Serve in the place of hitch, with its options and its hitch.conf
    Hitch,
    /// Print the kettle.toml that does what another program's configuration says
    Import(ImportArguments),
    /// Run the server a configuration file describes
    #[command(after_help = RUN_EXIT)]
    Run(ConfigArgument),
    /// Find every mistake in a configuration and in the files it names
    Check(ConfigArgument),
    /// Say whether this machine can encrypt in the kernel, or what a server does in TLS
    Doctor(DoctorArguments),
    /// Measure from which size of file on the kernel is the cheaper place
    Calibrate,
    /// Compare kettle with other servers on this machine, or put a load on one
    Bench,
    /// Control a running server
    Ctl(CtlArguments),
    /// Print the JSON schema of the configuration, for editors
    Schema,
    /// Print the reference of all settings, in Markdown
    Reference,
    /// Print what completes commands and options in a shell
    Completions {
        /// Whose completions
        shell: kettle_command_line::Shell,
    },
    /// Write the manual pages and the completions, for packages
    #[command(hide = true)]
    Manual(ManualArguments),
}

#[derive(Debug, Args)]
pub(crate) struct ManualArguments {
    /// Gets man1/, man5/ and completions/
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// The date the pages bear, such as 2026-11-22
    #[arg(long, default_value = "", value_name = "DATE")]
    pub(crate) date: String,
}

#[derive(Debug, Args)]
pub(crate) struct ConfigArgument {
    /// The configuration file [default: /etc/kettle/kettle.toml]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// The same
    #[arg(long, short, value_name = "FILE", conflicts_with = "file")]
    config: Option<PathBuf>,
}

impl ConfigArgument {
    /// Returns the path of the configuration.
    pub(crate) fn path(&self) -> &Path {
        let named = self.file.as_deref().or(self.config.as_deref());
        named.unwrap_or(Path::new(DEFAULT_CONFIG))
    }
}

#[derive(Debug, Args)]
#[command(after_help = IMPORT_EXAMPLES)]
pub(crate) struct ImportArguments {
    /// Whose configuration it is
    #[arg(value_name = "PROGRAM")]
    pub(crate) program: ImportedProgram,
    /// The configuration file
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Check what it names, too, as `kettle check` does
    #[arg(long)]
    pub(crate) check: bool,
    /// Say what would become of it instead, and whether kettle would start here
    #[arg(long, conflicts_with_all = ["check", "for_bench"])]
    pub(crate) summary: bool,
    /// Print nginx.conf as a template that `kettle bench run --config nginx=TEMPLATE` measures, instead
    #[arg(long, conflicts_with = "check")]
    pub(crate) for_bench: bool,
}

/// Whose configurations can be imported.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum ImportedProgram {
    /// hitch.conf
    Hitch,
    /// stud.conf
    Stud,
    /// nginx.conf, with what it includes
    Nginx,
    /// stunnel.conf
    Stunnel,
}

#[derive(Debug, Args)]
#[command(after_help = DOCTOR_EXAMPLES)]
pub(crate) struct DoctorArguments {
    /// Look at this server instead: https://HOST[:PORT], HOST:PORT or HOST
    #[arg(value_name = "HOST")]
    host: Option<Target>,
    /// Ask that server for this name: one machine among several behind it, or one that is to be its server
    #[arg(long, value_name = "NAME", requires = "host")]
    name: Option<String>,
    /// Exit with 1 where something about that server is at least so bad [default: only where it speaks no TLS]
    #[arg(long, value_name = "STATE", requires = "host")]
    pub(crate) fail_on: Option<FailOn>,
    /// Look at the folders that this configuration serves [default: /etc/kettle/kettle.toml, or else the current folder]
    #[arg(long, short, value_name = "FILE", conflicts_with = "host")]
    pub(crate) config: Option<PathBuf>,
    /// Print the report as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The weight of a finding.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum FailOn {
    /// Something to look at, marked `!`: a certificate that ends soon
    Warning,
    /// Something that clients refuse, marked `✗`: a certificate that has ended
    Bad,
}

impl DoctorArguments {
    /// The server that is to be looked at, if it is not this machine.
    pub(crate) fn target(&self) -> Option<Target> {
        let target = self.host.clone()?;
        Some(Target { name: self.name.clone(), ..target })
    }
}

#[derive(Debug, Args)]
#[command(after_help = CTL_EXAMPLES)]
pub(crate) struct CtlArguments {
    /// The server's control socket
    #[arg(long, default_value = DEFAULT_SOCKET, value_name = "PATH", global = true)]
    pub(crate) socket: PathBuf,
    /// Take the socket from this configuration file
    #[arg(long, short, value_name = "FILE", conflicts_with = "socket", global = true)]
    pub(crate) config: Option<PathBuf>,
    /// Print the answer as JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: CtlCommand,
}

/// A server of a backend.
#[derive(Clone, Debug, Args)]
pub(crate) struct ServerArgument {
    /// The server, as `kettle ctl backends` calls it
    #[arg(value_name = "BACKEND/SERVER", value_parser = parse_server_name)]
    pub(crate) name: (String, String),
}

fn parse_server_name(text: &str) -> Result<(String, String), String> {
    match text.split_once('/') {
        Some((backend, server)) if !backend.is_empty() && !server.is_empty() => {
            Ok((backend.to_owned(), server.to_owned()))
        }
        _ => Err("write BACKEND/SERVER, as `kettle ctl backends` shows them".to_owned()),
    }
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum CtlCommand {
    /// Show the live numbers
    Status {
        /// Show each second what was done in it, until Ctrl-C; ends with 1 when the server is gone
        #[arg(long, short)]
        watch: bool,
    },
    /// Read the configuration and the certificates again, or keep the old ones
    Reload,
    /// The kill switch: `user` keeps new connections out of the kernel, `auto` ends that
    Path {
        /// auto or user
        #[arg(value_name = "auto|user")]
        tx_path: kettle_supervisor::TxPathOverride,
    },
    /// Open the access log again, after a rotation
    Reopen,
    /// Show backends and how their servers are
    Backends,
    /// Show the disk stores for responses of backends, or forget what is kept in them
    Cache {
        #[command(subcommand)]
        command: CacheCommand,
    },
    /// Certificates that are fetched: how it stands with them, a new one now
    Acme {
        #[command(subcommand)]
        command: AcmeCommand,
    },
    /// Show open tunnels: who, where to, how much by which path
    Tunnels {
        /// The number of those shown one by one, 1000 at most
        #[arg(long, value_name = "N", default_value_t = 20,
              value_parser = clap::value_parser!(u16).range(..=1_000))]
        top: u16,
        /// Which ones: newest, oldest, bytes or idle
        #[arg(long, value_name = "ORDER", default_value = "newest")]
        by: kettle_supervisor::TunnelOrder,
    },
    /// Let a server have no new connections; those it has go on
    Drain {
        #[command(flatten)]
        server: ServerArgument,
    },
    /// Let a drained server have connections again
    Ready {
        #[command(flatten)]
        server: ServerArgument,
    },
    /// Finish the requests in flight, then end
    Stop,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum CacheCommand {
    /// Show how much is kept
    Status,
    /// Forget responses, those that are arriving too
    Purge {
        #[command(flatten)]
        what: PurgeArgument,
    },
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum AcmeCommand {
    /// Show when each ends, what is done next, and why the last attempt failed; ends with 1 where one is late
    Status,
    /// Print the records of dns-persist-01 that have to be in the DNS, as lines of a zone file
    DnsRecords,
    /// Get a new certificate now
    Renew {
        /// One of its names
        name: String,
        /// Only try it with the test directory; nothing changes
        #[arg(long)]
        rehearse: bool,
    },
    /// Forget failures and open orders, and begin anew
    Forget {
        /// One of its names
        name: String,
    },
    /// Revoke a certificate, and get one with another key
    Revoke {
        /// One of its names
        name: String,
        /// key-compromise, affiliation-changed, superseded or cessation-of-operation
        #[arg(long, value_name = "REASON", value_parser = parse_reason)]
        reason: Option<u8>,
    },
}

/// The numbers of RFC 5280 §5.3.1 that a subscriber may give.
fn parse_reason(text: &str) -> Result<u8, String> {
    match text {
        "key-compromise" => Ok(1),
        "affiliation-changed" => Ok(3),
        "superseded" => Ok(4),
        "cessation-of-operation" => Ok(5),
        _ => Err("write key-compromise, affiliation-changed, superseded or cessation-of-operation"
            .to_owned()),
    }
}

#[derive(Args, Clone, Debug)]
#[group(required = true, multiple = false)]
pub(crate) struct PurgeArgument {
    /// The URL, with host and query as clients ask for it: https://example.org/a?b. Behind a `rewrite`, with the path that the
    /// backend gets
    #[arg(value_name = "URL")]
    pub(crate) key: Option<String>,
    /// All URLs that begin so
    #[arg(long, value_name = "URL")]
    pub(crate) prefix: Option<String>,
    /// All responses with this tag; the route's `tags` says which header has them
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Option<String>,
}

/// `8443`, `:8443`, `localhost:8443`, `192.0.2.1:8443` or `[::1]:8443`.
fn parse_listen(text: &str) -> Result<SocketAddr, String> {
    let (ip, port) = match text.rsplit_once(':') {
        Some(("" | "*", port)) => (Ipv4Addr::UNSPECIFIED, port),
        Some(("localhost", port)) => (Ipv4Addr::LOCALHOST, port),
        _ => (Ipv4Addr::LOCALHOST, text),
    };
    if let Ok(port) = port.parse::<u16>() {
        return Ok(SocketAddr::new(IpAddr::V4(ip), port));
    }
    text.parse().map_err(|_| {
        "write a port (8443), every address (:8443), or one address and a port (192.0.2.1:8443, \
         [::1]:8443)"
            .to_owned()
    })
}

/// An IP address, or the name of this machine's own.
fn parse_host(text: &str) -> Result<IpAddr, String> {
    match text {
        "localhost" => Ok(Ipv4Addr::LOCALHOST.into()),
        "*" => Ok(Ipv4Addr::UNSPECIFIED.into()),
        _ => text.trim_matches(['[', ']']).parse().map_err(|_| {
            "write an IP address: 127.0.0.1 for this machine alone, 0.0.0.0 for every address"
                .to_owned()
        }),
    }
}

/// The place where a configuration is looked for.
pub(crate) const DEFAULT_CONFIG: &str = "/etc/kettle/kettle.toml";

/// The place where the packaged configuration puts the control socket.
pub(crate) const DEFAULT_SOCKET: &str = "/run/kettle/admin.sock";

const EXAMPLES: &str = "\
Examples:
  kettle serve                        this folder at https://localhost:8443
  kettle serve ~/site --listen :8443  for other machines too
  kettle serve ~/site --domain example.org --email you@example.org --accept-terms
                                      for everybody, with a certificate of Let's Encrypt
  kettle terminate --to 8080          https://localhost:8443 before port 8080 of this machine
  kettle doctor                       can this machine encrypt in the kernel?
  kettle doctor https://example.com   what does that server resume, take and cost?
  kettle check kettle.toml            every mistake, before a start or a reload
  kettle run kettle.toml              sites, certificates and routes from a file
  kettle ctl status                   what the running server does
  kettle bench list                   comparisons with other servers on this machine

KETTLE_LOG=debug shows what happens to each connection.";

const RUN_EXIT: &str = "\
The exit code is 78 if the configuration file cannot be read or has a mistake in it, and 1 if what it names keeps \
the server from starting, or the server cannot go on.";

const IMPORT_EXAMPLES: &str = "\
Examples:
  kettle import hitch /etc/hitch/hitch.conf >kettle.toml
  kettle import stunnel /etc/stunnel/mail.conf >kettle.toml
  kettle import nginx /etc/nginx/nginx.conf --summary           could it move?
  kettle import nginx /etc/nginx/nginx.conf --check >kettle.toml && kettle run kettle.toml

With --summary the exit code is 0 if every place was carried over, 3 if some answer 403, and 1 if kettle would not
start. What was not carried over stands in comments, with its place and what holds instead. `kettle hitch` runs the
same text without writing it.";

const DOCTOR_EXAMPLES: &str = "\
Examples:
  kettle doctor                       can this machine encrypt in the kernel, and what mends it?
  kettle doctor https://example.com   what a server resumes and takes, its chain, its bytes
  kettle doctor 192.0.2.7 --name example.com      one machine behind a name
  kettle doctor localhost:8443 --json
  kettle doctor https://example.com --fail-on warning     for monitoring

A server is asked by about 25 handshakes, one after the other, in which nothing is said; a minute at most.
The exit code is 0 if this kernel encrypts, or if the server speaks TLS and --fail-on asks for no more.";

const CTL_EXAMPLES: &str = "\
Examples:
  kettle ctl status
  kettle ctl status --watch           rates, each second
  kettle ctl reload --config kettle.toml
  kettle ctl drain app/10.0.0.5:80    no new connections for this server of a backend
  kettle ctl tunnels --by bytes       open tunnels, those that carried most first
  kettle ctl path user                no further connection moves into the kernel
  kettle ctl status --json | jq .total.responses";

#[cfg(test)]
mod tests;
