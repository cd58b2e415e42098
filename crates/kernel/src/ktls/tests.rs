//! The part that needs no kernel TLS is tested everywhere; the rest says that it was skipped, or
//! fails with `KETTLE_REQUIRE_KTLS=1`.

use std::io::{self, IoSlice, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;

use kettle_skip::{kernel_is_at_least, skip, skip_without_kernel_tls};
use socket2::{Domain, Protocol, Socket, Type};

use super::*;
use crate::probe::loopback;
use crate::{record, transfer};

const IV: [u8; 12] = [0x01, 0x02, 0x03, 0x04, 0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17];

fn keys(version: Version, cipher: Cipher, sequence: u64) -> TrafficKeys {
    let key = [0xc3; 32];
    TrafficKeys::new(version, cipher, &key[..cipher.key_bytes()], IV, sequence).unwrap()
}

fn suites() -> impl Iterator<Item = (Version, Cipher)> {
    Version::ALL.into_iter().flat_map(|version| Cipher::ALL.map(|cipher| (version, cipher)))
}

/// A connected pair of which the first end sends and the second receives with keys in the kernel, or `None` where the
/// kernel has no kTLS and nobody demands it.
fn keyed_pair(version: Version, cipher: Cipher) -> Option<(TcpStream, TcpStream)> {
    let (sender, receiver) = attached_pair()?;
    install(sender.as_fd(), RecordDirection::Tx, &keys(version, cipher, 3)).unwrap();
    install(receiver.as_fd(), RecordDirection::Rx, &keys(version, cipher, 3)).unwrap();
    Some((sender, receiver))
}

fn attached_pair() -> Option<(TcpStream, TcpStream)> {
    let (sender, receiver) = loopback::pair().unwrap();
    match attach(sender.as_fd()).and_then(|()| attach(receiver.as_fd())) {
        Ok(()) => Some((sender, receiver)),
        Err(refusal) => {
            skip_without_kernel_tls(refusal);
            None
        }
    }
}

fn bytes_of(version: Version, cipher: Cipher, direction: RecordDirection) -> Vec<u8> {
    keys(version, cipher, 0x0102_0304_0506_0708).crypto_info(direction).bytes().to_vec()
}

#[test]
fn tls13_gcm_is_laid_out_as_header_iv_key_salt_sequence() {
    let info = bytes_of(Version::Tls13, Cipher::Aes128Gcm, RecordDirection::Tx);
    assert_eq!(info.len(), 40);
    assert_eq!(info[..4], [0x0304_u16.to_ne_bytes(), 51_u16.to_ne_bytes()].concat());
    assert_eq!(info[4..12], IV[4..]);
    assert_eq!(info[12..28], [0xc3; 16]);
    assert_eq!(info[28..32], IV[..4]);
    assert_eq!(info[32..], [1, 2, 3, 4, 5, 6, 7, 8]);
}

#[test]
fn chacha_keeps_its_iv_whole_in_both_versions() {
    for version in Version::ALL {
        let info = bytes_of(version, Cipher::Chacha20Poly1305, RecordDirection::Tx);
        assert_eq!(info.len(), 56);
        assert_eq!(info[4..16], IV);
        assert_eq!(info[16..48], [0xc3; 32]);
        assert_eq!(info[48..], [1, 2, 3, 4, 5, 6, 7, 8]);
    }
}

#[test]
fn tls12_gcm_sends_from_the_other_half_of_the_nonces() {
    for cipher in [Cipher::Aes128Gcm, Cipher::Aes256Gcm] {
        let sent = bytes_of(Version::Tls12, cipher, RecordDirection::Tx);
        assert_eq!(sent[4], IV[4] ^ 0x80);
        assert_eq!(sent[5..12], IV[5..]);
        let received = bytes_of(Version::Tls12, cipher, RecordDirection::Rx);
        assert_eq!(received[4..12], IV[4..]);
    }
}

#[test]
fn a_key_of_the_wrong_length_is_refused() {
    let error = TrafficKeys::new(Version::Tls13, Cipher::Aes128Gcm, &[0; 32], IV, 0).unwrap_err();
    assert_eq!(error, KeyLengthError { cipher: Cipher::Aes128Gcm, bytes: 32 });
    assert_eq!(error.to_string(), "AES-128-GCM takes a key of 16 bytes, not 32");
}

#[test]
fn debug_shows_no_key_and_no_iv() {
    let shown = format!("{:?}", keys(Version::Tls13, Cipher::Aes256Gcm, 9));
    assert_eq!(shown, "TrafficKeys { version: Tls13, cipher: Aes256Gcm, sequence: 9, .. }");
}

#[test]
fn each_refusal_has_its_label() {
    for (step, errno, reason) in [
        (KtlsStep::Attach, libc::ENOENT, "ulp_missing"),
        (KtlsStep::Attach, libc::ENOPROTOOPT, "ulp_missing"),
        (KtlsStep::Attach, libc::EEXIST, "ulp_in_use"),
        (KtlsStep::Attach, libc::ENOTCONN, "not_connected"),
        (KtlsStep::Attach, libc::EOPNOTSUPP, "socket_unsupported"),
        (KtlsStep::Attach, libc::EPROTONOSUPPORT, "multipath_tcp"),
        (KtlsStep::Attach, libc::EPERM, "denied"),
        (KtlsStep::InstallTx, libc::ENOENT, "cipher_missing"),
        (KtlsStep::InstallTx, libc::ENOPROTOOPT, "not_attached"),
        (KtlsStep::InstallTx, libc::EBUSY, "rekey_unsupported"),
        (KtlsStep::InstallTx, libc::ENOMEM, "no_memory"),
        (KtlsStep::InstallRx, libc::EINVAL, "suite_unsupported"),
        (KtlsStep::InstallRx, libc::EIO, "other"),
    ] {
        let refusal = KtlsError { step, error: io::Error::from_raw_os_error(errno) };
        assert_eq!(refusal.reason(), reason, "{step:?} {errno}");
    }
}

#[test]
fn multipath_tcp_is_refused_before_the_kernel_is_asked() {
    // A kernel without Multipath TCP cannot make the socket this asks for.
    let Ok(socket) = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::MPTCP)) else {
        skip("this kernel makes no Multipath TCP socket");
        return;
    };
    assert_eq!(attach(socket.as_fd()).unwrap_err().reason(), "multipath_tcp");
}

#[test]
fn keys_without_the_protocol_are_refused() {
    let (sender, _receiver) = loopback::pair().unwrap();
    let keys = keys(Version::Tls13, Cipher::Aes128Gcm, 0);
    let refusal = install(sender.as_fd(), RecordDirection::Tx, &keys).unwrap_err();
    assert_eq!((refusal.step, refusal.reason()), (KtlsStep::InstallTx, "not_attached"));
}

#[test]
fn attaching_twice_is_refused_and_harmless() {
    let Some((sender, receiver)) = attached_pair() else { return };
    assert_eq!(attach(sender.as_fd()).unwrap_err().reason(), "ulp_in_use");
    // Without keys the socket still carries plain bytes.
    transfer::send_one(sender.as_fd(), b"plain", false).unwrap();
    let mut buffer = [0; 16];
    loopback::wait_readable(receiver.as_fd()).unwrap();
    assert_eq!(transfer::receive(receiver.as_fd(), &mut buffer).unwrap(), 5);
}

#[test]
fn every_suite_carries_data_from_kernel_to_kernel() {
    for (version, cipher) in suites() {
        let Some((sender, receiver)) = keyed_pair(version, cipher) else { return };
        let head = b"head".as_slice();
        let body = [0x5a; 1000];
        let buffers = [IoSlice::new(head), IoSlice::new(&body)];
        assert_eq!(transfer::send(sender.as_fd(), &buffers, false).unwrap(), 1004);
        let mut buffer = [0; 2000];
        let received = loopback::receive_record(&receiver, &mut buffer).unwrap();
        assert_eq!(received, (record::APPLICATION_DATA, 1004), "{version:?} {cipher:?}");
        assert_eq!(&buffer[..4], head);
        assert_eq!(buffer[4..1004], body);
    }
}

#[test]
fn the_record_number_counts_from_where_user_space_stopped() {
    for (version, cipher) in suites() {
        let Some((sender, receiver)) = keyed_pair(version, cipher) else { return };
        assert_eq!(sequence(sender.as_fd(), RecordDirection::Tx, version, cipher).unwrap(), 3);
        transfer::send_one(sender.as_fd(), b"one", false).unwrap();
        record::send(sender.as_fd(), record::ALERT, &[1, 0]).unwrap();
        assert_eq!(sequence(sender.as_fd(), RecordDirection::Tx, version, cipher).unwrap(), 5);
        let mut buffer = [0; 16];
        loopback::receive_record(&receiver, &mut buffer).unwrap();
        loopback::receive_record(&receiver, &mut buffer).unwrap();
        assert_eq!(sequence(receiver.as_fd(), RecordDirection::Rx, version, cipher).unwrap(), 5);
        let other = match version {
            Version::Tls12 => Version::Tls13,
            Version::Tls13 => Version::Tls12,
        };
        let error = sequence(sender.as_fd(), RecordDirection::Tx, other, cipher).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }
}

#[test]
fn control_records_keep_their_type_and_close_an_open_record() {
    for (version, cipher) in suites() {
        let Some((sender, receiver)) = keyed_pair(version, cipher) else { return };
        transfer::send_one(sender.as_fd(), b"left open", true).unwrap();
        record::send(sender.as_fd(), record::ALERT, &[1, 0]).unwrap();
        let mut buffer = [0; 64];
        let data = loopback::receive_record(&receiver, &mut buffer).unwrap();
        assert_eq!(data, (record::APPLICATION_DATA, 9));
        let alert = loopback::receive_record(&receiver, &mut buffer).unwrap();
        assert_eq!((alert, &buffer[..2]), ((record::ALERT, 2), [1, 0].as_slice()));
        drop(sender);
        let end = loopback::receive_record(&receiver, &mut buffer).unwrap();
        assert_eq!(end, (record::APPLICATION_DATA, 0));
    }
}

#[test]
fn a_key_update_changes_the_keys_from_linux_6_14() {
    for cipher in Cipher::ALL {
        let Some((sender, receiver)) = keyed_pair(Version::Tls13, cipher) else { return };
        let next_key = [0x7e; 32];
        let key = &next_key[..cipher.key_bytes()];
        let next = TrafficKeys::new(Version::Tls13, cipher, key, [9; 12], 0).unwrap();
        record::send(sender.as_fd(), record::HANDSHAKE, &[24, 0, 0, 1, 0]).unwrap();
        let rekeyed = install(sender.as_fd(), RecordDirection::Tx, &next);
        if !kernel_is_at_least(6, 14) {
            assert_eq!(rekeyed.unwrap_err().reason(), "rekey_unsupported");
            continue;
        }
        rekeyed.unwrap();
        let mut buffer = [0; 64];
        let update = loopback::receive_record(&receiver, &mut buffer).unwrap();
        assert_eq!(update, (record::HANDSHAKE, 5));
        install(receiver.as_fd(), RecordDirection::Rx, &next).unwrap();
        transfer::send_one(sender.as_fd(), b"under the new key", false).unwrap();
        let data = loopback::receive_record(&receiver, &mut buffer).unwrap();
        assert_eq!(data, (record::APPLICATION_DATA, 17));
        assert_eq!(&buffer[..17], b"under the new key");
    }
}

#[test]
fn tls12_gcm_explicit_nonces_on_the_wire_count_up_from_the_flipped_iv() {
    for cipher in [Cipher::Aes128Gcm, Cipher::Aes256Gcm] {
        let Some((sender, receiver)) = attached_pair() else { return };
        // The receiver stays plain bytes: what it reads is what a capture would show.
        install(sender.as_fd(), RecordDirection::Tx, &keys(Version::Tls12, cipher, 1)).unwrap();
        let user_space = u64::from_be_bytes(IV[4..].try_into().unwrap());
        for index in 0..3 {
            transfer::send_one(sender.as_fd(), b"record", false).unwrap();
            let found = loopback::read_wire_record(&receiver).unwrap();
            let explicit = u64::from_be_bytes(found.fragment[..8].try_into().unwrap());
            assert_eq!(explicit, (user_space ^ (1 << 63)) + index);
        }
    }
}

#[test]
fn sendfile_shares_its_first_record_with_the_head() {
    let file_bytes = 40_000;
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&vec![b'f'; file_bytes]).unwrap();
    for (version, cipher) in suites() {
        let Some((sender, receiver)) = keyed_pair(version, cipher) else { return };
        transfer::send_one(sender.as_fd(), &[b'h'; 300], true).unwrap();
        let mut offset = 0;
        let sent =
            transfer::sendfile(sender.as_fd(), file.as_fd(), &mut offset, file_bytes).unwrap();
        assert_eq!((sent, offset), (file_bytes, file_bytes as u64));
        let mut received = Vec::new();
        let mut buffer = vec![0; 20_000];
        while received.len() < 300 + file_bytes {
            let before = received.len();
            let (kind, bytes) = loopback::receive_record(&receiver, &mut buffer).unwrap();
            assert_eq!(kind, record::APPLICATION_DATA);
            assert!(bytes > 0, "the stream ended after {before} bytes");
            received.extend_from_slice(&buffer[..bytes]);
            if before == 0 {
                assert!(bytes >= 16_384, "the first read ends with the head: {bytes}");
            }
        }
        assert!(received[..300].iter().all(|byte| *byte == b'h'));
        assert!(received[300..].iter().all(|byte| *byte == b'f'));
        assert_eq!(received.len(), 300 + file_bytes);
    }
}
