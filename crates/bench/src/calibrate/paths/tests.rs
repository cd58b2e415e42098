//! Each path sends the bytes it should, in full records.

use std::io::Read;
use std::thread;

use kettle_tls::records::{RecordOpener, whole_record_bytes};

use super::*;

const SIZES: [usize; 8] = [1, 1024, 16_103, 16_104, 16_105, 65_536, 200_000, 1_100_000];

fn loopback() -> Loopback {
    Loopback::new().expect("a connection")
}

fn source() -> BodySource {
    let directory = tempfile::tempdir().expect("a directory");
    BodySource::new(directory.path()).expect("a source")
}

/// What arrives of one response.
fn received(mut path: impl ResponsePath, source: &BodySource, body: Body) -> Vec<u8> {
    let mut connection = loopback();
    let mut receiver = connection.receiver().expect("the far end");
    thread::scope(|scope| {
        let reader = scope.spawn(move || {
            let mut bytes = Vec::new();
            receiver.read_to_end(&mut bytes).expect("bytes");
            bytes
        });
        path.respond(&mut connection, source, body).expect("a response");
        kettle_kernel::socket::shutdown_write(connection.sender()).expect("an end");
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
            let (version, cipher) = (Version::Tls13, Cipher::Aes128Gcm);
            let mut path = UserPath::new(version, cipher).expect("a path");
            path.sealer = RecordSealer::new(keys).expect("a sealer");
            let mut wire = received(path, &source, body);

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
            let written = received(KernelWritePath::new(), &source, body);
            assert!(written == expected(&source, body), "write, {bytes} bytes, hot: {is_hot}");
            let sent = received(KernelSendfilePath, &source, body);
            assert!(sent == expected(&source, body), "sendfile, {bytes} bytes");
        }
    }
}

#[test]
fn kernel_paths_are_encrypted_in_as_few_records_as_the_kernel_makes() {
    let mut source = source();
    let (version, cipher) = (Version::Tls13, Cipher::Aes128Gcm);
    let body = source.next(200_000, false);
    let least_records = (HEAD.len() + body.bytes).div_ceil(PLAINTEXT_BYTES_MAX) as u64;
    for by_sendfile in [false, true] {
        let mut connection = loopback();
        let moved = move_into_kernel(connection.sender(), version, cipher).expect("keys");
        if let Err(refusal) = moved {
            eprintln!("skipped: {refusal}");
            return;
        }
        let mut path: Box<dyn ResponsePath> = if by_sendfile {
            Box::new(KernelSendfilePath)
        } else {
            Box::new(KernelWritePath::new())
        };
        path.respond(&mut connection, &source, body).expect("a response");

        let records = kernel_records(connection.sender(), version, cipher).expect("a number");
        // Before Linux 6.5, sendfile ends a record every 64 KiB.
        assert!((least_records..=least_records + 5).contains(&records), "{records} records");
    }
}
