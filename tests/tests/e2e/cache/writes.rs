//! The effect of writes and purges on what is kept: nothing is left, however long the URL is, and wherever the store is
//! meanwhile.

use super::*;

/// Each request comes on a connection of its own.
const FRESH: &str = "Connection: close\r\nCache-Control: max-age=100\r\n";

/// With room for targets that are longer than most.
fn start() -> Cached {
    let limits = "revalidate = \"0s\"\ntarget = \"32 KiB\"\nhead = \"64 KiB\"";
    Cached::set_up(Setup::default().set("limits", limits), "", "", "")
}

fn write(cached: &Cached, target: &str) {
    cached.write(target);
}

/// Targets whose URLs have lengths about 8 KiB, and one much longer.
fn long_targets() -> impl Iterator<Item = String> {
    [8_191, 8_192, 8_193, 30_000].into_iter().map(|bytes| {
        let start = "https://localhost/app/?";
        format!("/app/?{}", "x".repeat(bytes - start.len()))
    })
}

#[test]
fn what_was_asked_for_before_a_write_is_not_kept_behind_it_however_long_its_url_is() {
    let cached = start();
    for target in long_targets() {
        let mut first = cached.kettle.ask(&get(&target));
        let mut old = cached.backend.accept_request();
        write(&cached, &target);
        old.write_all(ok(FRESH, "old").as_bytes()).unwrap();
        assert_eq!(first.response().body, b"old");
        cached.keep(&target, FRESH, "new");
        let url = format!("https://localhost{target}");
        let purged = cached.kettle.ctl(&["cache", "purge", &url]).succeed();
        assert!(purged.contains("(1 files)"), "{purged}");
    }
}

#[test]
fn what_a_304_keeps_from_others_comes_anew_however_long_its_url_is() {
    let cached = start();
    let stale = "Connection: close\r\nCache-Control: max-age=0\r\nETag: \"v1\"\r\n";
    let other = "HTTP/1.1 304 Not Modified\r\nConnection: close\r\nETag: \"v2\"\r\nCache-Control: max-age=9\r\n\r\n";
    for target in long_targets() {
        cached.fetch(&target, stale, "old");
        let mut client = cached.kettle.ask(&get(&target));
        answer(&mut cached.backend.accept(), other);
        answer(&mut cached.backend.accept(), &ok(FRESH, "new"));
        assert_eq!(client.response().body, b"new", "{}", target.len());
    }
}

#[test]
fn what_is_written_to_while_the_store_is_away_is_gone_when_it_is_back() {
    let mut cached = start();
    for target in ["/app/written", "/app/other"] {
        cached.keep(target, FRESH, "old");
    }
    cached.kettle.restart();
    let folder = cached.folder.path();
    let away = cached.folder.path().with_extension("away");
    std::fs::rename(folder, &away).unwrap();
    write(&cached, "/app/written");
    std::fs::rename(&away, folder).unwrap();
    // Has the store opened without the minute between two tries.
    let _ = cached.kettle.ctl(&["reload"]).succeed();
    cached.fetch("/app/written", FRESH, "new");
    assert_eq!(cached.get("/app/other").body, b"old");
}

#[test]
fn what_is_kept_behind_a_rewrite_is_purged_by_the_path_that_its_backend_gets() {
    let rewrite = "rewrite = [{ from = \"/app/short/*\", to = \"/app/long/{1}\" }]";
    let cached = Cached::of_route(rewrite);
    cached.fetch("/app/short/x", FRESH, "old");
    cached.wait_until_kept("/app/long/x");
    let purge = |path: &str| {
        let url = format!("https://localhost{path}");
        cached.kettle.ctl(&["cache", "purge", &url]).succeed()
    };
    assert!(purge("/app/short/x").contains("nothing was kept"));
    assert!(purge("//app//long/x").contains("(1 files)"));
}

/// Conditions alone tell the route that takes a write from the one that is read from.
#[test]
fn a_write_that_another_route_takes_leaves_nothing_of_what_it_was_about() {
    let other = "[[site.route]]\nprefix = \"/app\"\nbackend = \"app\"";
    let by_method = Cached::with_all("when = [{ method = [\"GET\"] }]", "", other);
    let by_cookie = Cached::of_route(&format!("when = [{{ cookie = \"session\" }}]\n{other}"));
    for cached in [by_method, by_cookie] {
        cached.keep("/app/x", FRESH, "old");
        let write = request("POST", "/app/x", "Content-Length: 0\r\nCookie: session=1\r\n");
        let mut client = cached.kettle.ask(&write);
        cached.backend.answer(&ok("", "done"));
        let done = client.response();
        assert_eq!((&done.body[..], done.header("cache-status")), (&b"done"[..], None));
        cached.fetch("/app/x", FRESH, "new");
    }
}
