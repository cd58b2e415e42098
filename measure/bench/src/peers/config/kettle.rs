//! The words of kettle.toml.

use kettle_loadgen::offer::ResumeBy;

use super::{CACHE_FOLDER, CACHE_GIB, ConfigInput, SESSIONS_MAX, TICKETS, Words, resume_by};
use crate::peers::subject::{Role, SubjectPath};
use crate::word::Word;

pub(super) fn words(input: &ConfigInput<'_>) -> Words {
    let offer = input.setup.offer;
    let (tickets, sessions) = match resume_by(input.setup) {
        ResumeBy::Nothing => (0, 0),
        ResumeBy::SessionId => (0, SESSIONS_MAX),
        ResumeBy::Ticket | ResumeBy::EarlyData => (TICKETS, 0),
    };
    // A file that is held in memory is not sent from the page cache.
    let hot_file = if input.subject.path == SubjectPath::KernelSendfile { "0 B" } else { "64 KiB" };
    let is_plain = input.subject.path == SubjectPath::Plain;
    let (listener, serves) = match input.subject.role {
        Role::Files if is_plain => (PLAIN, route(input)),
        Role::Files => ("kind = \"https\"", route(input)),
        Role::Terminator => ("kind = \"tls\"\nbackend = \"plain\"", backend(input)),
        Role::Cache => ("kind = \"https\"", cache(input) + &backend(input)),
        Role::Proxy => ("kind = \"https\"", PROXIED.to_owned() + &backend(input)),
    };
    let path =
        if is_plain { String::new() } else { format!("path = \"{}\"", input.subject.path.word()) };
    vec![
        ("VERSION", format!("tls{}", offer.version.word())),
        ("SUITE", offer.cipher.word().to_owned()),
        ("GROUP", offer.group.name().to_owned()),
        ("TICKETS", tickets.to_string()),
        ("SESSION_CACHE", sessions.to_string()),
        ("HOT_FILE", hot_file.to_owned()),
        ("PATH", path),
        ("LISTENER", format!("{listener}{}", if offer.http2.is_some() { HTTP2 } else { "" })),
        ("SERVES", serves),
    ]
}

const PLAIN: &str = "kind = \"http\"\nsites = [\"localhost\"]";

/// Of an https listener; a terminator is refused before.
const HTTP2: &str = "\nhttp2 = true";

const PROXIED: &str = "[[site.route]]\nbackend = \"plain\"\nwebsocket = true\n\n";

fn route(input: &ConfigInput<'_>) -> String {
    format!("[[site.route]]\nroot = \"{}\"", input.setup.site.display())
}

fn cache(input: &ConfigInput<'_>) -> String {
    let directory = input.setup.folder.join(CACHE_FOLDER);
    format!(
        "[[site.route]]\nbackend = \"plain\"\n[site.route.cache]\nstore = \"main\"\n\n\
         [[cache]]\nname = \"main\"\ndirectory = \"{}\"\nsize = \"{CACHE_GIB} GiB\"\n\n",
        directory.display()
    )
}

/// Timeouts as the other terminators have them; and no server is left alone after failed connects, since there is one only.
fn backend(input: &ConfigInput<'_>) -> String {
    let to = input.setup.backend_address();
    format!(
        "[[backend]]\nname = \"plain\"\nconnect_timeout = \"10s\"\nidle_timeout = \"1h\"\nfails = 0\n\n\
         [[backend.server]]\naddress = \"{to}\""
    )
}
