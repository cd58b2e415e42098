//! The things that a server cannot do here, before it is started: no such path, version, group or role, or no kernel TLS.

use std::sync::OnceLock;

use kettle_kernel::probe::Capabilities;
use kettle_loadgen::offer::{Offer, ResumeBy};
use kettle_tls::Version;
use kettle_tls::policy::Group;
use serde_json::Value;

use super::config::haproxy;
use super::exit;
use super::find::{Found, find};
use super::nginx_stream::NginxStream;
use super::subject::{Program, Role, Setup, Subject, SubjectPath};
use super::varnish;

/// Why this subject cannot be run with this setup, in a sentence; `None` if nothing is known to speak against it.
pub fn unavailable(subject: &Subject, found: &Found, setup: &Setup) -> Option<String> {
    too_old(found)
        .or_else(|| role(subject, found, setup))
        .or_else(|| path(subject, found, setup))
        .or_else(|| offer(found, setup))
        .or_else(|| resumption(subject, found, setup))
}

/// Versions that know every setting of our templates.
fn too_old(found: &Found) -> Option<String> {
    let needed: &[u32] = match found.program {
        Program::Kettle => return None,
        // `-e` on the command line.
        Program::Nginx => &[1, 19, 5],
        // `fd-hard-limit`.
        Program::Haproxy => &[2, 6],
        // `ciphersuites`, here and there.
        Program::Hitch => &[1, 6],
        Program::Stunnel => &[5, 50],
    };
    let oldest: Vec<String> = needed.iter().map(u32::to_string).collect();
    let version = &found.version;
    let oldest = oldest.join(".");
    (!is_at_least(found.release.as_ref(), needed))
        .then(|| format!("{version} is too old: version {oldest} is needed"))
}

fn role(subject: &Subject, found: &Found, setup: &Setup) -> Option<String> {
    match (subject.role, subject.program) {
        (Role::Terminator, _) if setup.offer.http2.is_some() => {
            Some("a terminator relays bytes, and the backend here does not speak HTTP/2".to_owned())
        }
        (Role::Terminator, Program::Nginx) => lacks_stream(found),
        (Role::Files, Program::Haproxy) if !has_small_file(&setup.site) => {
            let most = haproxy::BODY_BYTES_MAX;
            Some(format!("HAProxy answers from a buffer, with at most {most} bytes"))
        }
        (Role::Cache, Program::Hitch) if varnish::version().is_none() => Some(
            "hitch keeps nothing itself, and there is no Varnish; apt-get install varnish"
                .to_owned(),
        ),
        (Role::Cache, Program::Haproxy | Program::Stunnel) => {
            Some(format!("{} is not run as a cache", subject.program))
        }
        (Role::Proxy, Program::Hitch | Program::Stunnel) => {
            Some(format!("{} relays bytes and reads no requests", subject.program))
        }
        (Role::Files, Program::Hitch | Program::Stunnel) => {
            Some(format!("{} has no bodies of its own; it only ends TLS", subject.program))
        }
        _ => None,
    }
}

fn lacks_stream(found: &Found) -> Option<String> {
    let version = &found.version;
    (found.nginx_stream == NginxStream::Absent).then(|| {
        format!("{version} has no stream module, which relays bytes; apt-get install libnginx-mod-stream")
    })
}

fn has_small_file(site: &std::path::Path) -> bool {
    let Ok(mut entries) = std::fs::read_dir(site) else { return false };
    entries.any(|entry| {
        let metadata = entry.and_then(|entry| entry.metadata());
        metadata.is_ok_and(|metadata| metadata.len() <= haproxy::BODY_BYTES_MAX)
    })
}

fn path(subject: &Subject, found: &Found, setup: &Setup) -> Option<String> {
    let program = subject.program;
    match subject.path {
        SubjectPath::User => None,
        SubjectPath::Plain => match program {
            Program::Nginx | Program::Haproxy => None,
            Program::Kettle if subject.role == Role::Files => None,
            _ => Some(format!("{program} serves nothing over plain HTTP")),
        },
        SubjectPath::Auto if program == Program::Kettle => None,
        SubjectPath::Auto => Some(format!("{program} does not choose where it encrypts")),
        SubjectPath::KernelSplice if subject.role != Role::Terminator => {
            Some("kernel-splice is for a tunnel's bytes from a backend".to_owned())
        }
        SubjectPath::KernelWrite | SubjectPath::KernelSendfile
            if program == Program::Kettle && subject.role == Role::Terminator =>
        {
            Some("as a terminator kettle encrypts by user, kernel-splice or auto".to_owned())
        }
        SubjectPath::KernelSendfile if subject.role == Role::Proxy => {
            Some("kernel-sendfile is for files, not for what comes from a backend".to_owned())
        }
        SubjectPath::KernelWrite | SubjectPath::KernelSendfile | SubjectPath::KernelSplice => {
            kernel_tls(program, found).or_else(|| kernel_lacks(&setup.offer))
        }
    }
}

fn kernel_tls(program: Program, found: &Found) -> Option<String> {
    let version = &found.version;
    match program {
        Program::Kettle => None,
        Program::Nginx if !is_at_least(found.release.as_ref(), &[1, 21, 4]) => {
            Some(format!("{version} does not use kernel TLS; nginx does from 1.21.4 on"))
        }
        Program::Nginx if !is_at_least(found.openssl.as_ref(), &[3, 0]) => {
            Some(format!("{version} does not use kernel TLS; OpenSSL does from 3.0 on"))
        }
        Program::Nginx => None,
        _ => Some(format!("{version} is not run with kernel TLS")),
    }
}

pub fn kernel_lacks(offer: &Offer) -> Option<String> {
    let capabilities = capabilities();
    if let Some(reason) = capabilities.tx_reason() {
        return Some(format!("no kernel TLS on this machine: {reason}"));
    }
    let version = offer.version;
    let cipher = offer.cipher;
    let reason = capabilities.suite(version, cipher).and_then(|suite| suite.tx.as_ref().err())?;
    Some(format!("this kernel does not carry {version:?} with {cipher:?}: {reason}"))
}

/// In a few words, why this kernel encrypts nothing: by `kettle doctor` where there is a kettle, since it knows causes.
pub fn kernel_obstacle() -> Option<String> {
    let examined = find(Program::Kettle).ok().and_then(|kettle| {
        let said = exit::output(kettle.command().args(["doctor", "--json"])).ok()?;
        serde_json::from_str::<Value>(&said).ok()
    });
    match examined {
        Some(report) => report["obstacle"].as_str().map(str::to_owned),
        None => capabilities().tx_reason(),
    }
}

/// Returns the capabilities of this kernel. Probing loads modules and opens connections, so it is done once; a kernel does not
/// change under a process.
fn capabilities() -> &'static Capabilities {
    static CAPABILITIES: OnceLock<Capabilities> = OnceLock::new();
    CAPABILITIES.get_or_init(Capabilities::run)
}

fn offer(found: &Found, setup: &Setup) -> Option<String> {
    if setup.offer.group != Group::X25519MlKem768 {
        return None;
    }
    if setup.offer.version == Version::Tls12 {
        return Some("TLS 1.2 has no X25519MLKEM768".to_owned());
    }
    // Of other libraries nothing is known: the server says at its start what it does not take.
    let lacks_it = found.openssl.as_ref().is_some_and(|openssl| !openssl.is_at_least(&[3, 5]));
    let version = &found.version;
    lacks_it.then(|| format!("{version}: X25519MLKEM768 needs OpenSSL 3.5"))
}

fn resumption(subject: &Subject, found: &Found, setup: &Setup) -> Option<String> {
    if !setup.resumes {
        return None;
    }
    let version = &found.version;
    match (setup.offer.resume_by, setup.offer.version, found.program) {
        (ResumeBy::SessionId, Version::Tls13, _) => Some("TLS 1.3 has no session IDs".to_owned()),
        (ResumeBy::EarlyData, Version::Tls12, _) => Some("TLS 1.2 has no early data".to_owned()),
        // Each of its processes remembers its own.
        (ResumeBy::SessionId, _, Program::Hitch) if setup.workers > 1 => {
            Some(format!("{version}: its workers share no sessions"))
        }
        (ResumeBy::EarlyData, _, Program::Kettle | Program::Hitch | Program::Stunnel) => {
            Some(format!("{version} takes no early data"))
        }
        (ResumeBy::EarlyData, _, Program::Nginx) if subject.role == Role::Terminator => {
            Some(format!("{version} takes no early data for a stream"))
        }
        _ => None,
    }
}

/// An unknown version passes: the server's own words at its start say more than a guess.
fn is_at_least(release: Option<&super::release::Release>, numbers: &[u32]) -> bool {
    release.is_none_or(|release| release.is_at_least(numbers))
}

#[cfg(test)]
mod tests;
