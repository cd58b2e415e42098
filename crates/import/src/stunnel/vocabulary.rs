//! The options of stunnel.conf, and what becomes of each.

/// An option.
#[derive(Debug)]
pub(super) struct Term {
    pub(super) name: &'static str,
    pub(super) fate: Fate,
}

/// The fate of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// The writer looks at it.
    Carried,
    /// As well; it is `yes` or `no`.
    Flag,
    /// It is not carried over; this is what holds instead.
    Dropped(&'static str),
    /// As well, where it is `yes`.
    FlagDropped(&'static str),
    /// Without it a service would not be what it was, so it is left out.
    Needed(&'static str),
}

impl Term {
    /// The option of this name, in whatever letters.
    pub(super) fn find(name: &str) -> Option<&'static Self> {
        TERMS.iter().find(|term| term.name.eq_ignore_ascii_case(name))
    }

    pub(super) fn names() -> Vec<&'static str> {
        TERMS.iter().map(|term| term.name).collect()
    }
}

const fn carried(name: &'static str) -> Term {
    Term { name, fate: Fate::Carried }
}

const fn flag(name: &'static str) -> Term {
    Term { name, fate: Fate::Flag }
}

const fn dropped(name: &'static str, help: &'static str) -> Term {
    Term { name, fate: Fate::Dropped(help) }
}

const fn flag_told(name: &'static str, help: &'static str) -> Term {
    Term { name, fate: Fate::FlagDropped(help) }
}

const fn needed(name: &'static str, why: &'static str) -> Term {
    Term { name, fate: Fate::Needed(why) }
}

const NO_OPENSSL: &str = "there is no OpenSSL: keys are read from files";
const NO_WINDOW: &str = "kettle has no window";
const NO_OCSP: &str = "no OCSP responder is asked: write CRLfile = FILE with the lists of its authority, or `pins` of a backend";
const LOGIN: &str = "only the dialogue that begins TLS is spoken";

/// stunnel 5.
static TERMS: &[Term] = &[
    carried("accept"),
    carried("connect"),
    flag("client"),
    carried("cert"),
    carried("key"),
    carried("CAfile"),
    carried("CApath"),
    carried("CRLfile"),
    carried("verify"),
    flag("verifyChain"),
    flag("verifyPeer"),
    flag("requireCert"),
    carried("checkHost"),
    carried("checkIP"),
    carried("sni"),
    carried("protocol"),
    carried("sslVersion"),
    carried("sslVersionMin"),
    carried("sslVersionMax"),
    carried("ciphers"),
    carried("ciphersuites"),
    carried("curves"),
    carried("curve"),
    carried("options"),
    carried("TIMEOUTidle"),
    carried("TIMEOUTconnect"),
    carried("failover"),
    carried("setuid"),
    carried("setgid"),
    carried("debug"),
    carried("sessionCacheSize"),
    flag("delay"),
    dropped("TIMEOUTbusy", "`handshake_timeout` below [tls] is the nearest"),
    dropped(
        "TIMEOUTclose",
        "a client that is silent once its server has ended is closed in a minute",
    ),
    dropped("TIMEOUTocsp", NO_OCSP),
    dropped("sessionCacheTimeout", "`ticket_rotation` below [tls] is the nearest"),
    flag_told("sessionResume", "sessions are resumed"),
    dropped("sessiond", "`ticket_secret` below [tls] is the same on all hosts"),
    dropped("ticketKeySecret", "`ticket_secret` below [tls] names a file"),
    dropped("ticketMacSecret", "`ticket_secret` below [tls] names a file"),
    dropped("pid", "`kettle run` stays in front, and systemd knows its number"),
    dropped("foreground", "`kettle run` stays in front, as systemd wants it"),
    dropped("output", "messages go to standard error, and from there to the journal"),
    dropped("log", "messages go to standard error, and from there to the journal"),
    flag_told("syslog", "messages go to standard error, and from there to the journal"),
    dropped("service", "messages bear the name of kettle"),
    dropped("iconActive", NO_WINDOW),
    dropped("iconError", NO_WINDOW),
    dropped("iconIdle", NO_WINDOW),
    flag_told("taskbar", NO_WINDOW),
    dropped("stack", "workers are few, and their stacks are as large as they need"),
    dropped("chroot", "RootDirectory= or ProtectSystem=strict in its unit"),
    dropped("compression", "TLS does not compress"),
    dropped("engine", NO_OPENSSL),
    dropped("engineCtrl", NO_OPENSSL),
    dropped("engineDefault", NO_OPENSSL),
    needed("engineId", NO_OPENSSL),
    needed("engineNum", NO_OPENSSL),
    needed("CAengine", NO_OPENSSL),
    dropped("provider", NO_OPENSSL),
    flag_told("fips", "kettle is not built for FIPS 140"),
    dropped("EGD", "the kernel's random numbers are used"),
    dropped("RNDbytes", "the kernel's random numbers are used"),
    dropped("RNDfile", "the kernel's random numbers are used"),
    dropped("RNDoverwrite", "the kernel's random numbers are used"),
    dropped("config", NO_OPENSSL),
    dropped("securityLevel", "RSA keys have 2,048 bits or more"),
    dropped("dh", "key exchange is by elliptic curves and ML-KEM only"),
    dropped("socket", "the kernel chooses; `keepalive` of the listener asks silent clients"),
    dropped("local", "the kernel chooses the address that servers are asked from"),
    flag_told("reset", "a stream that breaks ends without a close_notify"),
    flag_told("renegotiation", "there is no renegotiation"),
    flag_told("retry", "a server that takes no connection is followed by the next, each once"),
    dropped("redirect", "a client without a good certificate gets no connection"),
    dropped("logId", "each tunnel has a line in the log"),
    dropped("protocolHeader", LOGIN),
    dropped("protocolAuthentication", LOGIN),
    dropped("protocolDomain", LOGIN),
    dropped("protocolHost", LOGIN),
    dropped("protocolUsername", LOGIN),
    dropped("protocolPassword", LOGIN),
    flag_told("OCSPnonce", NO_OCSP),
    flag_told("OCSPrequire", NO_OCSP),
    dropped("OCSPflag", NO_OCSP),
    needed("OCSP", NO_OCSP),
    needed("OCSPaia", NO_OCSP),
    needed(
        "checkEmail",
        "no address of mail is looked for: write an authority of its own into CAfile",
    ),
    needed(
        "CRLpath",
        "revocation lists are one file: write cat FOLDER/*.r0 >FILE, and CRLfile = FILE",
    ),
    needed(
        "exec",
        "kettle starts no programs: write a systemd socket with Accept=yes, and connect = its address",
    ),
    dropped("execArgs", "kettle starts no programs"),
    dropped("pty", "kettle starts no programs"),
    needed(
        "ident",
        "nobody is asked for a user's name (RFC 1413), which its host may choose: write verifyChain = yes and CAfile",
    ),
    needed(
        "transparent",
        "servers see kettle's address: write protocol = proxy, which tells them the client's",
    ),
    needed(
        "PSKsecrets",
        "there are no keys that both sides share: write cert = FILE there, and verifyChain = yes with CAfile here",
    ),
    needed(
        "PSKidentity",
        "there are no keys that both sides share: write cert = FILE there, and verifyChain = yes with CAfile here",
    ),
    needed(
        "libwrap",
        "hosts.allow and hosts.deny are not read: write the networks into the firewall (nftables), and libwrap = no",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_is_there_once() {
        for term in TERMS {
            assert_eq!(
                Term::names().iter().filter(|name| **name == term.name).count(),
                1,
                "{term:?}"
            );
        }
    }
}
