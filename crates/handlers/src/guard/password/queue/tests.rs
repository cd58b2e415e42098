use std::net::Ipv4Addr;

use super::*;

fn client(number: usize) -> ClientHost {
    let address = Ipv4Addr::from(0x0a00_0000 + u32::try_from(number).unwrap());
    ClientHost::Ip(address.into())
}

fn push(queue: &Queue<usize>, number: usize, job: usize) -> Result<(), usize> {
    queue.push(client(number), job, |_| false)
}

/// A queue that this many clients have filled, each with as many jobs as it may have.
fn full() -> Queue<usize> {
    let queue = Queue::new();
    let clients = WAITING_MAX / PENDING_PER_CLIENT_MAX;
    for job in 0..WAITING_MAX {
        push(&queue, job % clients, job).unwrap();
    }
    queue
}

fn taken(queue: &Queue<usize>) -> (ClientHost, usize) {
    let taken = queue.next();
    queue.done(taken.0);
    taken
}

#[test]
fn a_client_that_has_none_waiting_takes_a_place_of_the_one_that_has_most_and_has_its_turn_soon() {
    let queue = full();
    push(&queue, 100, 1_000).unwrap();
    // Not a second one: it has one now.
    assert_eq!(push(&queue, 100, 1_001), Err(1_001));
    let turns = (1..).find(|_| taken(&queue).1 == 1_000).unwrap();
    assert!(turns <= WAITING_MAX / PENDING_PER_CLIENT_MAX + 1, "{turns} turns");
    for _ in turns..WAITING_MAX {
        taken(&queue);
    }
    assert!(queue.state().waiting.is_empty());
    assert!(queue.state().clients.is_empty(), "nobody is remembered");
}

#[test]
fn one_that_has_most_keeps_its_first_places() {
    let queue = Queue::new();
    for job in 0..PENDING_PER_CLIENT_MAX {
        push(&queue, 0, job).unwrap();
    }
    for number in 1..=WAITING_MAX - PENDING_PER_CLIENT_MAX {
        push(&queue, number, 100).unwrap();
    }
    // Each of them takes one, until nobody has more than another.
    for number in 0..PENDING_PER_CLIENT_MAX - 1 {
        push(&queue, 1_000 + number, 200).unwrap();
    }
    assert_eq!(push(&queue, 2_000, 300), Err(300));
    let of_first: Vec<_> =
        (0..WAITING_MAX).map(|_| taken(&queue)).filter(|(it, _)| *it == client(0)).collect();
    assert_eq!(of_first, [(client(0), 0)]);
}

#[test]
fn what_nobody_waits_for_any_more_makes_room_before_anybody_is_displaced() {
    let queue = full();
    queue.push(client(100), 1_000, |job| *job == 7).unwrap();
    let jobs: Vec<_> = (0..WAITING_MAX).map(|_| taken(&queue).1).collect();
    assert!(!jobs.contains(&7) && jobs.contains(&1_000));
    assert!((0..WAITING_MAX).filter(|job| *job != 7).all(|job| jobs.contains(&job)));
}

#[test]
fn a_client_has_its_next_turn_after_all_others_have_had_theirs() {
    let queue = Queue::new();
    for (number, job) in [(0, 1), (0, 2), (0, 3), (1, 4), (2, 5), (1, 6)] {
        push(&queue, number, job).unwrap();
    }
    let mut order: Vec<_> = (0..3).map(|_| taken(&queue).1).collect();
    assert_eq!(order, [1, 4, 5]);
    push(&queue, 3, 7).unwrap();
    order = (0..4).map(|_| taken(&queue).1).collect();
    assert_eq!(order, [7, 2, 6, 3]);
}

#[test]
fn a_network_has_as_many_under_way_as_one_client_may_have() {
    let queue = Queue::new();
    let address = |host: u128| ClientHost::Ip((0x2001_0db8_u128 << 96 | host).to_be_bytes().into());
    for job in 0..PENDING_PER_CLIENT_MAX {
        queue.push(address(job as u128), job, |_| false).unwrap();
    }
    assert_eq!(queue.push(address(99), 99, |_| false), Err(99));
    queue.push(address(1 << 64), 100, |_| false).unwrap();
    // One that is being done counts as well.
    let (first, _) = queue.next();
    assert_eq!(queue.push(address(99), 99, |_| false), Err(99));
    queue.done(first);
    queue.push(address(99), 99, |_| false).unwrap();
}
