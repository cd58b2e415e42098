use std::os::unix::net::{UnixDatagram, UnixListener};

use super::*;

#[test]
fn variables_count_for_the_process_that_they_name() {
    let told = |of: &str, many: &str| count(Some(of.to_owned()), Some(many.to_owned()), 7);
    assert_eq!(told("7", "2"), 2);
    for (of, many) in [("8", "2"), ("", "2"), ("seven", "2"), ("7", "-1"), ("7", "many"), ("7", "")]
    {
        assert_eq!(told(of, many), 0, "{of} {many}");
    }
    assert_eq!(told("7", "2000000000"), COUNT_MAX);
    assert_eq!(count(None, Some("2".to_owned()), 7), 0);
    assert_eq!(count(Some("7".to_owned()), None, 7), 0);
}

#[test]
fn only_stream_sockets_that_listen_are_taken() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.sock");
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = tcp.local_addr().unwrap();
    assert_eq!(looked_at(tcp.into()).unwrap().address, BoundTo::Ip(address));
    let unix = UnixListener::bind(&path).unwrap();
    assert_eq!(looked_at(unix.into()).unwrap().address, BoundTo::Unix(path));

    let file = std::fs::File::open("/dev/null").unwrap();
    let datagrams = UnixDatagram::unbound().unwrap();
    let connected = std::os::unix::net::UnixStream::pair().unwrap().0;
    for wrong in [OwnedFd::from(file), datagrams.into(), connected.into()] {
        let error = looked_at(wrong).unwrap_err();
        assert!(error.to_string().ends_with(NO_LISTENER), "{error}");
    }
}
