//! Beside the programs that people use for the same: before them, behind them, with their PROXY headers.

use std::os::unix::fs::PermissionsExt;

use kettle_tests::tool::{Running, wait_until_listening};
use tempfile::TempDir;

use super::*;

/// One of them, with a folder of its own.
pub(crate) struct Peer {
    _process: Running,
    _folder: TempDir,
    pub(crate) address: SocketAddr,
}

impl Peer {
    /// Starts a program with a configuration file, if it is there. `words` come before the file's name; in the
    /// configuration `ADDRESS` is where it is to listen, `HOST` and `PORT` the parts of it.
    pub(crate) fn start(
        program: &str,
        words: &[&str],
        config: &str,
        files: &[(&str, String)],
    ) -> Option<Self> {
        let Some(path) = ["/usr/sbin", "/usr/bin"]
            .map(|folder| Path::new(folder).join(program))
            .into_iter()
            .find(|path| path.exists())
        else {
            skip(&format!("{program} is not installed"));
            return None;
        };
        let folder = TempDir::new().unwrap();
        // Some serve as a user of their own, and run what is there.
        let open_to_all = || fs::Permissions::from_mode(0o755);
        fs::set_permissions(folder.path(), open_to_all()).unwrap();
        for (name, content) in files {
            let file = folder.path().join(name);
            fs::write(&file, content).unwrap();
            fs::set_permissions(&file, open_to_all()).unwrap();
        }
        let address = unused_address();
        let file = folder.path().join("config");
        let config = config
            .replace("ADDRESS", &address.to_string())
            .replace("HOST", &address.ip().to_string())
            .replace("PORT", &address.port().to_string())
            .replace("FOLDER", folder.path().to_str().unwrap());
        fs::write(&file, config).unwrap();
        let process = Tool::new(path).args(words).args([&file]).start();
        wait_until_listening(address);
        Some(Self { _process: process, _folder: folder, address })
    }

    /// nginx with these servers, all of whose own files are in `FOLDER`.
    pub(crate) fn nginx(servers: &str, files: &[(&str, String)]) -> Option<Self> {
        let config = format!("{NGINX_BEFORE_SERVERS}{servers}}}\n");
        Self::start("nginx", &["-c"], &config, files)
    }

    /// Debian's Apache with these settings, all of whose own files are in `FOLDER`. Where it is not root, it serves as itself.
    pub(crate) fn apache(
        modules: &[&str],
        settings: &str,
        files: &[(&str, String)],
    ) -> Option<Self> {
        let load = |name: &&str| {
            format!("LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so\n")
        };
        let modules: String = ["mpm_event", "authz_core"].iter().chain(modules).map(load).collect();
        let config = format!("{modules}{APACHE_BEFORE_SETTINGS}{settings}");
        Self::start("apache2", &["-X", "-f"], &config, files)
    }
}

/// The beginning of a configuration of HAProxy that carries streams.
pub(super) const HAPROXY: &str = "\
defaults
  mode tcp
  timeout client 20s
  timeout server 20s
  timeout connect 5s
";

const APACHE_BEFORE_SETTINGS: &str = "\
ServerRoot FOLDER
DefaultRuntimeDir FOLDER
PidFile FOLDER/pid
ErrorLog /dev/stderr
ServerName localhost
Listen ADDRESS
User www-data
Group www-data
<Directory FOLDER>
  Options +ExecCGI +Includes
  Require all granted
</Directory>
";

const NGINX_BEFORE_SERVERS: &str = "\
daemon off; master_process off; error_log stderr; pid FOLDER/pid;
events {}
http {
  access_log off;
  client_body_temp_path FOLDER/a; proxy_temp_path FOLDER/b; fastcgi_temp_path FOLDER/c;
  uwsgi_temp_path FOLDER/d; scgi_temp_path FOLDER/e;
";

fn with_proxy_header(version: &str, to: SocketAddr) -> Kettle {
    let app = backend("app", &format!("send_proxy = \"{version}\""), &[to]);
    Kettle::start(before_app("tls", "", &app))
}

/// The answer of a server to a request through kettle, and the address that it was asked from.
fn answer(kettle: &Kettle) -> (String, SocketAddr) {
    let mut client = Dialer::default().connect(kettle.address());
    let own = client.wire.socket.local_addr().unwrap();
    let response = client.get("/");
    (String::from_utf8(response.body).unwrap().trim().to_owned(), own)
}

#[test]
fn haproxy_reads_our_header() {
    let config = "\
defaults
  mode http
  timeout client 20s
  timeout server 20s
  timeout connect 5s
frontend f
  bind ADDRESS accept-proxy
  http-request return status 200 content-type text/plain lf-string \"%[src]:%[src_port] %[fc_pp_authority]\"
";
    let Some(haproxy) = Peer::start("haproxy", &["-db", "-f"], config, &[]) else { return };
    for (version, name) in [("v1", ""), ("v2", "localhost")] {
        let kettle = with_proxy_header(version, haproxy.address);
        let (said, own) = answer(&kettle);
        assert_eq!(said, format!("{own} {name}").trim(), "{version}");
    }
}

#[test]
fn nginx_reads_our_header() {
    let server = "
  server {
    listen ADDRESS proxy_protocol;
    location / { return 200 \"$proxy_protocol_addr:$proxy_protocol_port\"; }
  }
";
    let Some(nginx) = Peer::nginx(server, &[]) else { return };
    for version in ["v1", "v2"] {
        let kettle = with_proxy_header(version, nginx.address);
        let (said, own) = answer(&kettle);
        assert_eq!(said, own.to_string(), "{version}");
    }
}

#[test]
fn we_read_the_header_of_haproxy() {
    let settings = "accept_proxy = [\"127.0.0.0/8\"]";
    let kettle = terminator(settings, &[Backend::echoing()]);
    for version in ["send-proxy", "send-proxy-v2"] {
        let config = format!(
            "{HAPROXY}frontend f\n  bind ADDRESS\n  default_backend b\n\
             backend b\n  server k {} {version}\n",
            kettle.address()
        );
        let Some(haproxy) = Peer::start("haproxy", &["-db", "-f"], &config, &[]) else { return };
        let mut client = Dialer::default().connect(haproxy.address);
        let own = client.wire.socket.local_addr().unwrap();
        client.send(b"ping").unwrap();
        assert_eq!(client.receive(&mut [0; 4]).unwrap(), 4);
        drop(client);
        // The first connections only asked whether haproxy listens.
        loop {
            let entry = kettle.tunnel();
            if entry.number("bytes_received") == 4 {
                assert_eq!(entry.remote(), own.to_string(), "{version}");
                break;
            }
        }
    }
}

#[test]
fn we_speak_tls_to_stunnel_and_stunnel_to_us() {
    let inner = Kettle::start(Setup::default().file("www/a", "inside"));
    let plain = Backend::echoing();
    let pem = |name: &str| fs::read_to_string(inner.folder.path(name)).unwrap();
    let files = [
        ("own.pem", pem("localhost.pem") + &pem("localhost.key")),
        ("authority.pem", pem("authority.pem")),
    ];
    let common = "foreground = yes\npid =\nsyslog = no\n[s]\naccept = ADDRESS\n";
    // Stunnel ends TLS; we begin it.
    let config = format!("{common}connect = {plain}\ncert = FOLDER/own.pem\n");
    let Some(stunnel) = Peer::start("stunnel", &[], &config, &files) else { return };
    let outer = originating("", stunnel.address);
    let mut socket = outer.connect_plain();
    std::io::Write::write_all(&mut socket, b"ping").unwrap();
    assert_eq!(kettle_tests::backend::read_exactly(&mut socket, 4), b"ping");

    // Stunnel begins TLS; we end it.
    let ours = Kettle::start(before("tls", "", &[plain]));
    let config = format!(
        "{common}client = yes\nconnect = {}\nCAfile = FOLDER/authority.pem\nverifyChain = yes\n\
         checkHost = localhost\nsni = localhost\n",
        ours.address()
    );
    let Some(stunnel) = Peer::start("stunnel", &[], &config, &files) else { return };
    let mut socket = TcpStream::connect(stunnel.address).unwrap();
    std::io::Write::write_all(&mut socket, b"pong").unwrap();
    assert_eq!(kettle_tests::backend::read_exactly(&mut socket, 4), b"pong");
}

#[test]
fn gnutls_speaks_through_us() {
    let kettle = terminator("", &[Backend::echoing()]);
    let port = kettle.address().port().to_string();
    let host = kettle.address().ip().to_string();
    for priority in ["NORMAL:-VERS-ALL:+VERS-TLS1.2", "NORMAL:-VERS-ALL:+VERS-TLS1.3"] {
        if !Path::new("/usr/bin/gnutls-cli").exists() {
            return skip("gnutls-cli is not installed");
        }
        let words = [
            "--insecure",
            "--priority",
            priority,
            "--sni-hostname",
            "localhost",
            "-p",
            &port,
            &host,
        ];
        let mut client = Tool::new("gnutls-cli").args(words).start();
        client.stdout.wait_for("Handshake was completed");
        client.type_in("ping\n");
        client.stdout.wait_until("the echo", |bytes| bytes.ends_with(b"ping\n").then_some(()));
        assert!(client.finish().status.success(), "{priority}");
    }
}
