//! Reloads that change a store while objects arrive in it: there is one store for a folder, whatever it is called.

use super::*;

#[test]
fn what_was_asked_for_before_a_purge_does_not_come_back_by_a_reload() {
    // Another size; another name; taken out, and put back.
    for changes in [
        &[("size = \"10 MiB\"", "size = \"12 MiB\"")][..],
        &[("name = \"main\"", "name = \"other\""), ("store = \"main\"", "store = \"other\"")],
        &[
            ("[site.route.cache]\nstore = \"main\"", "# out"),
            ("# out", "[site.route.cache]\nstore = \"main\""),
        ],
    ] {
        let mut cached = Cached::with_store("", "size = \"10 MiB\"");
        let mut first = cached.kettle.ask(&get("/app/x"));
        let mut old = cached.backend.accept_request();
        old.write_all(ok_head(FRESH, 200_000).as_bytes()).unwrap();
        old.write_all(&[b'1'; 100_000]).unwrap();
        first.response_head();
        let is_renaming = changes[0].0.starts_with("name");
        for (from, to) in changes {
            cached.kettle.folder.change_config(from, to);
            if !is_renaming {
                let _ = cached.kettle.ctl(&["reload"]).succeed();
            }
        }
        if is_renaming {
            let _ = cached.kettle.ctl(&["reload"]).succeed();
        }
        cached.purge(&["https://localhost/app/x"]);
        let mut second = cached.kettle.ask(&get("/app/x"));
        answer(&mut cached.backend.accept(), &ok(FRESH, "new"));
        assert_eq!(second.response().body, b"new");
        cached.wait_until_kept("/app/x");
        old.write_all(&[b'1'; 100_000]).unwrap();
        assert_eq!(first.receive_exactly(200_000), [b'1'; 200_000]);
        cached.kettle.restart();
        let kept = cached.hit("/app/x");
        assert_eq!(kept.body, b"new", "{changes:?}");
    }
}

/// An object that arrives has the store, and a configuration that names its folder again gets the same.
#[test]
fn a_purge_reaches_a_store_that_a_reload_left_out() {
    let cached = Cached::start("");
    cached.keep("/app/x", FRESH, "old");
    let mut first = cached.kettle.ask(&get("/app/slow"));
    let mut server = cached.backend.next_request();
    let store =
        format!("[[cache]]\nname = \"main\"\ndirectory = \"{}\"", cached.folder.path().display());
    let changes = [("[site.route.cache]\nstore = \"main\"", "# no route"), (&*store, "# no store")];
    let reload = || _ = cached.kettle.ctl(&["reload"]).succeed();
    changes.iter().for_each(|(from, to)| cached.kettle.folder.change_config(from, to));
    reload();
    cached.purge(&["https://localhost/app/x"]);
    changes.iter().for_each(|(from, to)| cached.kettle.folder.change_config(to, from));
    reload();
    let mut second = cached.kettle.ask(&get("/app/x"));
    answer(&mut cached.backend.accept(), &ok(FRESH, "new"));
    assert_eq!(second.response().body, b"new");
    server.write_all(ok(FRESH, "slow").as_bytes()).unwrap();
    assert_eq!(first.response().body, b"slow");
}

#[test]
fn what_differed_by_a_field_before_a_reload_is_one_for_all_after_its_time() {
    let cached = Cached::start("vary = [\"accept-language\"]");
    let fields = "Cache-Control: max-age=1\r\nVary: Accept-Language\r\n";
    cached.get_through("/app/x", "Accept-Language: de\r\n", &ok(fields, "de"));
    // One for the variant, one for what says by which field there are some.
    cached.wait_for_objects(2);
    cached.kettle.reload_with("vary = [\"accept-language\"]", "vary = []");
    let ask = || {
        let french = "Accept-Language: fr\r\n";
        cached.get_through("/app/x", french, &ok(FRESH, "all")).0
    };
    wait_until("it is kept", || status(&ask()) == "kettle; fwd=uri-miss; stored");
    let spanish = || cached.ask("GET", "/app/x", "Accept-Language: es\r\n");
    wait_until("all get it", || status(&spanish()).starts_with("kettle; hit"));
    assert_eq!(spanish().body, b"all");
}

#[test]
fn what_was_coded_before_a_reload_is_plain_for_all_after_it() {
    let cached = Cached::start("vary = [\"accept-encoding\"]");
    let coded = format!("{FRESH}Content-Encoding: gzip\r\nVary: Accept-Encoding\r\n");
    cached.get_through("/app/x", "Accept-Encoding: gzip\r\n", &ok(&coded, "coded"));
    cached.wait_for_objects(2);
    cached.kettle.reload_with("vary = [\"accept-encoding\"]", "vary = []");
    let (plain, head) =
        cached.get_through("/app/x", "Accept-Encoding: br\r\n", &ok(FRESH, "plain"));
    assert_eq!((&*plain.body, status(&plain)), (&b"plain"[..], "kettle; fwd=uri-miss; stored"));
    assert!(!head.contains("accept-encoding"), "{head}");
}
