//! The words of hitch.conf and of the command lines: what each takes, and where it may stand.

pub(super) struct Term {
    pub(super) name: &'static str,
    pub(super) takes: Takes,
    pub(super) contexts: &'static [Context],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Context {
    Top,
    Frontend,
    PemFile,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    Text,
    /// Text, or a block of this context.
    TextOr(Context),
    Flag,
    Number,
    /// A number or `auto`.
    Workers,
    /// Versions of TLS, one after the other.
    Protocols,
    /// `none`, `optional` or `required`.
    Verify,
}

impl Term {
    /// The setting of this name, wherever it may stand.
    pub(super) fn find(name: &str) -> Option<&'static Self> {
        TERMS.iter().find(|term| term.name == name)
    }

    /// The names of the settings that may stand there.
    pub(super) fn names(context: Context) -> Vec<&'static str> {
        let there = TERMS.iter().filter(|term| term.contexts.contains(&context));
        there.map(|term| term.name).collect()
    }
}

impl Context {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Top => "hitch",
            Self::Frontend => "a frontend",
            Self::PemFile => "a pem-file",
        }
    }
}

const TOP: &[Context] = &[Context::Top];
const TOP_AND_FRONTEND: &[Context] = &[Context::Top, Context::Frontend];
const EVERYWHERE: &[Context] = &[Context::Top, Context::Frontend, Context::PemFile];
const FRONTEND: &[Context] = &[Context::Frontend];
const PEM_FILE: &[Context] = &[Context::PemFile];

const fn of(name: &'static str, takes: Takes, contexts: &'static [Context]) -> Term {
    Term { name, takes, contexts }
}

/// hitch 1.0 to 1.8 and stud; the last ones are stud's own.
pub(super) static TERMS: &[Term] = &[
    of("frontend", Takes::TextOr(Context::Frontend), TOP),
    of("backend", Takes::Text, TOP),
    of("pem-file", Takes::TextOr(Context::PemFile), TOP_AND_FRONTEND),
    of("pem-dir", Takes::Text, TOP),
    of("pem-dir-glob", Takes::Text, TOP),
    of("host", Takes::Text, FRONTEND),
    of("port", Takes::Text, FRONTEND),
    of("match-global-certs", Takes::Flag, FRONTEND),
    of("sni-nomatch-abort", Takes::Flag, TOP_AND_FRONTEND),
    of("tls-protos", Takes::Protocols, TOP_AND_FRONTEND),
    of("tls", Takes::Flag, TOP_AND_FRONTEND),
    of("ssl", Takes::Flag, TOP_AND_FRONTEND),
    of("ciphers", Takes::Text, TOP_AND_FRONTEND),
    of("ciphersuites", Takes::Text, TOP_AND_FRONTEND),
    of("prefer-server-ciphers", Takes::Flag, TOP_AND_FRONTEND),
    of("client-verify", Takes::Verify, EVERYWHERE),
    of("client-verify-ca", Takes::Text, EVERYWHERE),
    of("cert", Takes::Text, PEM_FILE),
    of("private-key", Takes::Text, PEM_FILE),
    of("ocsp-resp-file", Takes::Text, PEM_FILE),
    of("ocsp-verify-staple", Takes::Flag, &[Context::Top, Context::PemFile]),
    of("ocsp-dir", Takes::Text, TOP),
    of("ocsp-connect-tmo", Takes::Number, TOP),
    of("ocsp-resp-tmo", Takes::Number, TOP),
    of("ocsp-refresh-interval", Takes::Number, TOP),
    of("ecdh-curve", Takes::Text, TOP),
    of("ssl-engine", Takes::Text, TOP),
    of("alpn-protos", Takes::Text, TOP),
    of("workers", Takes::Workers, TOP),
    of("backlog", Takes::Number, TOP),
    of("keepalive", Takes::Number, TOP),
    of("backend-refresh", Takes::Number, TOP),
    of("backend-connect-timeout", Takes::Number, TOP),
    of("ssl-handshake-timeout", Takes::Number, TOP),
    of("recv-bufsize", Takes::Number, TOP),
    of("send-bufsize", Takes::Number, TOP),
    of("tcp-fastopen", Takes::Flag, TOP),
    of("chroot", Takes::Text, TOP),
    of("user", Takes::Text, TOP),
    of("group", Takes::Text, TOP),
    of("quiet", Takes::Flag, TOP),
    of("log-level", Takes::Number, TOP),
    of("log-filename", Takes::Text, TOP),
    of("syslog", Takes::Flag, TOP),
    of("syslog-facility", Takes::Text, TOP),
    of("daemon", Takes::Flag, TOP),
    of("pidfile", Takes::Text, TOP),
    of("write-ip", Takes::Flag, TOP),
    of("write-proxy", Takes::Flag, TOP),
    of("write-proxy-v1", Takes::Flag, TOP),
    of("write-proxy-v2", Takes::Flag, TOP),
    of("proxy-proxy", Takes::Flag, TOP),
    of("proxy-tlv", Takes::Flag, TOP),
    of("proxy-authority", Takes::Flag, TOP),
    of("proxy-client-cert", Takes::Flag, TOP),
    of("session-cache", Takes::Number, TOP),
    of("shared-cache-listen", Takes::Text, TOP),
    of("shared-cache-peer", Takes::Text, TOP),
    of("shared-cache-if", Takes::Text, TOP),
    of("ring-slots", Takes::Number, TOP),
    of("ring-data-len", Takes::Number, TOP),
    of("shared-cache", Takes::Number, TOP),
    of("client", Takes::Flag, TOP),
];

pub(super) struct CommandOption {
    pub(super) long: &'static str,
    pub(super) short: Option<char>,
    pub(super) argument: Argument,
    /// The setting it stands for, if for one.
    pub(super) key: &'static str,
    /// For the help: what its argument is called, and what it does.
    pub(super) value: &'static str,
    pub(super) help: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Argument {
    None,
    /// `--name` or `--name=on`.
    Optional,
    Required,
}

const fn opt(
    long: &'static str,
    short: Option<char>,
    value: &'static str,
    key: &'static str,
    help: &'static str,
) -> CommandOption {
    CommandOption { long, short, argument: Argument::Required, key, value, help }
}

const fn flag(
    long: &'static str,
    short: Option<char>,
    key: &'static str,
    help: &'static str,
) -> CommandOption {
    CommandOption { long, short, argument: Argument::Optional, key, value: "on|off", help }
}

const fn bare(long: &'static str, short: Option<char>, help: &'static str) -> CommandOption {
    CommandOption { long, short, argument: Argument::None, key: long, value: "", help }
}

/// As getopt_long(3) of hitch and stud has them.
pub(super) static OPTIONS: &[CommandOption] = &[
    opt("config", None, "FILE", "", "Read this configuration file first"),
    opt("frontend", Some('f'), "[HOST]:PORT[+CERT]", "frontend", "Listen here; stud: HOST,PORT"),
    opt(
        "backend",
        Some('b'),
        "[HOST]:PORT",
        "backend",
        "Where connections go, or /PATH; stud: HOST,PORT",
    ),
    opt("tls-protos", None, "LIST", "tls-protos", "Versions of TLS: TLSv1.2, TLSv1.3"),
    bare("tls", None, "TLS, as is the default"),
    bare("ssl", None, "Older versions too, which kettle has not"),
    opt("ciphers", Some('c'), "LIST", "ciphers", "Ciphers of TLS 1.2, in OpenSSL's words"),
    opt("ssl-engine", Some('e'), "NAME", "ssl-engine", "Not used: there is no OpenSSL"),
    flag(
        "prefer-server-ciphers",
        Some('O'),
        "prefer-server-ciphers",
        "The order of --ciphers decides",
    ),
    bare("client", None, "Not here: see kettle originate"),
    opt("workers", Some('n'), "NUMBER", "workers", "Worker threads"),
    opt("backlog", Some('B'), "NUMBER", "backlog", "Connections that wait to be accepted"),
    opt("session-cache", Some('C'), "NUMBER", "session-cache", "Sessions remembered for TLS 1.2"),
    opt("shared-cache", None, "NUMBER", "session-cache", "The same"),
    opt(
        "shared-cache-listen",
        Some('U'),
        "HOST:PORT",
        "shared-cache-listen",
        "Not used: see ticket_secret",
    ),
    opt(
        "shared-cache-peer",
        Some('P'),
        "HOST:PORT",
        "shared-cache-peer",
        "Not used: see ticket_secret",
    ),
    opt("shared-cache-if", Some('M'), "IFACE", "shared-cache-if", "Not used: see ticket_secret"),
    opt("keepalive", Some('k'), "SECONDS", "keepalive", "TCP keepalive towards clients"),
    opt(
        "backend-refresh",
        Some('R'),
        "SECONDS",
        "backend-refresh",
        "Look the backend's name up again",
    ),
    opt("backendrefresh", None, "SECONDS", "backend-refresh", "The same"),
    opt(
        "backend-connect-timeout",
        None,
        "SECONDS",
        "backend-connect-timeout",
        "The time the backend has",
    ),
    opt("ssl-handshake-timeout", None, "SECONDS", "ssl-handshake-timeout", "The time a client has"),
    opt("recv-bufsize", None, "BYTES", "recv-bufsize", "Not used: the kernel decides"),
    opt("send-bufsize", None, "BYTES", "send-bufsize", "Not used: the kernel decides"),
    flag("enable-tcp-fastopen", None, "tcp-fastopen", "Not used"),
    opt("chroot", Some('r'), "DIR", "chroot", "Not used: see the unit's settings"),
    opt("user", Some('u'), "USER", "user", "Serve as this user"),
    opt("group", Some('g'), "GROUP", "group", "Serve as this group"),
    flag("quiet", Some('q'), "quiet", "Errors and mistakes only"),
    opt("log-level", Some('L'), "NUMBER", "log-level", "0 is errors, 1 warnings too, 2 all"),
    opt("log-filename", Some('l'), "FILE", "log-filename", "Messages go to this file"),
    flag("syslog", Some('s'), "syslog", "Messages go to syslog, too"),
    opt("syslog-facility", None, "NAME", "syslog-facility", "There, below this facility: daemon"),
    flag("daemon", None, "daemon", "Leave the terminal"),
    opt("pidfile", Some('p'), "FILE", "pidfile", "Write the number of the process there"),
    flag("write-ip", None, "write-ip", "Tell the backend the client's address, in bytes"),
    flag("write-proxy", None, "write-proxy", "The same as --write-proxy-v2; stud: version 1"),
    flag("write-proxy-v1", None, "write-proxy-v1", "Tell it by the PROXY protocol, version 1"),
    flag("write-proxy-v2", None, "write-proxy-v2", "Tell it by the PROXY protocol, version 2"),
    flag("proxy-proxy", None, "proxy-proxy", "Clients come with a PROXY header, which goes on"),
    flag("sni-nomatch-abort", None, "sni-nomatch-abort", "Refuse names that no certificate has"),
    opt("alpn-protos", None, "LIST", "alpn-protos", "Application protocols, separated by commas"),
    opt("ocsp-dir", Some('o'), "DIR", "ocsp-dir", "OCSP responses lie there; none is fetched"),
    bare("test", Some('t'), "Try the configuration and exit"),
    bare("version", Some('V'), "Print the version and exit"),
    bare("help", Some('h'), "Print this and exit"),
];
