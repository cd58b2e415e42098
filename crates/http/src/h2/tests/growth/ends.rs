//! What ended, shrank or was granted, and is given back.

use proptest::collection::vec;
use proptest::prelude::*;

use super::super::client::*;
use super::distant::{Distant, read_next};
use super::{BUDGET, served};
use crate::h2::frame::*;
use crate::h2::*;

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
                client.send(stream, 50_000);
                read(&mut client.connection, stream);
                client.connection.note_passed_on(stream);
                client.hear();
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
