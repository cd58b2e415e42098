//! `kettle ctl`: asks something of a running server over its control socket.

use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use kettle_supervisor::admin::acme::{AcmeRequest, AcmeStatus};
use kettle_supervisor::admin::caches::PurgeBy;
use kettle_supervisor::admin::client::{AskError, ask, stop};
use kettle_supervisor::admin::protocol::{Reply, Request};
use kettle_supervisor::read;

use crate::cli::{
    AcmeCommand, CacheCommand, CtlArguments, CtlCommand, DEFAULT_SOCKET, PurgeArgument,
    ServerArgument,
};
use crate::output::{fail, fail_with, print, print_line, say};
use crate::watch::watch;

/// Sends the request and prints the answer. Exits with 0 if it was done.
pub(crate) fn ctl(arguments: &CtlArguments) -> ExitCode {
    let socket = match socket(arguments) {
        Ok(socket) => socket,
        Err(code) => return code,
    };
    if let CtlCommand::Status { watch: true } = arguments.command {
        return watch(&socket, arguments.json);
    }
    let asked = match request(&arguments.command) {
        Request::Stop => stop(&socket),
        request => ask_all(&socket, request),
    };
    let reply = match asked {
        Ok(reply) => reply,
        Err(error) => return fail(error),
    };
    if arguments.json {
        return print_json(&reply);
    }
    match reply {
        Reply::Status(status) => print(status),
        Reply::Backends { backends } => print(backends),
        Reply::Caches { caches } => print(caches),
        Reply::Tunnels { tunnels } => print(tunnels),
        Reply::Acme { certificates } => {
            print(&certificates);
            return code_of(&certificates);
        }
        Reply::DnsRecords { records, .. } => {
            print_line(DNS_RECORDS_HEAD);
            records.iter().for_each(print_line);
        }
        Reply::Done { message, warnings } => {
            for warning in warnings {
                say(format_args!("warning: {warning}\n"));
            }
            print_line(message);
        }
        Reply::Refused { message, diagnostics } => {
            for diagnostic in diagnostics {
                print_line(format_args!("error: {diagnostic}\n"));
            }
            return fail(message);
        }
    }
    ExitCode::SUCCESS
}

/// Asks, and goes on asking for the rest of an answer that comes in parts.
fn ask_all(socket: &Path, request: Request) -> Result<Reply, AskError> {
    let mut reply = ask(socket, request)?;
    while let Reply::DnsRecords { records, next } = &mut reply
        && let Some(from) = next.take()
    {
        match ask(socket, Request::Acme { request: AcmeRequest::DnsRecords { from } })? {
            Reply::DnsRecords { records: more, next: after } => {
                records.extend(more);
                *next = after;
            }
            other => return Ok(other),
        }
    }
    Ok(reply)
}

fn request(command: &CtlCommand) -> Request {
    let drain = |ServerArgument { name: (backend, server) }: &ServerArgument, is_draining| {
        Request::Drain { backend: backend.clone(), server: server.clone(), is_draining }
    };
    match command {
        CtlCommand::Status { .. } => Request::Status,
        CtlCommand::Reload => Request::Reload,
        CtlCommand::Path { tx_path } => Request::Path { tx_path: *tx_path },
        CtlCommand::Backends => Request::Backends,
        CtlCommand::Tunnels { top, by } => Request::Tunnels { top: usize::from(*top), by: *by },
        CtlCommand::Drain { server } => drain(server, true),
        CtlCommand::Ready { server } => drain(server, false),
        CtlCommand::Cache { command: CacheCommand::Status } => Request::Caches,
        CtlCommand::Cache { command: CacheCommand::Purge { what } } => purge(what),
        CtlCommand::Acme { command } => Request::Acme { request: about_acme(command) },
        CtlCommand::Reopen => Request::Reopen,
        CtlCommand::Stop => Request::Stop,
    }
}

fn about_acme(command: &AcmeCommand) -> AcmeRequest {
    match command.clone() {
        AcmeCommand::Status => AcmeRequest::Status,
        AcmeCommand::DnsRecords => AcmeRequest::DnsRecords { from: 0 },
        AcmeCommand::Renew { name, rehearse } => AcmeRequest::Renew { name, rehearse },
        AcmeCommand::Forget { name } => AcmeRequest::Forget { name },
        AcmeCommand::Revoke { name, reason } => AcmeRequest::Revoke { name, reason },
    }
}

/// For scripts: a certificate that is late is for somebody to look at.
fn code_of(certificates: &AcmeStatus) -> ExitCode {
    if certificates.is_urgent() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn purge(what: &PurgeArgument) -> Request {
    let (by, text) = match (&what.key, &what.prefix, &what.tag) {
        (_, Some(prefix), _) => (PurgeBy::Prefix, prefix),
        (_, _, Some(tag)) => (PurgeBy::Tag, tag),
        (key, None, None) => return request_of_key(key.as_deref().unwrap_or_default()),
    };
    Request::Purge { by, text: text.clone() }
}

fn request_of_key(key: &str) -> Request {
    Request::Purge { by: PurgeBy::Key, text: key.to_owned() }
}

/// Scripts get the status itself, and any other answer as it came.
fn print_json(reply: &Reply) -> ExitCode {
    let text = match reply {
        Reply::Status(status) => serde_json::to_string_pretty(status),
        Reply::Backends { backends } => serde_json::to_string_pretty(backends),
        Reply::Caches { caches } => serde_json::to_string_pretty(caches),
        Reply::Tunnels { tunnels } => serde_json::to_string_pretty(tunnels),
        Reply::Acme { certificates } => serde_json::to_string_pretty(certificates),
        Reply::DnsRecords { records, .. } => serde_json::to_string_pretty(records),
        other => serde_json::to_string_pretty(other),
    };
    match text {
        Ok(text) => print_line(text),
        Err(error) => return fail(error),
    }
    match reply {
        Reply::Refused { .. } => ExitCode::FAILURE,
        Reply::Acme { certificates } => code_of(certificates),
        _ => ExitCode::SUCCESS,
    }
}

/// Returns the socket at which the server is asked. That a configuration is half edited must not keep anybody from asking, and
/// whether it will do is for the server to say: where it does not help, the usual socket is taken if it is there.
fn socket(arguments: &CtlArguments) -> Result<PathBuf, ExitCode> {
    let Some(path) = &arguments.config else { return Ok(arguments.socket.clone()) };
    let shown = path.display();
    let usual = &arguments.socket;
    let usual_because = |why: &str| {
        usual.exists().then(|| {
            say(format_args!("{why}: asking the server behind {}", usual.display()));
            usual.clone()
        })
    };
    if path.metadata().is_ok_and(|it| it.file_type().is_fifo()) {
        let why = format!("{shown} is a pipe, and what it brings is for the server");
        return usual_because(&why).ok_or_else(|| fail(format_args!("{why}; use --socket")));
    }
    match read(path).map(|config| config.admin.socket) {
        Ok(Some(socket)) if socket.exists() => Ok(socket),
        Ok(Some(socket)) => {
            let why = format!("{}, which {shown} names, is not there", socket.display());
            Ok(usual_because(&why).unwrap_or(socket))
        }
        // Under systemd it has that one all the same.
        Ok(None) if usual.exists() => Ok(usual.clone()),
        Ok(None) => Err(fail(format_args!(
            "{shown} sets no control socket; add `socket = \"{DEFAULT_SOCKET}\"` below \
             `[admin]` and start the server again"
        ))),
        Err(mistakes) => {
            let first = mistakes.first().map_or("", |mistake| mistake.message.as_str());
            usual_because(&format!("{shown}: {first}")).ok_or_else(|| fail_with(&mistakes))
        }
    }
}

/// The comment on records in a zone file.
const DNS_RECORDS_HEAD: &str = "; as long as such a record stays, whoever has the key of the account can have certificates for the name";
