//! Each path sends the bytes it should, in full records.

use std::future::poll_fn;

use kettle_kernel::ktls::{self, RecordDirection};
use kettle_tls::stream::Filled;

use super::*;
use crate::calibrate::{CIPHER, VERSION};

const SIZES: [usize; 8] = [1, 1024, 16_103, 16_104, 16_105, 65_536, 200_000, 1_100_000];

async fn loopback() -> Loopback {
    Loopback::new().await.expect("a connection")
}

/// A connection whose sending side is in the kernel; without kernel TLS the test is skipped.
async fn kernel_loopback() -> Option<Loopback> {
    let mut connection = loopback().await;
    let moved = move_into_kernel(&mut connection).await.expect("a connection that goes on");
    if let Err(refusal) = moved {
        kettle_skip::skip_without_kernel_tls(refusal);
        return None;
    }
    Some(connection)
}

fn source() -> BodySource {
    let directory = tempfile::tempdir().expect("a directory");
    BodySource::new(directory.path()).expect("a source")
}

/// Returns the bytes of one response, and the number of their records.
async fn received(
    mut connection: Loopback,
    mut path: ResponsePath,
    source: &BodySource,
    body: Body,
) -> (Vec<u8>, usize) {
    // The far end reads while this one sends, so that there is always room.
    let far_end = loopback().await;
    let mut receiver = std::mem::replace(&mut connection.receiver, far_end.receiver);
    let send = async {
        path.respond(&mut connection, source, body).await.expect("a response");
        connection.sender.queue_close_notify();
        poll_fn(|context| connection.sender.poll_close(context)).await.expect("an end");
    };
    let receive = async {
        let mut plaintext = Vec::new();
        let mut records = 0;
        let mut fill = Filled::Data;
        while fill == Filled::Data {
            let visited = poll_fn(|context| {
                receiver.poll_visit(context, |record| {
                    plaintext.extend_from_slice(record);
                    records += 1;
                })
            });
            fill = visited.await.expect("a plaintext");
        }
        assert_eq!(fill, Filled::Closed);
        (plaintext, records)
    };
    tokio::join!(send, receive).1
}

fn expected(source: &BodySource, body: Body) -> Vec<u8> {
    [HEAD.as_slice(), source.slice(body.offset, body.bytes)].concat()
}

#[tokio::test]
async fn user_path_sends_head_and_body_in_as_few_records_as_possible() {
    let mut source = source();
    for is_hot in [true, false] {
        for bytes in SIZES {
            let body = source.next(bytes, is_hot);
            let (plaintext, records) =
                received(loopback().await, ResponsePath::User, &source, body).await;
            assert!(plaintext == expected(&source, body), "{bytes} bytes, hot: {is_hot}");
            assert_eq!(records, (HEAD.len() + bytes).div_ceil(PLAINTEXT_BYTES_MAX));
        }
    }
}

#[tokio::test]
async fn kernel_paths_send_head_and_body() {
    let mut source = source();
    for is_hot in [true, false] {
        for bytes in SIZES {
            for path in [ResponsePath::kernel_write(), ResponsePath::KernelSendfile] {
                let Some(connection) = kernel_loopback().await else { return };
                let body = source.next(bytes, is_hot);
                let (plaintext, _) = received(connection, path, &source, body).await;
                assert!(plaintext == expected(&source, body), "{bytes} bytes, hot: {is_hot}");
            }
        }
    }
}

#[tokio::test]
async fn kernel_paths_are_encrypted_in_as_few_records_as_the_kernel_makes() {
    let mut source = source();
    let body = source.next(200_000, false);
    let least_records = (HEAD.len() + body.bytes).div_ceil(PLAINTEXT_BYTES_MAX) as u64;
    for mut path in [ResponsePath::KernelSendfile, ResponsePath::kernel_write()] {
        let Some(mut connection) = kernel_loopback().await else { return };
        path.respond(&mut connection, &source, body).await.expect("a response");

        let socket = connection.sender.socket();
        let records =
            ktls::sequence(socket, RecordDirection::Tx, VERSION, CIPHER).expect("a number");
        // Before Linux 6.5, sendfile ends a record every 64 KiB.
        assert!((least_records..=least_records + 5).contains(&records), "{records} records");
    }
}
