//! Each path sends the bytes it should, in full records.

use std::io::Read;
use std::thread;

use kettle_tls::records::{RecordOpener, whole_record_bytes};

use super::*;
use crate::calibrate::connection;

const SIZES: [usize; 8] = [1, 1024, 16_103, 16_104, 16_105, 65_536, 200_000, 1_100_000];

fn source() -> BodySource {
    let directory = tempfile::tempdir().expect("a directory");
    BodySource::new(directory.path()).expect("a source")
}

/// What arrives while `send` runs.
fn received(send: impl FnOnce(&TcpStream)) -> Vec<u8> {
    let (sender, mut receiver) = connection::pair().expect("a connection");
    thread::scope(|scope| {
        let reader = scope.spawn(move || {
            let mut bytes = Vec::new();
            receiver.read_to_end(&mut bytes).expect("bytes");
            bytes
        });
        send(&sender);
        kettle_kernel::socket::shutdown_write(sender.as_fd()).expect("an end");
        reader.join().expect("a reader")
    })
}

fn expected(source: &BodySource, body: Body) -> Vec<u8> {
    [HEAD.as_slice(), source.slice(body.offset, body.bytes)].concat()
}

#[test]
fn user_path_sends_head_and_body_in_as_few_records_as_possible() {
    let mut source = source();
    for is_hot in [true, false] {
        for bytes in SIZES {
            let body = source.next(bytes, is_hot);
            let keys = sample_keys(Version::Tls13, Cipher::Aes128Gcm).expect("keys");
            let mut opener = RecordOpener::new(&keys).expect("an opener");
            let mut wire = received(|socket| {
                let mut path =
                    UserPath::new(socket, Version::Tls13, Cipher::Aes128Gcm).expect("a path");
                path.sealer = RecordSealer::new(keys).expect("a sealer");
                path.respond(&source, body).expect("a response");
            });

            let (mut plaintext, mut records) = (Vec::new(), 0);
            let mut rest = wire.as_mut_slice();
            while let Some(record_bytes) = whole_record_bytes(rest).expect("a record") {
                let (record, later) = rest.split_at_mut(record_bytes);
                let opened = opener.open(record).expect("a plaintext");
                plaintext.extend_from_slice(&record[opened.plaintext]);
                records += 1;
                rest = later;
            }
            assert!(plaintext == expected(&source, body), "{bytes} bytes, hot: {is_hot}");
            assert_eq!(records, (HEAD.len() + bytes).div_ceil(PLAINTEXT_BYTES_MAX));
        }
    }
}

/// Without keys, what the kernel paths write goes out as it is.
#[test]
fn kernel_paths_send_head_and_body() {
    let mut source = source();
    for is_hot in [true, false] {
        for bytes in SIZES {
            let body = source.next(bytes, is_hot);
            let written = received(|socket| {
                KernelWritePath::new(socket).respond(&source, body).expect("a response");
            });
            assert!(written == expected(&source, body), "write, {bytes} bytes, hot: {is_hot}");
            let sent = received(|socket| {
                KernelSendfilePath::new(socket).respond(&source, body).expect("a response");
            });
            assert!(sent == expected(&source, body), "sendfile, {bytes} bytes");
        }
    }
}
