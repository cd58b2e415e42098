//! One connection sends, and others have their turns.

use super::*;

/// The part of a file that is sent in a turn does not depend on how it was asked for.
#[tokio::test]
async fn many_short_ranges_end_a_turn_as_one_long_range_does() {
    let whole = |router| router;
    on_stage(whole, async |stage| {
        std::fs::write(stage.folder.path().join("large"), vec![7; 1_200_000]).unwrap();
        let mut client = stage.connect().await;
        for ranges in ["0-799999", "0-199999,300000-499999,600000-799999,900000-1099999"] {
            let range = format!("Range: bytes={ranges}");
            client.send(format!("GET /large HTTP/1.1\r\nHost: localhost\r\n{range}\r\n\r\n")).await;
            let mut has_ended_turn = false;
            let mut response = pin!(client.response());
            let watched = poll_fn(|context| {
                has_ended_turn |= stage.worker.send_turns.is_led();
                response.as_mut().poll(context)
            });
            let (head, body) = watched.await;
            assert!(head.starts_with("HTTP/1.1 206 ") && body.len() >= 800_000, "{head}");
            assert!(has_ended_turn, "{ranges}");
        }
    })
    .await;
}
