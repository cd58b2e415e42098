use std::future::pending;

use tokio::sync::mpsc;

use super::*;

/// The behaviour of a connection that is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Client {
    Silent,
    Slow,
    Quick,
}

/// Tells of its connection's end, however it comes.
struct Ended(usize, mpsc::Sender<usize>);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.1.try_send(self.0);
    }
}

/// Lets these come one after the other, and gives the order in which they end until one of them is the last.
async fn ends(makes_way_after: Option<Duration>, clients: &[Client]) -> Vec<usize> {
    let lifetime = Duration::from_secs(10);
    let bounds = Bounds { connections_max: 2, lifetime, makes_way_after };
    let (arrive, mut arrived) = mpsc::channel(8);
    let (tell, mut told) = mpsc::channel(8);
    for (number, client) in clients.iter().enumerate() {
        arrive.try_send((number, *client)).unwrap();
    }
    let accept = async || Ok(arrived.recv().await.unwrap());
    let answer = |(number, client), spoken: Spoken| {
        let ended = Ended(number, tell.clone());
        async move {
            let _ended = ended;
            if client != Client::Silent {
                spoken.note();
            }
            if client != Client::Quick {
                pending::<()>().await;
            }
            Ok(())
        }
    };
    let accepting = accept_each("a test", &bounds, accept, answer);
    let mut order = Vec::new();
    let collect = async {
        while let Some(number) = told.recv().await {
            order.push(number);
            if clients[number] == Client::Quick {
                return;
            }
        }
    };
    tokio::select! {
        _ = accepting => {}
        () = collect => {}
    }
    order
}

#[tokio::test(start_paused = true)]
async fn the_oldest_silent_connection_makes_way_at_once() {
    use Client::{Quick, Silent, Slow};
    let begun = Instant::now();
    let patience = Some(Duration::from_secs(1));
    assert_eq!(ends(patience, &[Silent, Silent, Quick]).await, [0, 2]);
    assert_eq!(ends(patience, &[Slow, Silent, Quick]).await, [1, 2]);
    assert_eq!(begun.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn one_that_takes_its_time_makes_way_after_a_while() {
    use Client::{Quick, Slow};
    let begun = Instant::now();
    assert_eq!(ends(Some(Duration::from_secs(1)), &[Slow, Slow, Quick]).await, [0, 2]);
    assert_eq!(begun.elapsed().as_secs(), 1);
}

#[tokio::test(start_paused = true)]
async fn where_nobody_makes_way_further_ones_wait_for_an_end() {
    use Client::{Quick, Silent};
    let begun = Instant::now();
    assert_eq!(ends(None, &[Silent, Silent, Quick]).await.last(), Some(&2));
    assert_eq!(begun.elapsed().as_secs(), 10);
}
