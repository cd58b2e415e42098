//! TLS with the programs that people use for the same, in both roles: theirs ends what ours begins, and the other way round.

use kettle_tests::environment::go_program_or_skip;
use kettle_tests::tool::wait_until_listening;

use super::peers::{HAPROXY, Peer};
use super::*;

fn stream(server: &str) -> String {
    format!(
        "load_module /usr/lib/nginx/modules/ngx_stream_module.so;\ndaemon off; master_process off; \
         error_log stderr; pid FOLDER/pid;\nevents {{}}\nstream {{\n  server {{\n{server}\n  }}\n}}\n"
    )
}

/// A certificate and its key as these programs want them, and who issued it.
fn files(kettle: &Kettle) -> [(&'static str, String); 2] {
    let pem = |name: &str| fs::read_to_string(kettle.folder.path(name)).unwrap();
    [
        ("own.pem", pem("localhost.pem") + &pem("localhost.key")),
        ("authority.pem", pem("authority.pem")),
    ]
}

/// A plain connection through all of them, to an echo and back.
fn assert_carries(address: SocketAddr, what: &str) {
    let body = content(1_000_000);
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(patience())).unwrap();
    let writing = std::thread::spawn({
        let mut socket = socket.try_clone().unwrap();
        let body = body.clone();
        move || socket.write_all(&body).unwrap()
    });
    let mut received = vec![0; body.len()];
    socket.read_exact(&mut received).unwrap_or_else(|error| panic!("{what}: {error}"));
    writing.join().unwrap();
    assert_same(&received, &body, what);
    socket.shutdown(Shutdown::Write).unwrap();
}

/// One after another: whoever is not installed is noted down. Each has some words of its own for the server behind.
fn ending_tls(
    plain: SocketAddr,
    [to_haproxy, to_nginx, to_hitch]: [&str; 3],
) -> impl Iterator<Item = (&'static str, Peer)> {
    let source = Kettle::start(Setup::default());
    let files = files(&source);
    let haproxy = format!(
        "{HAPROXY}frontend f\n  bind ADDRESS ssl crt FOLDER/own.pem\n  default_backend b\n\
         backend b\n  server s {plain} {to_haproxy}\n"
    );
    let nginx = stream(&format!(
        "listen ADDRESS ssl;\nssl_protocols TLSv1.2 TLSv1.3;\nssl_certificate FOLDER/own.pem;\nssl_certificate_key FOLDER/own.pem;\n\
         {to_nginx}\nproxy_pass {plain};"
    ));
    let hitch = format!(
        "frontend = \"[HOST]:PORT\"\nbackend = \"[{}]:{}\"\npem-file = \"FOLDER/own.pem\"\nworkers = 1\n\
         {to_hitch}\nuser = \"nobody\"\n",
        plain.ip(),
        plain.port()
    );
    let all: [(&str, &[&str], String); 3] = [
        ("haproxy", &["-db", "-f"], haproxy),
        ("nginx", &["-c"], nginx),
        ("hitch", &["--config"], hitch),
    ];
    all.into_iter().filter_map(move |(program, words, config)| {
        Some((program, Peer::start(program, words, &config, &files)?))
    })
}

#[test]
fn we_begin_tls_with_whoever_ends_it() {
    for (program, peer) in ending_tls(Backend::echoing(), ["", "", "alpn-protos = \"http/1.1\""]) {
        let kettle = originating("", peer.address);
        assert_carries(kettle.address(), program);
        let entry = kettle.tunnel();
        assert_eq!(entry.text("server_tls_version"), "TLSv1.3", "{program}");
        // nginx takes leave without a close_notify.
        let expected = if program == "nginx" { "backend_cut" } else { "client_closed" };
        assert_eq!(entry.text("end"), expected, "{program}");
    }
}

/// They end TLS before us, and tell us of the client.
#[test]
fn we_stand_behind_whoever_ends_tls() {
    let settings = "accept_proxy = [\"127.0.0.0/8\"]";
    let behind = Kettle::start(before("tcp", settings, &[Backend::echoing()]));
    let telling = ["send-proxy-v2-ssl-cn", "proxy_protocol on;", "write-proxy-v2 = on"];
    for (program, peer) in ending_tls(behind.address(), telling) {
        let mut client = kettle_tests::client::Dialer::default().connect(peer.address);
        let own = client.wire.socket.local_addr().unwrap().to_string();
        echoed(&mut client, b"ping");
        drop(client);
        // Others only asked whether it listens.
        let entry = std::iter::repeat_with(|| behind.tunnel());
        let entry = entry.into_iter().find(|entry| entry.number("bytes_received") == 4).unwrap();
        assert_eq!(entry.remote(), own, "{program}");
    }
}

#[test]
fn we_end_tls_of_whoever_begins_it() {
    let kettle = terminator("", &[Backend::echoing()]);
    let at = kettle.address();
    let files = files(&kettle);
    let haproxy = format!(
        "{HAPROXY}frontend f\n  bind ADDRESS\n  default_backend b\nbackend b\n  \
         server k {at} ssl verify required ca-file FOLDER/authority.pem verifyhost localhost sni str(localhost)\n"
    );
    let nginx = stream(&format!(
        "listen ADDRESS;\nproxy_pass {at};\nproxy_ssl on;\nproxy_ssl_verify on;\n\
         proxy_ssl_trusted_certificate FOLDER/authority.pem;\nproxy_ssl_name localhost;\nproxy_ssl_server_name on;"
    ));
    for (program, words, config) in
        [("haproxy", &["-db", "-f"][..], haproxy), ("nginx", &["-c"], nginx)]
    {
        let Some(peer) = Peer::start(program, words, &config, &files) else { continue };
        assert_carries(peer.address, program);
        let entry = std::iter::repeat_with(|| kettle.tunnel());
        let entry =
            entry.into_iter().find(|entry| entry.number("bytes_sent") == 1_000_000).unwrap();
        assert_eq!(entry.text("server_name"), "localhost", "{program}");
    }
}

/// Go's TLS, each of whose bytes is a segment of its own, the hello's too.
#[test]
fn the_client_of_go_may_write_a_byte_at_a_time() {
    let Some(program) = go_program_or_skip("bytewise") else { return };
    let ending = terminator("", &[Backend::echoing()]);
    let passing = Kettle::start(before("passthrough", "", &[ending.address()]));
    for address in [ending.address(), passing.address()] {
        let said = Tool::new(&program).args([address.to_string(), "1000".to_owned()]).succeed();
        assert_eq!(said, "TLS 1.2: 1000 bytes came back\nTLS 1.3: 1000 bytes came back\n");
    }
}

/// A stunnel.conf with a service of each kind, imported and run: what one seals the other opens.
#[test]
fn the_services_of_a_stunnel_conf_are_carried() {
    let source = Kettle::start(Setup::default());
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in files(&source) {
        fs::write(folder.path().join(name), content).unwrap();
    }
    let [client, server] = [(); 2].map(|()| unused_address());
    let path = |name: &str| folder.path().join(name).display().to_string();
    let text = format!(
        "; two services\nsetuid = nobody\npid = /run/stunnel.pid\n\n\
         [ending]\naccept = {server}\nconnect = {}\ncert = {}\n\n\
         [beginning]\nclient = yes\naccept = {client}\nconnect = {server}\nCAfile = {}\n\
         verifyChain = yes\ncheckHost = localhost\nsni = localhost\n",
        Backend::echoing(),
        path("own.pem"),
        path("authority.pem")
    );
    let conf = path("stunnel.conf");
    fs::write(&conf, text.replace("setuid = nobody\n", "")).unwrap();
    let toml = Tool::kettle(["import", "stunnel", &conf]).succeed();
    let config = path("kettle.toml");
    fs::write(&config, &toml).unwrap();
    let running = Tool::kettle(["run", "--config", &config]).start();
    for address in [server, client] {
        wait_until_listening(address);
    }
    assert_carries(client, "imported");
    drop(running);
    // stunnel itself answers in the same way to the same file.
    let stunnel = Path::new("/usr/bin/stunnel");
    if stunnel.exists() {
        let foreground = text.replace("setuid = nobody\n", "foreground = yes\n");
        let foreground = foreground.replace("pid = /run/stunnel.pid", "pid =");
        fs::write(&conf, foreground).unwrap();
        let _running = Tool::new(stunnel).args([&conf]).start();
        wait_until_listening(client);
        assert_carries(client, "stunnel");
    }
}
