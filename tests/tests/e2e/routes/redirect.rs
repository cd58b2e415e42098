//! Clients that are sent elsewhere, and files that are found under other names.

use super::*;

#[test]
fn the_guard_of_another_route_is_asked_where_a_rewrite_leads_to_it() {
    let settings = "rewrite = [{ from = \"/download/**\", to = \"/{1}\" }]";
    let guarded = "[[site.route]]\nprefix = \"/private\"\nroot = \"www/private\"\n\
                   deny = [\"0.0.0.0/0\", \"::/0\"]\n";
    let setup = Setup::default().route(settings).more(guarded);
    let setup = setup.file("www/a", "content").file("www/private/secret", "secret");
    let kettle = Kettle::start(setup);
    let mut client = kettle.connect(TLS13_AES_128);
    assert_eq!(client.get("/download/a").body, b"content");
    assert_eq!(client.get("/private/secret").status, 403);
    for around in ["/download/private/secret", "/download//private/./secret", "/download/private"] {
        assert_eq!(client.get(around).status, 403, "{around}");
    }
}
