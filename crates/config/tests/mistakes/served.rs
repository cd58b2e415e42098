//! Which listener serves which site.

use crate::{Row, assert_found};

#[test]
fn what_a_listener_names_can_be_served_there() {
    assert_found(CAN_BE_SERVED);
}

const CAN_BE_SERVED: &[Row] = &[
    (
        r#"[[listener]]
address = "127.0.0.1:80"
kind = "http"
sites = ["a", "exampel.org", "_"]
[[listener]]
address = "127.0.0.1:443"
sites = ["a", "b"]
[[listener]]
address = "127.0.0.1:81"
kind = "http"
sites = ["b", "c"]
[[site]]
names = ["example.org", "a"]
[[site.route]]
root = "/srv"
[[site]]
names = ["b"]
self_signed = true
[site.client_auth]
roots = "/srv/a.pem"
[[site.route]]
root = "/srv"
[[site]]
names = ["c"]
backend = "x"
[[backend]]
name = "x"
[[backend.server]]
address = "127.0.0.1:1"
"#,
        r#"kettle.toml:4:15: no [[site]] is named "exampel.org"
 4 | sites = ["a", "exampel.org", "_"]
   |               ^^^^^^^^^^^^^
help: write "example.org"
kettle.toml:4:30: no site is the default one
 4 | sites = ["a", "exampel.org", "_"]
   |                              ^^^
help: write default = true in the [[site]] that is meant
kettle.toml:7:10: the site has no certificate
 7 | sites = ["a", "b"]
   |          ^^^
help: give it a [[site.certificate]], or name it on a listener with kind = "http"
kettle.toml:11:10: the site asks clients for certificates, which cannot be shown over plain HTTP
 11 | sites = ["b", "c"]
    |          ^^^
help: remove it: clients that ask for it are sent to HTTPS
kettle.toml:11:15: the site has no route, so nothing answers here
 11 | sites = ["b", "c"]
    |               ^^^
help: give it a [[site.route]], or remove it
kettle.toml:25:11: no listener carries connections for this site to a backend
 25 | backend = "x"
    |           ^^^
help: write [[listener]] with kind = "tls", or remove `backend`"#,
    ),
    (
        r#"[[listener]]
address = "127.0.0.1:80"
kind = "http"
sites = ["a", "b"]
[[listener]]
address = "127.0.0.1:443"
[[cache]]
name = "c"
directory = "/srv/c"
size = "1 GiB"
[[backend]]
name = "x"
[[backend.server]]
address = "127.0.0.1:1"
[[site]]
names = ["a"]
[[site.route]]
root = "/srv"
[[site]]
names = ["a"]
self_signed = true
[[site.route]]
root = "/srv"
[[site]]
names = ["b"]
[site.hsts]
[[site.route]]
backend = "x"
[site.route.cache]
store = "c"
[[site]]
names = ["b"]
self_signed = true
[[site.route]]
backend = "x"
[site.route.cache]
store = "c"
[[site]]
names = ["a"]
self_signed = true
[[site.route]]
root = "/srv"
"#,
        r#"kettle.toml:26:1: the site has no certificate, so `hsts` is for nobody
 26 | [site.hsts]
    | ^^^^^^^^^^^
help: give it a [[site.certificate]], or remove this
kettle.toml:32:10: "b" is also a name of the site on line 25, and both keep responses in the cache "c" by their URLs
 32 | names = ["b"]
    |          ^^^
help: give the routes of one of both another [[cache]]
kettle.toml:39:10: the site on line 20 is named "a" already
 39 | names = ["a"]
    |          ^^^
help: remove one of both, or name each on listeners of its own, by `sites`"#,
    ),
];
