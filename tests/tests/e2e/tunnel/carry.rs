//! Bytes that are sent arrive, both ways, by every path.

use kettle_tests::kernel_counts::KernelCounts;

use super::*;

#[test]
fn every_suite_is_carried_and_logged() {
    let kettle = terminator("", &[Backend::echoing()]);
    for suite in SUITES {
        let mut client = kettle.connect(suite);
        echoed(&mut client, b"ping");
        client.close_sending();
        assert_eq!(client.end(), End::Orderly, "{}", suite.name);
        let entry = kettle.tunnel();
        assert_eq!((entry.number("bytes_received"), entry.number("bytes_sent")), (4, 4));
        assert_eq!(entry.text("end"), "client_closed");
        assert_eq!(entry.text("backend"), "app");
        assert_eq!(entry.text("server_name"), "localhost");
        assert!(entry.text("tls_version").starts_with("TLSv1."));
    }
}

#[test]
fn both_directions_go_on_at_once_whoever_reads_late() {
    let backend = Backend::listen();
    let setup = before("tls", "", &[backend.address()]).set("server", "dumpable = true");
    let kettle = Kettle::start(setup);
    let body = content(scaled(32, 4) * 1_024 * 1_024);
    for suite in ONE_OF_EACH_VERSION {
        let mut client = kettle.connect(suite);
        let mut server = backend.accept();
        let memory_bytes = kettle.memory_bytes();
        // Neither reads before all of its own has been taken: TCP and TLS hold far less.
        let sent = body.clone();
        let serving = thread::spawn(move || {
            let mut writing = server.try_clone().unwrap();
            let expected = sent.len();
            let writer = thread::spawn(move || writing.write_all(&sent).unwrap());
            let received = read_exactly(&mut server, expected);
            writer.join().unwrap();
            server.shutdown(Shutdown::Write).unwrap();
            received
        });
        client.send(&body).unwrap();
        // All that is held for a client that reads nothing is held now.
        let more_bytes = kettle.memory_bytes().saturating_sub(memory_bytes);
        assert!(more_bytes < 1_024 * 1_024, "{} holds {more_bytes} bytes more", suite.name);
        client.close_sending();
        assert_eq!(client.end(), End::Orderly);
        assert_same(client.beyond(), &body, "to the client");
        assert_same(&serving.join().unwrap(), &body, "to the backend");
        let entry = kettle.tunnel();
        assert_eq!(entry.number("bytes_sent"), body.len() as u64);
        assert_eq!(entry.number("bytes_received"), body.len() as u64);
    }
}

#[test]
fn plain_connections_are_carried_as_they_are() {
    let backend = Backend::listen();
    let kettle = Kettle::start(before("tcp", "", &[backend.address()]));
    let body = content(3 * 1_024 * 1_024);
    let mut client = kettle.connect_plain();
    let mut server = backend.accept();
    let writing = thread::spawn({
        let mut client = client.try_clone().unwrap();
        let body = body.clone();
        move || {
            client.write_all(&body).unwrap();
            client.shutdown(Shutdown::Write).unwrap();
        }
    });
    let (received, outcome) = read_to_end(&mut server);
    writing.join().unwrap();
    outcome.unwrap();
    assert_same(&received, &body, "to the backend");
    server.write_all(b"thanks").unwrap();
    drop(server);
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).unwrap();
    assert_eq!(answer, b"thanks");
    assert_eq!(kettle.tunnel().text("end"), "client_closed");
}

#[test]
fn a_unix_socket_is_a_backend_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.sock");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let serving = thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let asked = read_exactly(&mut socket, 5);
        socket.write_all(&asked).unwrap();
    });
    let server = format!(
        "\n[[backend]]\nname = \"app\"\n[[backend.server]]\naddress = \"unix:{}\"\n",
        path.display()
    );
    let setup = kettle_tests::setup::Setup::default();
    let kettle = Kettle::start(setup.listener("kind = \"tls\"\nbackend = \"app\"").more(&server));
    let mut client = kettle.ask(b"hello");
    assert_eq!(client.end(), End::Orderly);
    assert_eq!(client.beyond(), b"hello");
    serving.join().unwrap();
}

#[test]
fn what_comes_with_the_last_flight_of_the_handshake_is_carried() {
    let kettle = terminator("", &[Backend::echoing()]);
    for suite in ONE_OF_EACH_VERSION {
        let mut client = Dialer::suite(suite).begin(kettle.address());
        client.tls.write_tls(&mut client.wire).unwrap();
        client.finish_handshake_with(b"at once");
        assert_eq!(client.receive_exactly(7), b"at once");
    }
}

#[test]
fn the_command_line_alone_ends_tls() {
    let folder = tempfile::tempdir().unwrap();
    let backend = Backend::listen();
    let port = unused_address();
    let words = [
        "terminate",
        "--to",
        &backend.address().to_string(),
        "--listen",
        &port.to_string(),
        "--path",
        "user",
    ];
    let kettle = Tool::kettle(words)
        .environment("XDG_STATE_HOME", folder.path())
        .environment("HOME", folder.path())
        .start();
    kettle.stdout.wait_for("TLS: ");
    let serving = thread::spawn(move || {
        let mut socket = backend.accept();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.extend(read_exactly(&mut socket, 1));
        }
        socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").unwrap();
    });
    let [file, url] = kettle.advice();
    assert_eq!(url, format!("https://{port}/"));
    let trusting = ["-sS", "--cacert", &file, "--max-time", "20", &url];
    assert_eq!(Tool::new("curl").args(trusting).succeed(), "hi");
    serving.join().unwrap();
}

#[test]
fn the_kernel_moves_and_encrypts_what_goes_to_the_client() {
    if !kernel_tls_or_skip() {
        return;
    }
    for (path, first) in [("kernel-splice", 0), ("auto", 256 * 1_024)] {
        let backend = Backend::listen();
        let settings = format!("path = \"{path}\"");
        let kettle = Kettle::start(before("tls", &settings, &[backend.address()]).alone());
        let body = content(2 * 1_024 * 1_024);
        for suite in SUITES {
            let counts = KernelCounts::now();
            let mut client = kettle.connect(suite);
            let mut server = backend.accept();
            let sent = body.clone();
            let serving = thread::spawn(move || {
                server.write_all(&sent[..first]).unwrap();
                server.write_all(&sent[first..]).unwrap();
            });
            assert_eq!(client.end(), End::Orderly, "{}", suite.name);
            serving.join().unwrap();
            assert_same(client.beyond(), &body, "by splice");
            drop(client);
            let entry = kettle.tunnel();
            assert_eq!(entry.text("path_sent"), "kernel-splice", "{} {path}", suite.name);
            assert_eq!(counts.growth("TlsTxSw"), 1, "{} {path}", suite.name);
        }
    }
}
