//! Conditions that ask what is on the disk.

use std::fs;
use std::time::Duration;

use kettle_config::parse;

use super::stage::{Server, Stage};

/// A server whose site has these settings. `ROOT` stands for the folder of the stage.
fn server(settings: &str) -> Server {
    let stage = Stage::new().file("a.html", "a").file("page.html", "page").file("b/c", "c");
    let stage = stage.file(".hidden", "no").file("up/x", "x");
    let folder = stage.folder.path().join("root");
    let text = format!(
        "[[listener]]\naddress = \"127.0.0.1:8443\"\n[[site]]\nnames = [\"localhost\"]\n\
         self_signed = true\n{settings}\n"
    );
    let text = text.replace("ROOT", &folder.display().to_string());
    let site = parse(&text, "kettle.toml".as_ref()).unwrap().sites.remove(0);
    stage.site(|own| *own = site).open()
}

async fn answer(server: &Server, target: &str) -> (u16, String) {
    let reply = server.get(target, &[]).await;
    (reply.status, reply.text().to_owned())
}

#[tokio::test]
async fn a_file_or_a_folder_is_there_or_not() {
    for (kind, there) in [
        ("file", ["/a.html", "/b/c"].as_slice()),
        ("folder", &["/", "/b", "/b/"]),
        ("any", &["/", "/a.html", "/b", "/b/", "/b/c"]),
    ] {
        for not in [false, true] {
            let server = server(&format!(
                "[[site.route]]\nroot = \"ROOT\"\nwhen = [{{ file = \"{kind}\", not = {not} }}]\n\
                 redirect = [{{ to = \"/held\" }}]\n\
                 [[site.route]]\nrespond = {{ body = \"else\" }}\n"
            ));
            for target in
                ["/", "/a.html", "/a.html/", "/b", "/b/", "/b/c", "/b/d", "/.hidden", "/none/x"]
            {
                let holds = there.contains(&target) != not;
                let status = if holds { 302 } else { 200 };
                assert_eq!(answer(&server, target).await.0, status, "{kind} {not} {target}");
            }
        }
    }
}

#[tokio::test]
async fn front_controllers_and_maintenance_are_said_before_routes() {
    let server = server(
        r#"
        [[site.before]]
        when = [{ file = "file", file_root = "ROOT", file_path = "/.closed" }]
        respond = { status = 503 }
        [[site.before]]
        when = [{ file = "file", file_root = "ROOT", file_path = "{path}.html" }]
        rewrite = [{ regex = "^/(.*)$", to = "/{1}.html" }]
        [[site.before]]
        when = [{ file = "any", file_root = "ROOT", not = true }]
        rewrite = [{ to = "/a.html" }]
        [[site.route]]
        root = "ROOT"
        [[site.route]]
        regex = '^/u(p)/(x|y)'
        when = [{ file = "file", file_root = "ROOT", file_path = "/u{1}/{2}" }]
        respond = { body = "group" }
        "#,
    );
    for (target, body) in
        [("/page", "page"), ("/b/c", "c"), ("/nothing", "a"), ("/up/x", "group"), ("/up/y", "a")]
    {
        assert_eq!(answer(&server, target).await, (200, body.to_owned()), "{target}");
    }
    // A finding is remembered for a while, and then looked for anew.
    fs::write(server.path(".closed"), "").unwrap();
    assert_eq!(answer(&server, "/b/c").await.0, 200);
    server.clock.pass(Duration::from_secs(3_600));
    assert_eq!(answer(&server, "/b/c").await.0, 503);
    fs::remove_file(server.path(".closed")).unwrap();
    server.clock.pass(Duration::from_secs(3_600));
    assert_eq!(answer(&server, "/b/c").await.0, 200);
}

#[tokio::test]
async fn a_folder_stands_for_the_beginning_of_a_path() {
    let server = server(
        "[[site.route]]\nprefix = \"/other\"\n\
         when = [{ file = \"file\", file_root = \"ROOT\", file_prefix = \"/other/place\" }]\n\
         redirect = [{ to = \"/there\" }]\n[[site.route]]\nrespond = { body = \"else\" }\n",
    );
    for (target, status) in [
        ("/other/place/b/c", 302),
        ("/other/place/../place/a.html", 302),
        ("/other/place/b/d", 200),
        ("/other/place/other/place/b/c", 200),
        ("/other/place", 200),
        ("/other/placeb/c", 200),
        ("/other/b/c", 200),
        ("/b/c", 200),
    ] {
        assert_eq!(answer(&server, target).await.0, status, "{target}");
    }
}

/// A file found by a rewrite is looked for by the path that the rewrite made.
#[tokio::test]
async fn conditions_are_asked_of_the_path_that_a_rewrite_made() {
    let server = server(
        r#"
        [[site.route]]
        prefix = "/go"
        rewrite = [{ from = "/go/*", to = "/{1}" }]
        [[site.route]]
        root = "ROOT"
        when = [{ file = "file" }]
        [[site.route]]
        respond = { body = "else" }
        "#,
    );
    for (target, body) in [("/go/a.html", "a"), ("/go/none", "else"), ("/a.html", "a")] {
        assert_eq!(answer(&server, target).await, (200, body.to_owned()), "{target}");
    }
}
