//! The options of stunnel.conf, and what becomes of each.

/// An option.
#[derive(Debug)]
pub(super) struct Term {
    pub(super) name: &'static str,
    pub(super) fate: Fate,
}

/// What becomes of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// The writer looks at it.
    Carried,
    /// As well; it is `yes` or `no`.
    Flag,
    /// It is not carried over; this is what holds instead.
    Told(&'static str),
    /// As well, where it is `yes`.
    FlagTold(&'static str),
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

const fn told(name: &'static str, help: &'static str) -> Term {
    Term { name, fate: Fate::Told(help) }
}

const fn flag_told(name: &'static str, help: &'static str) -> Term {
    Term { name, fate: Fate::FlagTold(help) }
}

const fn needed(name: &'static str, why: &'static str) -> Term {
    Term { name, fate: Fate::Needed(why) }
}

const NO_OPENSSL: &str = "there is no OpenSSL: keys are read from files";
const NO_WINDOW: &str = "kettle has no window";
const NO_OCSP: &str = "no OCSP responder is asked: a CRL in `crl` of client_auth, or `pins` of a backend, say whom not to trust";
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
    told("TIMEOUTbusy", "`handshake_timeout` below [tls] is the nearest"),
    told("TIMEOUTclose", "a client that is silent once its server has ended is closed in a minute"),
    told("TIMEOUTocsp", NO_OCSP),
    told("sessionCacheTimeout", "`ticket_rotation` below [tls] is the nearest"),
    flag_told("sessionResume", "sessions are resumed"),
    told("sessiond", "`ticket_secret` below [tls] is the same on all hosts"),
    told("ticketKeySecret", "`ticket_secret` below [tls] names a file"),
    told("ticketMacSecret", "`ticket_secret` below [tls] names a file"),
    told("pid", "`kettle run` stays in front, and systemd knows its number"),
    told("foreground", "`kettle run` stays in front, as systemd wants it"),
    told("output", "messages go to standard error, and from there to the journal"),
    told("log", "messages go to standard error, and from there to the journal"),
    flag_told("syslog", "messages go to standard error, and from there to the journal"),
    told("service", "messages bear the name of kettle"),
    told("iconActive", NO_WINDOW),
    told("iconError", NO_WINDOW),
    told("iconIdle", NO_WINDOW),
    flag_told("taskbar", NO_WINDOW),
    told("stack", "workers are few, and their stacks are as large as they need"),
    told("chroot", "RootDirectory= or ProtectSystem=strict in its unit"),
    told("compression", "TLS does not compress"),
    told("engine", NO_OPENSSL),
    told("engineCtrl", NO_OPENSSL),
    told("engineDefault", NO_OPENSSL),
    needed("engineId", NO_OPENSSL),
    needed("engineNum", NO_OPENSSL),
    needed("CAengine", NO_OPENSSL),
    told("provider", NO_OPENSSL),
    flag_told("fips", "kettle is not built for FIPS 140"),
    told("EGD", "the kernel's random numbers are used"),
    told("RNDbytes", "the kernel's random numbers are used"),
    told("RNDfile", "the kernel's random numbers are used"),
    told("RNDoverwrite", "the kernel's random numbers are used"),
    told("config", NO_OPENSSL),
    told("securityLevel", "RSA keys have 2,048 bits or more"),
    told("dh", "key exchange is by elliptic curves and ML-KEM only"),
    told("socket", "the kernel chooses; `keepalive` of the listener asks silent clients"),
    told("local", "the kernel chooses the address that servers are asked from"),
    flag_told("reset", "a stream that breaks ends without a close_notify"),
    flag_told("renegotiation", "there is no renegotiation"),
    flag_told("retry", "a server that takes no connection is followed by the next, each once"),
    told("redirect", "a client without a good certificate gets no connection"),
    told("logId", "each tunnel has a line in the log"),
    told("protocolHeader", LOGIN),
    told("protocolAuthentication", LOGIN),
    told("protocolDomain", LOGIN),
    told("protocolHost", LOGIN),
    told("protocolUsername", LOGIN),
    told("protocolPassword", LOGIN),
    flag_told("OCSPnonce", NO_OCSP),
    flag_told("OCSPrequire", NO_OCSP),
    told("OCSPflag", NO_OCSP),
    needed("OCSP", NO_OCSP),
    needed("OCSPaia", NO_OCSP),
    needed("checkEmail", "certificates are held against a name of DNS"),
    needed("checkIP", "certificates are held against a name of DNS"),
    needed("CRLpath", "revocation lists are files"),
    needed("exec", "kettle starts no programs"),
    told("execArgs", "kettle starts no programs"),
    told("pty", "kettle starts no programs"),
    needed("ident", "nobody is asked for a user's name, and whoever connects is let in"),
    needed("transparent", "servers see kettle's address; `send_proxy` tells them the client's"),
    needed("PSKsecrets", "there are no keys that both sides share"),
    needed("PSKidentity", "there are no keys that both sides share"),
    needed("libwrap", "nobody is let in by network here"),
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
