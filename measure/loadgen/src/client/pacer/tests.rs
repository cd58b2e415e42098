use std::rc::Rc;

use tokio::runtime::{Builder, LocalOptions};
use tokio::task::JoinSet;

use super::*;

fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default());
    runtime.unwrap().block_on(work)
}

#[test]
fn whoever_is_due_first_is_woken_first_and_never_early() {
    let order = block_on(async {
        let pacer = Rc::new(Pacer::new().unwrap());
        let start = Instant::now();
        let mut waits = JoinSet::new();
        for milliseconds in [30, 10, 20, 0] {
            let pacer = Rc::clone(&pacer);
            waits.spawn_local(async move {
                let due = start + Duration::from_millis(milliseconds);
                pacer.until(due).await;
                assert!(Instant::now() >= due);
                milliseconds
            });
        }
        let all = async {
            let mut order = Vec::new();
            while let Some(milliseconds) = waits.join_next().await {
                order.push(milliseconds.unwrap());
            }
            order
        };
        tokio::select! {
            order = all => order,
            failed = pacer.drive() => panic!("{failed:?}"),
        }
    });
    assert_eq!(order, [0, 10, 20, 30]);
}

#[test]
fn one_who_gives_up_does_not_hold_up_the_others() {
    block_on(async {
        let pacer = Pacer::new().unwrap();
        let soon = Instant::now() + Duration::from_millis(5);
        let later = soon + Duration::from_millis(5);
        let waits = async {
            tokio::select! {
                biased;
                () = pacer.until(soon) => panic!("not yet"),
                () = std::future::ready(()) => {}
            }
            pacer.until(later).await;
        };
        tokio::select! {
            () = waits => assert!(Instant::now() >= later),
            failed = pacer.drive() => panic!("{failed:?}"),
        }
    });
}
