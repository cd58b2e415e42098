//! A server's configuration file: a template tuned as its documentation advises, with the words of one setup filled in. Operators
//! may bring templates of their own with the same words between @.

pub(super) mod haproxy;
mod kettle;
mod nginx;

use std::net::SocketAddr;
use std::path::Path;

use kettle_kernel::process;
use kettle_loadgen::offer::ResumeBy;

use super::error::PeerError;
use super::identity::Identity;
use super::openssl;
use super::subject::{Program, Role, Setup, Subject};

/// Everything a configuration is made of.
pub struct ConfigInput<'p> {
    pub subject: Subject,
    pub setup: &'p Setup,
    pub address: SocketAddr,
    pub identity: &'p Identity,
    /// The module nginx has to load before it can relay bytes.
    pub stream_module: Option<&'p Path>,
}

/// The template for a program in a role, as published. Only nginx has different settings for each.
pub fn template(program: Program, role: Role) -> &'static str {
    match (program, role) {
        (Program::Kettle, _) => include_str!("configs/kettle.toml"),
        (Program::Nginx, Role::Files | Role::Cache | Role::Proxy) => {
            include_str!("configs/nginx.conf")
        }
        (Program::Nginx, Role::Terminator) => include_str!("configs/nginx-stream.conf"),
        (Program::Haproxy, _) => include_str!("configs/haproxy.cfg"),
        (Program::Hitch, _) => include_str!("configs/hitch.conf"),
        (Program::Stunnel, _) => include_str!("configs/stunnel.conf"),
    }
}

pub fn file_name(program: Program) -> &'static str {
    match program {
        Program::Kettle => "kettle.toml",
        Program::Nginx => "nginx.conf",
        Program::Haproxy => "haproxy.cfg",
        Program::Hitch => "hitch.conf",
        Program::Stunnel => "stunnel.conf",
    }
}

/// A template with the words of this place for a program filled in. A server can be given another one's configuration.
///
/// # Errors
/// [`PeerError::Unprepared`] if the template has a word in braces that stands for nothing.
pub fn filled_for(
    program: Program,
    input: &ConfigInput<'_>,
    template: &str,
) -> Result<String, PeerError> {
    let words = match program {
        Program::Kettle => kettle::words(input),
        Program::Nginx => nginx::words(input),
        Program::Haproxy => haproxy::words(input),
        Program::Hitch => of_hitch(input),
        Program::Stunnel => of_stunnel(input),
    };
    // A program's own word for something comes before the common one.
    let words = words.into_iter().chain(common(input)).collect();
    fill(template, &words).map_err(|word| {
        PeerError::Unprepared(format!(
            "the configuration has {word}, which stands for nothing; `kettle bench config` shows what there is"
        ))
    })
}

/// OpenSSL's own configuration for programs that have no setting for it: without it, those that resume nothing would still make
/// and send two tickets in each TLS 1.3 handshake.
pub fn openssl_conf(program: Program, setup: &Setup) -> Option<&'static str> {
    match (program, resume_by(setup)) {
        (Program::Haproxy | Program::Hitch, ResumeBy::Nothing | ResumeBy::SessionId) => {
            Some(include_str!("configs/openssl.cnf"))
        }
        _ => None,
    }
}

/// Placeholders, without their @, and what they stand for.
type Words = Vec<(&'static str, String)>;

fn common(input: &ConfigInput<'_>) -> Words {
    let ConfigInput { setup, identity, address, .. } = input;
    let offer = setup.offer;
    vec![
        ("VERSION", openssl::version(offer.version).to_owned()),
        ("SUITE_TLS12", openssl::suite_tls12(offer.cipher, setup.key).to_owned()),
        ("SUITE_TLS13", openssl::suite_tls13(offer.cipher).to_owned()),
        ("GROUP", offer.group.title().to_owned()),
        ("WORKERS", setup.workers.to_string()),
        ("ADDRESS", address.to_string()),
        ("PORT", address.port().to_string()),
        ("SITE", setup.site.display().to_string()),
        ("FOLDER", setup.folder.display().to_string()),
        ("CERTIFICATE", identity.certificate.display().to_string()),
        ("KEY", identity.key.display().to_string()),
        ("CERTIFICATE_AND_KEY", identity.both.display().to_string()),
        ("BACKEND", setup.backend_address()),
    ]
}

fn of_hitch(input: &ConfigInput<'_>) -> Words {
    let backend = input.setup.backend;
    let backend = backend.map(|to| format!("[{}]:{}", to.ip(), to.port())).unwrap_or_default();
    // It insists on another user when it is started by root, and takes none otherwise.
    let user = if process::is_root() { "user = \"nobody\"\ngroup = \"nogroup\"" } else { "" };
    vec![("BACKEND_IN_BRACKETS", backend), ("USER", user.to_owned())]
}

fn of_stunnel(input: &ConfigInput<'_>) -> Words {
    let sessions = match resume_by(input.setup) {
        ResumeBy::Nothing => "sessionResume = no".to_owned(),
        ResumeBy::SessionId => format!("sessionCacheSize = {SESSIONS_MAX}\noptions = NO_TICKET"),
        // Tickets need no memory of sessions.
        ResumeBy::Ticket | ResumeBy::EarlyData => "sessionCacheSize = 1".to_owned(),
    };
    vec![("SESSIONS", sessions)]
}

/// Replaces each `@WORD@`; a text for several lines keeps the placeholder's indentation. The error is one that does not exist.
fn fill(template: &str, words: &Words) -> Result<String, String> {
    let mut filled = String::with_capacity(template.len());
    for line in template.lines() {
        let indentation: String = line.chars().take_while(|c| c.is_whitespace()).collect();
        let mut rest = line;
        while let Some((before, word, after)) = placeholder(rest) {
            let (_, text) =
                words.iter().find(|(name, _)| *name == word).ok_or_else(|| format!("@{word}@"))?;
            filled.push_str(before);
            filled.push_str(&text.replace('\n', &format!("\n{indentation}")));
            rest = after;
        }
        filled.push_str(rest);
        filled.truncate(filled.trim_end_matches([' ', '\t']).len());
        filled.push('\n');
    }
    Ok(filled)
}

pub fn has_placeholder(text: &str) -> bool {
    text.lines().any(|line| placeholder(line).is_some())
}

/// Splits at the first placeholder: before it, its word, behind it.
fn placeholder(line: &str) -> Option<(&str, &str, &str)> {
    let is_word = |word: &str| {
        !word.is_empty()
            && word.bytes().all(|byte| byte.is_ascii_uppercase() || b"_0123456789".contains(&byte))
    };
    line.match_indices('@').find_map(|(at, _)| {
        let (word, after) = line.get(at + 1..)?.split_once('@')?;
        is_word(word).then_some((line.get(..at)?, word, after))
    })
}

/// Returns the way sessions are resumed: not at all, where resuming is off.
fn resume_by(setup: &Setup) -> ResumeBy {
    if setup.resumes { setup.offer.resume_by } else { ResumeBy::Nothing }
}

/// The folder where caches keep what they keep, below a server's own folder.
pub(super) const CACHE_FOLDER: &str = "cache";
/// More than any scenario lets arrive.
pub(super) const CACHE_GIB: u64 = 4;
/// Sessions remembered for session IDs: more than any scenario begins before it resumes them.
const SESSIONS_MAX: usize = 262_144;
/// Tickets after a full TLS 1.3 handshake: what OpenSSL and kettle do by themselves.
const TICKETS: usize = 2;

#[cfg(test)]
mod tests;
