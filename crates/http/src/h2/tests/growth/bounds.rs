//! Bounds of what grows, the first flight of a client that is far away, and what is told with it.

use super::*;
use crate::h2::growth::{Granted, PAUSE_BYTES_MIN};

/// It sends 64 KiB before it knows the windows, and waits for them.
#[test]
fn the_windows_of_a_client_that_is_far_away_grow_with_the_first_round_trip_that_shows_it() {
    for (is_far, is_passed_on, is_acknowledged, first_bytes, grows) in [
        (true, true, false, 65_535, true),
        (true, true, false, 43_000, false),
        (true, false, false, 65_535, false),
        (true, true, true, 65_535, false),
        (false, true, false, 65_535, false),
    ] {
        let budget = WindowBudget::new(BUDGET);
        let mut client = Distant::new(&budget);
        if is_far {
            client.connection.note_far();
        }
        let acknowledge = |it: &mut Distant| say(&mut it.connection, &frame(SETTINGS, ACK, 0, b""));
        if is_acknowledged {
            acknowledge(&mut client);
        }
        let stream = client.begin(&[]);
        client.send(stream, first_bytes);
        while read_next(&mut client.connection, stream) > 0 {}
        client.hear();
        acknowledge(&mut client);
        // The answer to the ping comes in front of what it sends now.
        client.hear();
        client.send(stream, client.may_send(stream));
        assert!(client.connection.is_probing(stream));
        assert!(read_next(&mut client.connection, stream) > 0);
        if is_passed_on {
            client.connection.note_passed_on(stream);
        }
        let what = format!("{is_far} {is_passed_on} {is_acknowledged} {first_bytes}");
        assert_eq!(budget.free_bytes() < BUDGET, grows, "{what}");
        client.pings.clear();
        client.hear();
        assert_eq!(client.may_send(stream) > 8 << 20, grows, "{what}");
    }
}

#[test]
fn a_client_waits_for_no_window_at_the_end_of_a_body_for_which_it_grew() {
    for piece_bytes in [5_000, 9_000, 16_384, 30_000] {
        let mut client = Distant::new(&WindowBudget::new(BUDGET));
        let mut left = 6_usize << 20;
        let stream = client.begin(&[("content-length", &left.to_string())]);
        while client.may_send(stream) <= 1 << 20 {
            let mut open = client.may_send(stream);
            while open > 0 {
                let bytes = piece_bytes.min(open);
                client.send(stream, bytes);
                (open, left) = (open - bytes, left - bytes);
                assert!(read_next(&mut client.connection, stream) > 0);
                client.connection.note_passed_on(stream);
            }
            client.hear();
        }
        assert!(client.may_send(stream) >= left, "{piece_bytes} {}", client.may_send(stream));
    }
}

/// Until it grows: it sends all it may in each round trip, of which all is passed on.
fn grow(client: &mut Distant, stream: u32) {
    let before = served(client, stream).target_bytes;
    for _ in 0..6 {
        client.round(stream, true);
        if served(client, stream).target_bytes > before {
            return;
        }
    }
    panic!("it does not grow");
}

#[test]
fn what_grows_first_takes_a_quarter_and_what_others_have_is_theirs() {
    let budget = WindowBudget::new(32 << 20);
    let mut client = Distant::new(&budget);
    let [one, two] = [(); 2].map(|()| client.begin(&[]));
    grow(&mut client, one);
    assert_eq!(budget.free_bytes(), 24 << 20);
    grow(&mut client, two);
    let excess: i64 = [one, two].map(|it| served(&client, it).excess_bytes()).into_iter().sum();
    assert_eq!(client.connection.receive_window.size, (1 << 20) + excess);
}

#[test]
fn the_window_of_a_connection_is_64_mib_at_most() {
    let budget = WindowBudget::new(1 << 30);
    let mut client = Distant::new(&budget);
    client.connection = begun_with(Settings { streams_max: 12, ..FIRST });
    client.connection.grow_within(budget);
    let size = |client: &Distant| client.connection.receive_window.size;
    for _ in 0..12 {
        let stream = client.begin(&[]);
        for _ in 0..6 {
            if served(&client, stream).target_bytes == 256 << 10 {
                client.round(stream, true);
            }
        }
        assert!(size(&client) <= 64 << 20, "{}", size(&client));
    }
    assert!(size(&client) > 56 << 20, "{}", size(&client));
}

#[test]
fn probes_come_often_again_once_one_was_of_use() {
    let mut client = Distant::new(&WindowBudget::new(BUDGET));
    let stream = client.begin(&[]);
    for _ in 0..20 {
        client.send(stream, 20_000);
        read(&mut client.connection, stream);
        client.hear();
    }
    assert!(client.connection.growth.pause_bytes > PAUSE_BYTES_MIN);
    grow(&mut client, stream);
    assert_eq!(client.connection.growth.pause_bytes, PAUSE_BYTES_MIN);
}

#[test]
fn one_may_have_as_much_as_is_left_and_not_a_byte_more() {
    let budget = WindowBudget::new(11);
    let [mut one, mut other] =
        [(); 2].map(|()| Granted { budget: Some(Arc::clone(&budget)), bytes: 0 });
    assert!(one.take(5) && !one.take(1));
    assert_eq!((one.bytes, budget.free_bytes()), (5, 6));
    assert!(other.take(3) && one.take(0) && !Granted::default().take(0));
    other.keep(1);
    drop(one);
    assert_eq!((other.bytes, budget.free_bytes()), (1, 10));
}
