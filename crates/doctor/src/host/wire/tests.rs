//! ClientHellos in pieces.

use super::*;

fn hello(bytes: usize) -> Vec<u8> {
    let length = u16::try_from(bytes).unwrap().to_be_bytes();
    let message = (0..bytes).map(|number| (number % 251) as u8);
    [22, 3, 1].into_iter().chain(length).chain(message).collect()
}

async fn sent(bytes: usize, cut: Cut) -> Vec<u8> {
    let mut far = Vec::new();
    send_hello(&hello(bytes), &mut far, cut).await.unwrap();
    far
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

#[test]
fn pieces_make_the_whole() {
    runtime().block_on(async {
        for bytes in [0, 1, 2, 40] {
            for cut in [
                Cut::Whole,
                Cut::After(5),
                Cut::After(99),
                Cut::Middle,
                Cut::BeforeLast,
                Cut::Bytes,
            ] {
                assert_eq!(sent(bytes, cut).await, hello(bytes), "{bytes} {cut:?}");
            }
        }
    });
}

#[test]
fn two_records_have_the_message_of_one() {
    let whole = hello(41);
    let records = in_two_records(&whole);
    let (first, second) = records.split_at(5 + 20);
    assert_eq!((&first[..5], &second[..5]), (&[22, 3, 1, 0, 20][..], &[22, 3, 1, 0, 21][..]));
    assert_eq!([&first[5..], &second[5..]].concat(), whole[5..]);
    assert_eq!(in_two_records(&[22, 3]), [22, 3]);
}

#[test]
fn a_connection_ends_when_either_side_does() {
    runtime().block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let far = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        let traffic = RefCell::default();
        let near = Between::open().await.unwrap();
        let talk = carry(near, far, Cut::Middle, &traffic, async |mut client| {
            client.write_all(&hello(10)).await.unwrap();
            let mut said = Vec::new();
            client.read_to_end(&mut said).await.unwrap();
            said
        });
        let serve = async {
            let mut heard = vec![0; 15];
            server.read_exact(&mut heard).await.unwrap();
            server.write_all(&[22, 3, 3, 0, 1, 7]).await.unwrap();
            drop(server);
            heard
        };
        let (said, heard) = tokio::join!(talk, serve);
        assert_eq!((said, heard), (vec![22, 3, 3, 0, 1, 7], hello(10)));
        let traffic = traffic.into_inner();
        assert_eq!(traffic.hello_bytes, 15);
        assert_eq!((traffic.sent.handshake_bytes(), traffic.received.handshake_bytes()), (15, 6));
        assert_eq!(traffic.answer, [22, 3, 3, 0, 1, 7]);
    });
}
