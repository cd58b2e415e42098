//! HTTP/2 whose records the kernel makes: a connection moves for the response that asks for it, whatever else is under way.

use super::*;
use crate::http2::frames::get;
use crate::http2::frames::*;

fn by(path: &str) -> Setup {
    Setup::default().listener(&format!("http2 = true\npath = {path:?}")).without_memory()
}

/// A client whose windows hold all it will ask for.
fn begin(dialer: Dialer, kettle: &Kettle) -> Frames {
    let mut frames = Frames::begin(dialer, kettle, &[(INITIAL_WINDOW_SIZE, WINDOW_MAX)]);
    frames.send(&update(0, WINDOW_MAX - 65_535));
    frames
}

#[test]
fn the_kernel_encrypts_what_the_configuration_gives_it() {
    if !kernel_tls_or_skip() {
        return;
    }
    for (path, large, small, missing, moves) in [
        ("kernel-write", "kernel-write", "kernel-write", "kernel-write", 1),
        (
            "kernel-sendfile",
            "kernel-write (http2)",
            "kernel-write (http2)",
            "kernel-write (not_a_file)",
            1,
        ),
        ("auto", "user (http2)", "user", "user", 0),
        ("user", "user", "user", "user", 0),
    ] {
        let kettle = Kettle::start(by(path).sizes(&[1, 1 << 20]).alone());
        let counts = KernelCounts::now();
        let mut frames = begin(Dialer::default(), &kettle);
        for (stream, bytes, taken) in [(1, 1 << 20, large), (3, 1, small), (5, 1 << 20, large)] {
            let target = format!("/{bytes}");
            frames.send(&get(stream, &target));
            assert_same(&frames.body(stream), &content(bytes), path);
            assert_eq!(kettle.entry(&target).path(), taken, "{path} {target}");
        }
        frames.send(&get(7, "/missing"));
        frames.ping();
        assert_eq!(kettle.entry("/missing").path(), missing, "{path}");
        assert_eq!(counts.growth("TlsTxSw"), moves, "{path}");
        assert_eq!(kettle.status("/total/switches"), usize::try_from(moves).unwrap());
    }
}

#[test]
fn a_site_that_wants_user_space_says_why_a_connection_is_in_the_kernel_already() {
    let Some(kettle) =
        Kettle::start_in_kernel(by("user").sizes(&[1]).site("path = \"kernel-write\""))
    else {
        return;
    };
    let mut frames = begin(Dialer::default(), &kettle);
    frames.send(&get(1, "/1"));
    assert_same(&frames.body(1), &content(1), "before");
    assert_eq!(kettle.entry("/1").path(), "kernel-write");
    kettle.reload_with("path = \"kernel-write\"", "path = \"user\"");
    frames.send(&get(3, "/1"));
    assert_same(&frames.body(3), &content(1), "behind");
    assert_eq!(kettle.entry("/1").path(), "kernel-write (already_offloaded)");
}

/// A large body is half-way when another response moves the connection.
#[test]
fn a_body_under_way_goes_on_in_the_kernel() {
    let Some(kettle) = Kettle::start_in_kernel(by("kernel-write").sizes(&[10, 1 << 20])) else {
        return;
    };
    let _ = kettle.ctl(&["path", "user"]).succeed();
    let mut frames = Frames::connect(&kettle, &[]);
    frames.send(&get(1, "/1048576"));
    let mut body = Vec::new();
    while body.len() < 65_535 {
        body.extend(frames.next_of(DATA).payload);
    }
    let _ = kettle.ctl(&["path", "auto"]).succeed();
    frames.send(&update(0, WINDOW_MAX - 65_535));
    frames.send(&get(3, "/10"));
    assert_same(&frames.body(3), &content(10), "the one that moves it");
    frames.send(&update(1, 1 << 20));
    body.extend(frames.body(1));
    assert_same(&body, &content(1 << 20), "the one that was under way");
    assert_eq!(kettle.entry("/10").path(), "kernel-write");
    assert_eq!(kettle.entry("/1048576").path(), "kernel-write");
    assert_eq!(kettle.status("/total/switches"), 1);
}

#[test]
fn many_streams_at_once_arrive_whole() {
    let Some(kettle) = Kettle::start_in_kernel(by("kernel-write").sizes(&[100, 16_375, 300_000]))
    else {
        return;
    };
    let streams = scaled(60, 12);
    let output = kettle.folder.path("got/#1-#2").display().to_string();
    let words = ["--http2", "--parallel", "--create-dirs", "--fail", "--output", &output];
    let _ = kettle.curl(&words, &format!("/{{100,16375,300000}}?[1-{streams}]")).succeed();
    for bytes in [100, 16_375, 300_000] {
        for number in 1..=streams {
            let got = std::fs::read(kettle.folder.path(&format!("got/{bytes}-{number}"))).unwrap();
            assert_same(&got, &content(bytes), &format!("{bytes}-{number}"));
            assert_eq!(kettle.entry(&format!("/{bytes}?{number}")).path(), "kernel-write");
        }
    }
    assert_eq!(kettle.status("/total/switches"), 1);
}

#[test]
fn a_client_that_takes_nothing_is_cut() {
    let setup = by("kernel-write").set("limits", "write_timeout = \"1s\"");
    let Some(kettle) = Kettle::start_in_kernel(setup.sizes(&[30 << 20])) else { return };
    let mut frames = begin(Dialer::default().reading_slowly(), &kettle);
    frames.send(&get(1, "/31457280"));
    kettle.wait_for_status("/total/http2_refused/blocked", 1);
    assert_eq!(frames.end().1, End::Cut);
    assert!(!kettle.entry("/31457280").is_complete());
}

#[test]
fn whoever_asks_for_a_new_key_gets_it_or_the_end() {
    let Some(kettle) = Kettle::start_in_kernel(by("kernel-write").sizes(&[70_000])) else { return };
    let mut frames = begin(Dialer::default(), &kettle);
    frames.send(&get(1, "/70000"));
    assert_same(&frames.body(1), &content(70_000), "before");
    frames.client.update_keys();
    frames.send(&get(3, "/70000"));
    if kernel_changes_keys() {
        assert_same(&frames.body(3), &content(70_000), "behind");
        // A connection's changes are counted at its end.
        drop(frames);
        kettle.wait_for_status("/total/kernel_rekeys", 1);
    } else {
        assert_eq!(frames.end(), (vec![], End::Orderly));
    }
}

/// Nothing of it may look whole.
#[test]
fn a_new_key_that_cannot_be_had_cuts_the_response_under_way() {
    if !kernel_tls_or_skip() || kernel_changes_keys() {
        return;
    }
    let kettle = Kettle::start(by("kernel-write").sizes(&[1 << 20]));
    let mut frames = Frames::connect(&kettle, &[]);
    frames.send(&get(1, "/1048576"));
    let mut received_bytes = 0;
    while received_bytes < 65_535 {
        received_bytes += frames.next_of(DATA).payload.len();
    }
    frames.client.update_keys();
    frames.send(b"");
    assert_eq!(frames.end(), (vec![], End::Cut));
    assert!(!kettle.entry("/1048576").is_complete());
}
