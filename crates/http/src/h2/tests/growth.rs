//! Windows that grow with the distance, out of a budget that all connections share.

mod distant;
mod ends;

use std::sync::Arc;

use super::client::*;
use crate::h2::frame::*;
use crate::h2::growth::{Granted, PAUSE_BYTES_MIN};
use crate::h2::stream::Stream;
use crate::h2::*;
use distant::{Distant, read_next};

const FIRST: Settings =
    Settings { stream_window_bytes: 256 << 10, connection_window_bytes: 1 << 20, ..SETTINGS_USED };

const BUDGET: usize = 64 << 20;

#[test]
fn a_window_grows_while_a_body_is_passed_on_as_it_comes() {
    let budget = WindowBudget::new(BUDGET);
    let mut client = Distant::new(&budget);
    let stream = client.begin(&[]);
    let rounds: Vec<usize> = (0..12).map(|_| client.round(stream, true)).collect();
    assert_eq!(rounds[0], 256 << 10, "{rounds:?}");
    assert!(rounds[..6].iter().any(|bytes| *bytes >= 4 << 20), "{rounds:?}");
    assert!(rounds.iter().all(|bytes| *bytes <= 16 << 20), "{rounds:?}");
    // What is not told yet is at most a third.
    assert!(client.may_send(stream) > 10 << 20);
}

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

/// The last piece of each burst is found passed on when the next burst begins, and so behind the probe.
#[test]
fn a_window_grows_where_a_body_comes_in_bursts() {
    let budget = WindowBudget::new(BUDGET);
    let mut client = Distant::new(&budget);
    let stream = client.begin(&[]);
    let mut rounds = Vec::new();
    for _ in 0..6 {
        rounds.push(client.may_send(stream));
        client.send(stream, 16_384);
        assert!(read_next(&mut client.connection, stream) > 0);
        client.connection.note_passed_on(stream);
        client.send(stream, client.may_send(stream));
        while read_next(&mut client.connection, stream) > 0 {}
        // It hears what was said, and answers at once.
        client.hear();
        client.hear();
    }
    assert!(rounds[4] >= 4 << 20, "{rounds:?}");
}

#[test]
fn a_probe_goes_around_once_enough_came() {
    let budget = WindowBudget::new(BUDGET);
    let mut client = Distant::new(&budget);
    let [stream, other] = [0; 2].map(|_| client.begin(&[]));
    for (bytes, probes) in [(32_767, 0), (1, 1), (100_000, 0)] {
        client.send(stream, bytes);
        while read_next(&mut client.connection, stream) > 0 {}
        let pings = taken(&mut client.connection);
        assert_eq!(pings.iter().filter(|it| it.kind == PING).count(), probes, "{bytes}");
        assert_eq!(client.connection.is_probing(stream), bytes != 32_767);
        assert!(!client.connection.is_probing(other));
    }
}

/// Sends so much in each round trip, passed on as it comes.
fn has_grown(bytes: usize) -> bool {
    let budget = WindowBudget::new(BUDGET);
    let mut client = Distant::new(&budget);
    let stream = client.begin(&[]);
    for _ in 0..8 {
        client.send(stream, bytes);
        while read_next(&mut client.connection, stream) > 0 {
            client.connection.note_passed_on(stream);
        }
        client.hear();
    }
    budget.free_bytes() < BUDGET
}

#[test]
fn a_window_is_too_small_for_two_thirds_of_it_in_a_round_trip() {
    assert!(!has_grown(170 << 10));
    assert!(has_grown(176 << 10));
}

#[test]
fn windows_grow_where_that_of_the_connection_is_what_binds() {
    let budget = WindowBudget::new(BUDGET);
    let mut client = Distant::new(&budget);
    client.connection = begun_with(Settings { connection_window_bytes: 512 << 10, ..FIRST });
    client.connection.grow_within(Arc::clone(&budget));
    client.open = 512 << 10;
    let streams = [0; 3].map(|_| client.begin(&[]));
    for _ in 0..6 {
        for stream in streams {
            client.send(stream, 150 << 10);
            while read_next(&mut client.connection, stream) > 0 {
                client.connection.note_passed_on(stream);
            }
        }
        client.hear();
    }
    assert!(budget.free_bytes() < BUDGET);
}

/// What sockets hold in between is not taken.
#[test]
fn a_window_stays_where_only_a_little_was_passed_on() {
    let budget = WindowBudget::new(BUDGET);
    let mut client = Distant::new(&budget);
    let stream = client.begin(&[]);
    for _ in 0..12 {
        client.send(stream, 16_384);
        assert!(read_next(&mut client.connection, stream) > 0);
        if client.connection.growth.probe.as_ref().is_some_and(|probe| !probe.is_back) {
            client.connection.note_passed_on(stream);
        }
        client.send(stream, client.may_send(stream));
        while read_next(&mut client.connection, stream) > 0 {}
        client.hear();
        client.hear();
        assert_eq!(budget.free_bytes(), BUDGET);
    }
}

/// A probe that waits for a note holds up no other stream.
#[test]
fn a_stream_that_stalls_keeps_no_other_from_growing() {
    let budget = WindowBudget::new(BUDGET);
    let mut client = Distant::new(&budget);
    let [stalled, stream] = [0; 2].map(|_| client.begin(&[]));
    for _ in 0..3 {
        client.round(stalled, false);
    }
    let rounds: Vec<usize> = (0..6).map(|_| client.round(stream, true)).collect();
    assert!(rounds.iter().any(|bytes| *bytes >= 4 << 20), "{rounds:?}");
}

#[test]
fn a_window_stays_while_nobody_passes_the_body_on() {
    let budget = WindowBudget::new(BUDGET);
    let mut client = Distant::new(&budget);
    let stream = client.begin(&[]);
    for _ in 0..20 {
        assert!(client.round(stream, false) <= 256 << 10);
    }
    assert_eq!(budget.free_bytes(), BUDGET);
    // Or holds more than half of it still when the probe comes back.
    let mut client = Distant::new(&budget);
    let stream = client.begin(&[]);
    for _ in 0..20 {
        client.send(stream, client.may_send(stream));
        assert!(read_next(&mut client.connection, stream) > 0);
        client.connection.note_passed_on(stream);
        assert!(served(&client, stream).held_bytes() > 130 << 10);
        client.hear();
        while read_next(&mut client.connection, stream) > 0 {}
        client.hear();
    }
    assert_eq!(budget.free_bytes(), BUDGET);
}

fn served(client: &Distant, number: u32) -> &Stream {
    client.connection.streams.iter().find(|it| it.number == number).unwrap()
}

#[test]
fn a_window_is_halved_where_less_than_a_quarter_comes_in_a_round_trip() {
    let budget = WindowBudget::new(BUDGET);
    let mut client = Distant::new(&budget);
    let stream = client.begin(&[]);
    (0..8).for_each(|_| _ = client.round(stream, true));
    let mut sizes = Vec::new();
    for bytes in [5 << 20, 3 << 20] {
        for _ in 0..20 {
            client.send(stream, bytes);
            while read_next(&mut client.connection, stream) > 0 {
                client.connection.note_passed_on(stream);
            }
            client.hear();
            sizes.push(served(&client, stream).target_bytes >> 20);
        }
    }
    sizes.dedup();
    assert_eq!(sizes, [16, 8]);
}

#[test]
fn a_client_that_is_near_keeps_the_windows_it_has() {
    let budget = WindowBudget::new(BUDGET);
    let mut client = Distant::new(&budget);
    let stream = client.begin(&[]);
    let mut probes = 0;
    for _ in 0..2_000 {
        client.send(stream, 20_000);
        read(&mut client.connection, stream);
        client.connection.note_passed_on(stream);
        client.hear();
        probes += client.pings.len();
        assert_eq!(budget.free_bytes(), BUDGET);
    }
    // Of no use, they come more and more seldom.
    assert!((10..40).contains(&probes), "{probes}");
}

#[test]
fn without_a_budget_or_where_it_is_used_up_the_first_windows_stay() {
    for bytes in [0, 200 << 10] {
        let budget = WindowBudget::new(bytes);
        let mut client = Distant::new(&budget);
        let stream = client.begin(&[]);
        assert!((0..12).all(|_| client.round(stream, true) <= 256 << 10));
        assert_eq!(budget.free_bytes(), bytes);
    }
    // One has at most half, and another half of what is left.
    let budget = WindowBudget::new(16 << 20);
    let [mut first, mut second] = [0; 2].map(|_| Distant::new(&budget));
    let [one, two] = [first.begin(&[]), second.begin(&[])];
    (0..12).for_each(|_| _ = first.round(one, true));
    (0..12).for_each(|_| _ = second.round(two, true));
    assert!((4 << 20..9 << 20).contains(&first.may_send(one)));
    assert!((2 << 20..5 << 20).contains(&second.may_send(two)));
    drop(first);
    (0..12).for_each(|_| _ = second.round(two, true));
    assert!((4 << 20..9 << 20).contains(&second.may_send(two)));
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

#[test]
fn one_connection_leaves_half_of_the_budget_whatever_it_sends() {
    for bytes in [8, 16, 64] {
        let budget = WindowBudget::new(bytes << 20);
        let mut hoarder = Distant::new(&budget);
        let streams = [(); 4].map(|()| hoarder.begin(&[]));
        for stream in std::iter::repeat_n(streams, 12).flatten() {
            hoarder.round(stream, true);
            assert!(budget.free_bytes() >= bytes << 19, "{}", budget.free_bytes());
        }
        let mut other = Distant::new(&budget);
        let stream = other.begin(&[]);
        (0..12).for_each(|_| _ = other.round(stream, true));
        assert!(other.may_send(stream) >= bytes << 17, "{}", other.may_send(stream));
    }
}

#[test]
fn a_body_whose_length_is_known_leaves_nothing_granted() {
    let budget = WindowBudget::new(BUDGET);
    let mut client = Distant::new(&budget);
    let all = 40_usize << 20;
    let stream = client.begin(&[("content-length", &all.to_string())]);
    let (mut sent, mut most) = (0, 0);
    while sent < all {
        client.send(stream, client.may_send(stream).min(all - sent));
        sent = all - usize::try_from(missing(&client.connection, stream)).unwrap();
        while read_next(&mut client.connection, stream) > 0 {
            client.connection.note_passed_on(stream);
        }
        client.hear();
        most = most.max(BUDGET - budget.free_bytes());
    }
    assert!(most >= 8 << 20, "{most}");
    assert_eq!(budget.free_bytes(), BUDGET);
    // A small one sends nothing around.
    let stream = client.begin(&[("content-length", "262144")]);
    client.round(stream, true);
    assert!(client.pings.is_empty());
}

#[test]
fn no_probe_goes_around_where_no_larger_window_is_of_use() {
    for (more, held, probes) in [(0, 0, 0), (1, 0, 1), (0, 100 << 10, 0), (1, 100 << 10, 1)] {
        let length = (32 << 10) + (256 << 10) + more;
        let mut client = Distant::new(&WindowBudget::new(BUDGET));
        let stream = client.begin(&[("content-length", &length.to_string())]);
        client.send(stream, 16 << 10);
        while read_next(&mut client.connection, stream) > 0 {}
        for bytes in [16 << 10, held] {
            client.send(stream, bytes);
            assert_eq!(read_next(&mut client.connection, stream), bytes);
        }
        client.hear();
        assert_eq!(client.pings.len(), probes, "{more} {held}");
    }
}

fn missing(connection: &Connection, stream: u32) -> u64 {
    let stream = connection.streams.iter().find(|it| it.number == stream).unwrap();
    stream.missing_bytes.unwrap()
}
