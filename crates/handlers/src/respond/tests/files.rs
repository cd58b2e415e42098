//! Conditions that ask what is on the disk.

use super::stage::{Server, Stage};

/// A server whose site has these settings. `ROOT` stands for the folder of the stage.
fn server(settings: &str) -> Server {
    let stage = Stage::new().file("a.html", "a").file("b/c", "c").file(".hidden", "no");
    stage.settings(settings).open()
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
