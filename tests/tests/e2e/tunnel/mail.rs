//! A mail server and a mail client that others wrote, on both sides of STARTTLS.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::time::Instant;

use kettle_tests::tool::{Running, wait_until_listening};
use rustix::process::geteuid;
use tempfile::TempDir;

use super::*;

/// Python's aiosmtpd, which prints the mails it gets.
struct MailServer {
    process: Running,
    _folder: TempDir,
    address: SocketAddr,
}

impl MailServer {
    /// Starts it; with TLS it takes mails behind STARTTLS only.
    fn start(has_tls: bool) -> Option<Self> {
        if !Path::new("/usr/lib/python3/dist-packages/aiosmtpd").exists() {
            skip("aiosmtpd is not installed");
            return None;
        }
        let folder = TempDir::new().unwrap();
        let address = unused_address();
        let listen = address.to_string();
        let mut words = vec!["-u", "-m", "aiosmtpd", "-n", "-l", &listen];
        let issued = issue(&["localhost"], Kind::Ecdsa);
        let [chain, key] = ["chain", "key"].map(|name| folder.path().join(name));
        fs::write(&chain, issued.chain).unwrap();
        fs::write(&key, issued.key).unwrap();
        if has_tls {
            words.extend(["--tlscert", chain.to_str().unwrap()]);
            words.extend(["--tlskey", key.to_str().unwrap()]);
        }
        let process = Tool::new("/usr/bin/python3").args(words).start();
        let deadline = Instant::now() + patience();
        while TcpStream::connect(address).is_err() {
            assert!(Instant::now() < deadline, "no mail server: {}", process.stderr.text());
            std::thread::yield_now();
        }
        Some(Self { process, _folder: folder, address })
    }

    /// Waits for a mail with these words.
    fn wait_for(&self, words: &str) {
        self.process.stdout.wait_for(words);
    }
}

/// Sends a mail by curl.
fn send(kettle: &Kettle, options: &[&str], text: &str) {
    let address = kettle.address();
    let _ = Tool::new("curl")
        .args(["--silent", "--show-error", "--cacert"])
        .args([kettle.folder.path("authority.pem")])
        .args(["--resolve", &format!("localhost:{}:{}", address.port(), address.ip())])
        .args(["--mail-from", "a@kettle.example", "--mail-rcpt", "b@kettle.example"])
        .args(options)
        .args(["--upload-file", "-", &format!("smtp://localhost:{}/me", address.port())])
        .input(format!("Subject: {text}\r\n\r\n{text}\r\n"))
        .succeed();
}

#[test]
fn a_mail_client_begins_tls_with_us() {
    let Some(server) = MailServer::start(false) else { return };
    let kettle = Kettle::start(before("tls", "starttls = \"smtp\"", &[server.address]));
    for version in ["1.2", "1.3"] {
        let options = ["--ssl-reqd", "--tls-max", version];
        send(&kettle, &options, &format!("terminated {version}"));
        server.wait_for(&format!("Subject: terminated {version}"));
        assert_eq!(kettle.tunnel().text("tls_version"), format!("TLSv{version}"));
    }
}

#[test]
fn we_begin_tls_with_a_mail_server() {
    let Some(server) = MailServer::start(true) else { return };
    let kettle = originating("starttls = \"smtp\"", server.address);
    send(&kettle, &[], "originated");
    server.wait_for("Subject: originated");
    assert_eq!(kettle.tunnel().text("server_tls_version"), "TLSv1.3");
}

/// The client of Postfix, as its smtp(8) connects to others: it believes nothing that was said before TLS.
#[test]
fn postfix_begins_tls_with_us() {
    let finger = Path::new("/usr/sbin/posttls-finger");
    if !finger.exists() {
        return skip("postfix is not installed");
    }
    let Some(server) = MailServer::start(false) else { return };
    let kettle = Kettle::start(before("tls", "starttls = \"smtp\"", &[server.address]));
    let authority = kettle.folder.path("authority.pem");
    // Without Postfix's own, which a machine may not have configured.
    let own = "compatibility_level = 3.6\nmail_owner = daemon\nsetgid_group = mail\n";
    kettle.folder.write("main.cf", own);
    let to = format!("[{}]:{}", kettle.address().ip(), kettle.address().port());
    for protocol in ["TLSv1.2", "TLSv1.3"] {
        let words = ["-c", "-l", "secure", "-L", "summary", "-p", protocol, "-F"];
        let words = Tool::new(finger).args(words).args([&authority]);
        let words = words.environment("MAIL_CONFIG", kettle.folder.path(""));
        let said = words.args([to.as_str(), "localhost"]).output();
        let text = said.text() + &said.stderr;
        let verified = "Verified TLS connection established";
        assert!(text.contains(verified) && text.contains(protocol), "{text}");
        let entry = kettle.tunnel();
        assert_eq!(entry.text("tls_version"), protocol);
    }
}

/// Postfix's own server, told to take nothing outside TLS.
#[test]
fn we_begin_tls_with_postfix() {
    let master = Path::new("/usr/lib/postfix/sbin/master");
    if !master.exists() || !geteuid().is_root() {
        return skip("postfix is not installed, or this is not root, who starts it");
    }
    let folder = TempDir::new().unwrap();
    let place = folder.path().to_str().unwrap();
    let address = unused_address();
    let issued = issue(&["localhost"], Kind::Ecdsa);
    let files = [
        ("chain", issued.chain),
        ("key", issued.key),
        ("main.cf", MAIN_CF.replace("FOLDER", place)),
        ("master.cf", MASTER_CF.replace("ADDRESS", &address.to_string())),
    ];
    for (name, content) in files {
        fs::write(folder.path().join(name), content).unwrap();
    }
    // It goes on as another user, who owns what it shares.
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    for name in ["data", "queue", "queue/pid", "queue/private", "queue/public"] {
        fs::create_dir(folder.path().join(name)).unwrap();
    }
    for name in ["data", "queue/private", "queue/public"] {
        Tool::new("chown").args(["daemon", &format!("{place}/{name}")]).run();
    }
    let _postfix = Tool::new(master).args(["-c", place, "-d"]).start();
    wait_until_listening(address);
    let kettle = originating("starttls = \"smtp\"", address);
    let mut client = kettle.connect_plain();
    let mut lines = BufReader::new(client.try_clone().unwrap()).lines();
    for (said, last) in
        [("", "220 "), ("EHLO me\r\n", "250 "), ("NOOP\r\n", "250 "), ("QUIT\r\n", "221 ")]
    {
        client.write_all(said.as_bytes()).unwrap();
        assert!(lines.any(|line| line.unwrap().starts_with(last)), "no {last} to {said:?}");
    }
    drop((client, lines));
    assert_eq!(kettle.tunnel().text("server_tls_version"), "TLSv1.3");
}

const MAIN_CF: &str = "\
compatibility_level = 3.6
mail_owner = daemon
setgid_group = mail
queue_directory = FOLDER/queue
data_directory = FOLDER/data
maillog_file = /dev/stdout
myhostname = localhost
local_recipient_maps =
alias_maps =
smtpd_peername_lookup = no
smtpd_tls_cert_file = FOLDER/chain
smtpd_tls_key_file = FOLDER/key
smtpd_tls_security_level = encrypt
";

const MASTER_CF: &str = "\
ADDRESS inet n - n - - smtpd
tlsmgr unix - - n 1000? 1 tlsmgr
anvil unix - - n - 1 anvil
rewrite unix - - n - - trivial-rewrite
postlog unix-dgram n - n - 1 postlogd
";
