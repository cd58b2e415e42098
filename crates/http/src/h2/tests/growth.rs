//! Windows that grow with the distance, out of a budget that all connections share.

mod bounds;

use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;

use super::client::*;
use crate::h2::frame::*;
use crate::h2::stream::Stream;
use crate::h2::*;

const FIRST: Settings =
    Settings { stream_window_bytes: 256 << 10, connection_window_bytes: 1 << 20, ..SETTINGS_USED };

const BUDGET: usize = 64 << 20;

/// A connection to a client, each of whose rounds is a round trip: it sends what the windows allow, and then hears what was said
/// before.
struct Distant {
    connection: Connection,
    /// The bytes it may send: of all streams, and of each.
    open: i64,
    streams: Vec<(u32, i64)>,
    pings: Vec<Vec<u8>>,
}

impl Distant {
    fn new(budget: &Arc<WindowBudget>) -> Self {
        let mut connection = begun_with(FIRST);
        connection.grow_within(Arc::clone(budget));
        Self { connection, open: 1 << 20, streams: Vec::new(), pings: Vec::new() }
    }

    fn begin(&mut self, more: &[(&str, &str)]) -> u32 {
        let number = self.streams.last().map_or(1, |(number, _)| number + 2);
        say(&mut self.connection, &request(number, 0, more));
        assert_eq!(self.connection.next_request().unwrap().outcome, Ok(()));
        self.streams.push((number, 256 << 10));
        number
    }

    fn may_send(&self, number: u32) -> usize {
        let stream = self.streams.iter().find(|it| it.0 == number).unwrap().1;
        usize::try_from(stream.min(self.open)).unwrap()
    }

    fn send(&mut self, number: u32, bytes: usize) {
        let bytes = bytes.min(self.may_send(number));
        for frame_bytes in std::iter::repeat_n(16_384, bytes / 16_384).chain([bytes % 16_384]) {
            if frame_bytes > 0 {
                say(&mut self.connection, &data(number, 0, frame_bytes));
            }
        }
        let bytes = i64::try_from(bytes).unwrap();
        self.open -= bytes;
        self.streams.iter_mut().find(|it| it.0 == number).unwrap().1 -= bytes;
    }

    /// Takes in what was said, and answers the pings of the round before.
    fn hear(&mut self) {
        for ping in std::mem::take(&mut self.pings) {
            say(&mut self.connection, &frame(PING, ACK, 0, &ping));
        }
        for said in taken(&mut self.connection) {
            // RFC 9113 §6.9.
            assert!(said.kind != WINDOW_UPDATE || number(&said.payload) > 0);
            match said.kind {
                WINDOW_UPDATE if said.stream == 0 => self.open += i64::from(number(&said.payload)),
                WINDOW_UPDATE => {
                    let stream = self.streams.iter_mut().find(|it| it.0 == said.stream);
                    stream.unwrap().1 += i64::from(number(&said.payload));
                }
                PING if said.flags & ACK == 0 => self.pings.push(said.payload),
                _ => {}
            }
        }
    }

    /// Sends so much, all of which the server reads and passes on.
    fn pass_on(&mut self, number: u32, bytes: usize) {
        self.send(number, bytes);
        while read_next(&mut self.connection, number) > 0 {
            self.connection.note_passed_on(number);
        }
        self.hear();
    }

    /// Sends all that it may, of which the server reads all, and passes it on or not.
    fn round(&mut self, number: u32, is_passed_on: bool) -> usize {
        let bytes = self.may_send(number);
        self.send(number, bytes);
        while read_next(&mut self.connection, number) > 0 {
            if is_passed_on {
                self.connection.note_passed_on(number);
            }
        }
        self.hear();
        assert_eq!(self.connection.end(), None);
        bytes
    }
}

/// Reads one piece.
fn read_next(connection: &mut Connection, stream: u32) -> usize {
    match incoming(connection, stream) {
        std::task::Poll::Ready(Ok(Incoming::Data(data))) => data.len(),
        _ => 0,
    }
}

#[test]
fn a_window_grows_while_a_body_is_passed_on_as_it_comes() {
    let budget = WindowBudget::new(BUDGET);
    let mut client = Distant::new(&budget);
    let stream = client.begin(&[]);
    let rounds: Vec<usize> = (0..12).map(|_| client.round(stream, true)).collect();
    assert_eq!(rounds[0], 256 << 10, "{rounds:?}");
    assert!(rounds[..6].iter().any(|bytes| *bytes >= 4 << 20), "{rounds:?}");
    assert!(rounds.iter().all(|bytes| *bytes <= 16 << 20), "{rounds:?}");
    // The part not told yet is at most a third.
    assert!(client.may_send(stream) > 10 << 20);
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
        client.pass_on(stream, bytes);
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

/// The bytes that sockets hold in between are not taken.
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
            client.pass_on(stream, bytes);
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
        client.pass_on(stream, 20_000);
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
    let mut sent = 0;
    let mut most = 0;
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

#[test]
fn what_an_ended_stream_leaves_is_withheld_from_those_behind_it_or_ends_with_the_connection() {
    type End = fn(&mut Distant, u32);
    let ends: [(&str, End); 4] = [
        ("ended", |it, stream| say(&mut it.connection, &data(stream, END_STREAM, 0))),
        ("taken back", |it, stream| say(&mut it.connection, &rst(stream))),
        ("reset", |it, stream| it.connection.reset(stream, ErrorCode::CANCEL)),
        ("wrong", |it, stream| say(&mut it.connection, &padded(stream, 0, 1, 9))),
    ];
    for (what, end) in ends {
        let budget = WindowBudget::new(BUDGET);
        let mut client = Distant::new(&budget);
        let stream = client.begin(&[]);
        (0..8).for_each(|_| _ = client.round(stream, true));
        assert!(budget.free_bytes() <= BUDGET - (15 << 20), "{what}");
        end(&mut client, stream);
        let excess = served(&client, stream).excess_bytes();
        assert!(excess == 0 || what == "wrong", "{what}");
        client.connection.release(stream);
        client.hear();
        // Each further body takes of it what it brings.
        let next = client.begin(&[]);
        for _ in 0..80 {
            client.round(next, false);
        }
        assert_eq!(budget.free_bytes(), BUDGET, "{what}");
        assert!((700 << 10..=1 << 20).contains(&client.open), "{what}");
        let mut client = Distant::new(&budget);
        let stream = client.begin(&[]);
        (0..8).for_each(|_| _ = client.round(stream, true));
        drop(client);
        assert_eq!(budget.free_bytes(), BUDGET, "{what}");
    }
}

#[test]
fn a_window_shrinks_where_a_body_is_not_passed_on_any_more_or_comes_slowly() {
    let budget = WindowBudget::new(BUDGET);
    for is_slow in [false, true] {
        let mut client = Distant::new(&budget);
        let stream = client.begin(&[]);
        (0..8).for_each(|_| _ = client.round(stream, true));
        assert!(budget.free_bytes() < BUDGET);
        for _ in 0..2_000 {
            if is_slow {
                client.pass_on(stream, 50_000);
            } else {
                client.round(stream, false);
            }
        }
        assert!(budget.free_bytes() >= BUDGET - (1 << 20), "{}", budget.free_bytes());
    }
}

#[test]
fn answers_to_probes_are_no_flood_and_others_are() {
    let budget = WindowBudget::new(0);
    let mut client = Distant::new(&budget);
    let stream = client.begin(&[]);
    let mut probes = 0;
    for _ in 0..200_000 {
        client.round(stream, true);
        probes += client.pings.len();
        if probes > 1_500 {
            break;
        }
    }
    assert_eq!((probes > 1_500, client.connection.end()), (true, None));
    for _ in 0..1_010 {
        say(&mut client.connection, &frame(PING, ACK, 0, b"windows."));
    }
    assert_eq!(client.connection.end(), Some(ConnectionEnd::Flood("ping_flood")));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Whatever happens, what clients may send and what is held is within the first windows and what the budget lacks.
    #[test]
    fn what_is_granted_is_counted(
        acts in vec((0_u8..9, 0_usize..3, 1_usize..600_000), 1..200),
        is_far in any::<bool>(),
    ) {
        let budget = WindowBudget::new(8 << 20);
        let mut client = Distant::new(&budget);
        if is_far {
            client.connection.note_far();
        }
        let mut numbers = vec![client.begin(&[])];
        for (act, which, bytes) in acts {
            let number = numbers[which % numbers.len()];
            match act {
                0..3 => client.send(number, bytes),
                3..5 if read_next(&mut client.connection, number) > 0 => {
                    client.connection.note_passed_on(number);
                }
                5..7 => client.hear(),
                7 => {
                    client.connection.release(number);
                    numbers.retain(|it| *it != number);
                    if numbers.is_empty() {
                        numbers.push(client.begin(&[]));
                    }
                }
                _ if numbers.len() < 3 => numbers.push(client.begin(&[])),
                _ => {}
            }
            prop_assert_eq!(client.connection.end(), None);
            let window = client.connection.receive_window;
            let used = i64::try_from((8 << 20) - budget.free_bytes()).unwrap();
            prop_assert_eq!(window.size, (1 << 20) + used);
            let held: usize = client.connection.streams.iter().map(|it| it.held_bytes()).sum();
            prop_assert!(window.bytes + i64::try_from(held).unwrap() <= window.size);
        }
        drop(client);
        prop_assert_eq!(budget.free_bytes(), 8 << 20);
    }
}
