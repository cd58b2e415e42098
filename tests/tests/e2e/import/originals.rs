//! Which words of hitch.conf and stunnel.conf become no listener of kettle though the originals take them: each is imported, and where
//! nothing comes of it the original is asked.

use std::fmt::Write;

use kettle_tests::transcript::contains;

use super::*;

/// The words, one a line, that the original takes though their configuration is imported to no listener; and how many were tried. Of each
/// the reason is said, and what to write instead.
fn left_out(kind: &str, cases: &str, takes: impl Fn(&Path) -> bool) -> (String, usize) {
    let folder = TempDir::new().unwrap();
    let place = folder.path().to_str().unwrap();
    let issued = issue(&["localhost"], Kind::Rsa);
    for (name, text) in [
        ("both.pem", format!("{}{}", issued.key, issued.chain)),
        ("key.pem", issued.key),
        ("roots.pem", issued.chain),
        ("psk", "a:0123456789012345678901234567890123456789\n".to_owned()),
    ] {
        fs::write(folder.path().join(name), text).unwrap();
    }
    fs::create_dir(folder.path().join("more")).unwrap();
    fs::copy(folder.path().join("both.pem"), folder.path().join("more/both.pem")).unwrap();
    let (mut left, mut count, mut base) = (String::new(), 0, "");
    for line in cases.lines().filter(|line| !line.is_empty()) {
        if let Some(begun) = line.strip_prefix("= ") {
            base = begun;
            continue;
        }
        let address = unused_address();
        let text = base
            .replace("LINE", line)
            .replace(" | ", "\n")
            .replace("FOLDER", place)
            .replace("FRONTEND", &format!("[{}]:{}", address.ip(), address.port()))
            .replace("ADDRESS", &address.to_string());
        let path = folder.path().join("conf");
        fs::write(&path, text + "\n").unwrap();
        count += 1;
        let made = Tool::kettle(["import", kind]).args([&path]).output();
        if !made.text().contains("[[listener]]") && takes(&path) {
            let said = |it: &str| it.contains("is left out") || it.starts_with("error: ");
            let mut blocks = made.stderr.split("\n\n").filter(|it| said(it));
            let is_said = blocks.any(|it| it.contains("\nhelp: ") && it.contains("write "));
            assert!(is_said, "{line}: {}", made.stderr);
            writeln!(left, "{line}").unwrap();
        }
    }
    (left, count)
}

fn is_there(program: &str) -> bool {
    let is_there = Path::new(program).exists();
    if !is_there {
        skip(&format!("there is no {program} here"));
    }
    is_there
}

#[test]
fn what_hitch_takes_is_taken_but_for_versions_and_curves_that_kettle_has_not() {
    let hitch = "/usr/sbin/hitch";
    if !is_there(hitch) {
        return;
    }
    let takes = |path: &Path| {
        let ended = Tool::new(hitch).args(["--test", "--config"]).args([path]).output();
        ended.status.success()
    };
    let (left, count) = left_out("hitch", HITCH, takes);
    assert_eq!(left, "tls-protos = SSLv3\necdh-curve = \"X448\"\n");
    assert_eq!(count, 68);
}

/// A service that would become laxer, or speaks what kettle does not, is left out.
#[test]
fn what_stunnel_takes_is_taken_but_for_the_services_that_are_named_here() {
    let stunnel = "/usr/bin/stunnel4";
    if !is_there(stunnel) {
        return;
    }
    let takes = |path: &Path| {
        let running = Tool::new(stunnel).args([path]).start();
        running.stderr.wait_until("what stunnel says of its file", |said| {
            let has = |word: &str| contains(said, format!("Configuration {word}").as_bytes());
            (has("successful") || has("failed")).then(|| has("successful"))
        })
    };
    let (left, count) = left_out("stunnel", STUNNEL, takes);
    assert_eq!(left, STUNNEL_LEFT);
    assert_eq!(count, 123);
    let page = include_str!("../../../../docs/migrating.md");
    for word in STUNNEL_LEFT.lines().filter_map(|line| line.split(" = ").next()) {
        assert!(page.contains(&format!("`{word}")), "migrating.md says nothing of {word}");
    }
}

/// A line that begins so says what is around the lines behind it; `|` ends a line.
const HITCH: &str = r#"
= frontend = "FRONTEND" | backend = "[127.0.0.1]:9" | pem-file = "FOLDER/both.pem" | LINE
alpn-protos = "h2,http/1.1"
backlog = 100
chroot = "/tmp"
ciphers = "EECDH+AESGCM"
ciphers = "HIGH"
ciphersuites = "TLS_AES_128_GCM_SHA256"
client-verify = none
client-verify = optional | client-verify-ca = "FOLDER/roots.pem"
client-verify = required | client-verify-ca = "FOLDER/roots.pem"
daemon = off
daemon = on
user = "nobody"
group = "nogroup"
keepalive = 3600
backend-refresh = 0
backend-refresh = 5
recv-bufsize = 65536
send-bufsize = 65536
ocsp-dir = ""
ocsp-dir = "/tmp"
ocsp-connect-tmo = 4
ocsp-resp-tmo = 10
ocsp-refresh-interval = 1800
ocsp-verify-staple = off
ocsp-verify-staple = on
pem-dir = "FOLDER/more"
pem-dir = "FOLDER/more" | pem-dir-glob = "*.pem"
prefer-server-ciphers = on
prefer-server-ciphers = off
proxy-proxy = on
proxy-proxy = off
log-level = 0
log-level = 2
log-filename = "FOLDER/log"
quiet = on
quiet = off
tls-protos = TLSv1.0 TLSv1.1 TLSv1.2
tls-protos = TLSv1.2 TLSv1.3
tls-protos = TLSv1.2
tls-protos = TLSv1.3
tls-protos = SSLv3
ecdh-curve = "X25519:prime256v1:secp384r1"
ecdh-curve = ""
ecdh-curve = "X448"
sni-nomatch-abort = on
sni-nomatch-abort = off
ssl-engine = ""
syslog = on
syslog = off
syslog-facility = "daemon"
syslog-facility = "local0"
workers = 1
workers = 4
write-ip = on
write-proxy = on
write-proxy-v1 = on
write-proxy-v2 = on
write-proxy-v2 = on | proxy-tlv = on
write-proxy-v2 = on | proxy-tlv = off
write-proxy-v2 = on | proxy-client-cert = on | client-verify = optional | client-verify-ca = "FOLDER/roots.pem"
tcp-fastopen = on
tcp-fastopen = off
tls = on
ssl = on
frontend = { | host = "127.0.0.1" | port = "8443" | match-global-certs = on | sni-nomatch-abort = on | }
frontend = { | host = "127.0.0.1" | port = "8443" | tls-protos = TLSv1.3 | ciphers = "HIGH" | client-verify = none | }
frontend = { | host = "*" | port = "8443" | pem-file = "FOLDER/both.pem" | }
pem-file = { | cert = "FOLDER/both.pem" | private-key = "FOLDER/key.pem" | ocsp-verify-staple = off | }
"#;

const STUNNEL: &str = "
= foreground = yes | pid = | LINE | [x] | accept = ADDRESS | connect = 127.0.0.1:9 | cert = FOLDER/both.pem
chroot = /tmp
EGD = /tmp/none
engine = auto
log = append
log = overwrite
RNDbytes = 64
RNDfile = /dev/urandom
RNDoverwrite = no
syslog = yes
syslog = no
fips = no
service = x
setuid = nobody
setgid = nogroup
debug = 7
debug = daemon.info
sessionCacheSize = 100
= foreground = yes | pid = | [x] | accept = ADDRESS | connect = 127.0.0.1:9 | cert = FOLDER/both.pem | LINE
CAfile = FOLDER/roots.pem
CApath = /etc/ssl/certs
checkEmail = a@b.c | verifyChain = yes | CAfile = FOLDER/roots.pem
checkHost = localhost | verifyChain = yes | CAfile = FOLDER/roots.pem
checkIP = 127.0.0.1 | verifyChain = yes | CAfile = FOLDER/roots.pem
ciphers = HIGH
ciphersuites = TLS_AES_128_GCM_SHA256
config = MaxProtocol:TLSv1.3
CRLpath = FOLDER/more | verifyChain = yes | CAfile = FOLDER/roots.pem
curves = X25519:P-256
curve = prime256v1
debug = 6
delay = yes
failover = rr
failover = prio
ident = nobody
key = FOLDER/key.pem
libwrap = yes
libwrap = no
local = 127.0.0.1
logId = unique
OCSP = http://127.0.0.1/ | verifyChain = yes | CAfile = FOLDER/roots.pem
OCSPaia = yes | verifyChain = yes | CAfile = FOLDER/roots.pem
OCSPaia = no
OCSPflag = NOCHAIN
OCSPnonce = yes
options = NO_SSLv3
options = -NO_SSLv3
options = ALL
options = CIPHER_SERVER_PREFERENCE
options = NO_TICKET
protocol = proxy
protocol = smtp
protocol = pgsql
protocol = imap
protocol = pop3
protocol = cifs
protocol = connect
PSKsecrets = FOLDER/psk
redirect = 127.0.0.1:1 | verifyChain = yes | CAfile = FOLDER/roots.pem
renegotiation = no
requireCert = yes | verifyChain = yes | CAfile = FOLDER/roots.pem
requireCert = no
reset = yes
reset = no
retry = no
securityLevel = 2
sessionCacheSize = 1000
sessionCacheTimeout = 300
sessionResume = yes
sessiond = 127.0.0.1:1
socket = l:TCP_NODELAY=1
socket = r:TCP_NODELAY=1
socket = a:SO_REUSEADDR=1
sslVersion = all
sslVersion = TLSv1.2
sslVersion = TLSv1.3
sslVersion = TLSv1
sslVersionMax = TLSv1.2
sslVersionMin = TLSv1
sslVersionMin = TLSv1.3
stack = 65536
ticketKeySecret = 0123456789abcdef0123456789abcdef | ticketMacSecret = 0123456789abcdef0123456789abcdef
TIMEOUTbusy = 300
TIMEOUTclose = 0
TIMEOUTconnect = 10
TIMEOUTidle = 43200
transparent = none
transparent = source
verify = 0
verify = 1 | CAfile = FOLDER/roots.pem
verify = 2 | CAfile = FOLDER/roots.pem
verify = 3 | CAfile = FOLDER/roots.pem
verify = 4 | CAfile = FOLDER/roots.pem
verifyChain = yes | CAfile = FOLDER/roots.pem
verifyChain = no
verifyPeer = yes | CAfile = FOLDER/roots.pem
verifyPeer = no
client = no
= foreground = yes | pid = | [x] | accept = ADDRESS | connect = 127.0.0.1:9 | cert = FOLDER/both.pem | [y] | connect = 127.0.0.1:8 | cert = FOLDER/both.pem | LINE
sni = x:b.example
sni = x:b.example | sni = x:*.c.example | verifyChain = yes | CAfile = FOLDER/roots.pem
= foreground = yes | pid = | [x] | accept = ADDRESS | cert = FOLDER/both.pem | LINE
exec = /bin/true | execArgs = true
= foreground = yes | pid = | [x] | client = yes | accept = ADDRESS | connect = 127.0.0.1:9 | LINE
CAfile = FOLDER/roots.pem
checkHost = localhost | verifyChain = yes | CAfile = FOLDER/roots.pem
checkIP = 127.0.0.1 | verifyChain = yes | CAfile = FOLDER/roots.pem
CApath = /etc/ssl/certs | verifyChain = yes
cert = FOLDER/both.pem
delay = yes
failover = prio | connect = 127.0.0.1:2
logId = unique
protocol = smtp
protocol = pgsql
protocol = imap
protocol = pop3
protocol = nntp
protocol = cifs
protocol = socks
protocol = connect | protocolHost = a:1
PSKsecrets = FOLDER/psk
PSKidentity = a | PSKsecrets = FOLDER/psk
retry = yes
sni = localhost
verify = 2 | CAfile = FOLDER/roots.pem
verifyChain = yes | checkHost = localhost | CAfile = FOLDER/roots.pem
verifyChain = no
verifyPeer = yes | CAfile = FOLDER/roots.pem
";

/// Those of services that end TLS, and behind `exec` of those that begin it.
const STUNNEL_LEFT: &str = "\
checkEmail = a@b.c | verifyChain = yes | CAfile = FOLDER/roots.pem
checkHost = localhost | verifyChain = yes | CAfile = FOLDER/roots.pem
checkIP = 127.0.0.1 | verifyChain = yes | CAfile = FOLDER/roots.pem
CRLpath = FOLDER/more | verifyChain = yes | CAfile = FOLDER/roots.pem
ident = nobody
libwrap = yes
OCSP = http://127.0.0.1/ | verifyChain = yes | CAfile = FOLDER/roots.pem
OCSPaia = yes | verifyChain = yes | CAfile = FOLDER/roots.pem
protocol = cifs
protocol = connect
PSKsecrets = FOLDER/psk
sslVersion = TLSv1
transparent = source
verify = 3 | CAfile = FOLDER/roots.pem
exec = /bin/true | execArgs = true
protocol = cifs
protocol = socks
protocol = connect | protocolHost = a:1
PSKsecrets = FOLDER/psk
PSKidentity = a | PSKsecrets = FOLDER/psk
";
