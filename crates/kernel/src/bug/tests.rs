//! A bug is counted, told and handed up.

use std::fmt::Debug;
use std::io;
use std::panic::catch_unwind;
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use super::{Bug, BugPlace, TOLD_EACH, counts, panics};

#[test]
fn it_is_an_error_that_says_where_and_is_counted_by_file() {
    fn fails(at: u8) -> Result<(), Bug> {
        match at {
            0 => Err(bug!("none is zero")),
            _ => Err(bug!("none is more")),
        }
    }
    let counted = || counts().get(FILE).copied().unwrap_or_default();
    let before = counted();
    let errors: Vec<io::Error> =
        [0, 0, 1].into_iter().filter_map(|at| fails(at).err()).map(io::Error::from).collect();
    let [first, second, third] = [0, 1, 2].map(|at| errors[at].to_string());
    assert!(first.starts_with(&format!("a bug of kettle: none is zero ({FILE}:")), "{first}");
    assert_eq!(first, second);
    assert!(third.contains("none is more"), "{third}");
    assert!(counted() >= before + 3);
}

#[test]
fn the_log_has_it_once() {
    let log = Log::default();
    let told = Arc::clone(&log.0);
    // Another test may make the message known while nobody listens, and just before it would be asked who does.
    let _ = bug!("nothing is listened to");
    tracing::subscriber::with_default(log, || {
        tracing::callsite::rebuild_interest_cache();
        for _ in 0..3 {
            let _ = bug!("nothing comes twice");
        }
    });
    let told = told.lock().unwrap();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains(&format!("nothing comes twice ({FILE}:")), "{told:?}");
}

#[test]
fn it_is_told_once_a_minute() {
    static PLACE: BugPlace = BugPlace::new("no file", 1, "nothing");
    let told = [0, 1, TOLD_EACH - 1, TOLD_EACH, TOLD_EACH, 2 * TOLD_EACH + 7];
    assert_eq!(told.map(|now| PLACE.is_due(now)), [true, false, false, true, false, true]);
}

#[test]
fn a_test_that_asks_for_it_panics() {
    static PLACE: BugPlace = BugPlace::new("another file", 1, "nothing");
    let panicked = catch_unwind(|| {
        let _panics = panics();
        PLACE.reached()
    });
    assert!(panicked.is_err());
    let _ = PLACE.reached();
    assert_eq!(counts().get("another file"), Some(&2));
}

const FILE: &str = "crates/kernel/src/bug/tests.rs";

/// Keeps what is told.
#[derive(Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Visit for Log {
    fn record_debug(&mut self, _field: &Field, value: &dyn Debug) {
        self.0.lock().unwrap().push(format!("{value:?}"));
    }
}

impl Subscriber for Log {
    fn enabled(&self, _metadata: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _attributes: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut Self(Arc::clone(&self.0)));
    }

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}
}
