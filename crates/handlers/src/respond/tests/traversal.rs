//! Whatever a target is made of, nothing outside the root and nothing hidden comes back.

use std::fs;
use std::os::unix::fs::symlink;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::stage::Stage;

const PIECES: [&str; 22] = [
    "/",
    "//",
    ".",
    "..",
    "%2e",
    "%2E%2e",
    "%252e",
    "%2f",
    "%5c",
    "\\",
    "a",
    "sub",
    "up",
    "out",
    "secret",
    ".git",
    "config",
    "%c0%ae",
    "index.html",
    "%00",
    ";",
    "~",
];

#[test]
fn no_target_reaches_a_secret() {
    let stage = Stage::new()
        .file("a", "public")
        .file("sub/index.html", "public")
        .file(".git/config", "secret")
        .route(|route| route.listing = true);
    fs::write(stage.folder.path().join("secret"), "secret").unwrap();
    symlink("..", stage.folder.path().join("root/up")).unwrap();
    symlink("../secret", stage.folder.path().join("root/out")).unwrap();
    let server = stage.open();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let pieces = prop::collection::vec(prop::sample::select(PIECES.to_vec()), 0..12);
    let outcome = TestRunner::new(Config::with_cases(2000)).run(&pieces, |pieces| {
        let target = format!("/{}", pieces.concat());
        let reply = runtime.block_on(server.get(&target, &["Accept: application/json"]));
        prop_assert_ne!(reply.text(), "secret", "{}", target);
        for hidden in [".git", "up", "out", "root", "config"] {
            let listed = format!("\"name\":\"{hidden}\"");
            prop_assert!(!reply.text().contains(&listed), "{} lists {}", target, hidden);
        }
        prop_assert!(reply.status < 500, "{}", target);
        Ok(())
    });
    outcome.unwrap();
}
