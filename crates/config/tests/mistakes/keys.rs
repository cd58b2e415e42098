//! Unknown, misplaced and missing settings.

use crate::{Row, assert_found};

#[test]
fn unknown_settings_are_guessed() {
    assert_found(UNKNOWN_SETTINGS_ARE_GUESSED);
}

#[test]
fn a_setting_in_the_wrong_table_is_sent_to_its_own() {
    assert_found(MISPLACED_SETTINGS);
}

const MISPLACED_SETTINGS: &[Row] = &[
    (
        "[log]
user = \"www\"",
        "kettle.toml:2:1: `user` is not a setting of [log]
 2 | user = \"www\"
   | ^^^^
help: write it below [server]",
    ),
    (
        "[[site]]
names = [\"a\"]
self_signed = true
root = \"/srv\"
[[site.route]]
root = \"/srv\"
hsts = true",
        "kettle.toml:4:1: `root` is not a setting of [[site]]
 4 | root = \"/srv\"
   | ^^^^
help: write it below [[site.route]]
kettle.toml:7:1: `hsts` is not a setting of [[site.route]]
 7 | hsts = true
   | ^^^^
help: write it below [[site]]",
    ),
    (
        "[[route]]
root = \"/srv\"",
        "kettle.toml:1:3: `route` is not a setting of the top level
 1 | [[route]]
   |   ^^^^^
help: write it below [[site]]",
    ),
];

const UNKNOWN_SETTINGS_ARE_GUESSED: &[Row] = &[
    (
        "[server]
worker = 2",
        "kettle.toml:2:1: `worker` is not a setting of [server]
 2 | worker = 2
   | ^^^^^^
help: write workers",
    ),
    (
        "[[site]]
names = [\"a\"]
self_signed = true
[[site.route]]
root = \"/srv\"
try_files = [\"/index.html\"]",
        "kettle.toml:6:1: `try_files` is not a setting of [[site.route]]
 6 | try_files = [\"/index.html\"]
   | ^^^^^^^^^
help: remove it: kettle sends the file, or the `index` of a folder, or else what `fallback` of the route names",
    ),
    (
        "[server]
Workers = 2",
        "kettle.toml:2:1: `Workers` is not a setting of [server]
 2 | Workers = 2
   | ^^^^^^^
help: write workers",
    ),
    (
        "[server]
worker-processes = 2",
        "kettle.toml:2:1: `worker-processes` is not a setting of [server]
 2 | worker-processes = 2
   | ^^^^^^^^^^^^^^^^
help: write workers",
    ),
    (
        r#"[limits]
keepalive_timeout = "1m""#,
        r#"kettle.toml:2:1: `keepalive_timeout` is not a setting of [limits]
 2 | keepalive_timeout = "1m"
   | ^^^^^^^^^^^^^^^^^
help: write idle_timeout"#,
    ),
    (
        "[limit]
headers = 20",
        "kettle.toml:1:2: `limit` is not a setting of the top level
 1 | [limit]
   |  ^^^^^
help: write limits",
    ),
    (
        r#"[admin]
colour = "red""#,
        r#"kettle.toml:2:1: `colour` is not a setting of [admin], which has: socket
 2 | colour = "red"
   | ^^^^^^
help: remove it"#,
    ),
    (
        r#"[[site]]
server_name = ["a"]
self_signed = true
[[site.route]]
root = "/srv""#,
        r#"kettle.toml:2:1: `server_name` is not a setting of [[site]]
 2 | server_name = ["a"]
   | ^^^^^^^^^^^
help: write names"#,
    ),
    (
        r#"colour = "red""#,
        r#"kettle.toml:1:1: `colour` is not a setting of the top level, which has: server, tls, log, admin, metrics, limits, listener, site, backend, cache
 1 | colour = "red"
   | ^^^^^^
help: remove it"#,
    ),
    (
        r#"[[site]]
names = ["a"]
self_signed = true
[[site.location]]
root = "/srv""#,
        "kettle.toml:4:8: `location` is not a setting of [[site]]
 4 | [[site.location]]
   |        ^^^^^^^^
help: write route",
    ),
];

#[test]
fn values_of_misspelt_settings_are_read_as_well() {
    assert_found(VALUES_OF_MISSPELT_SETTINGS_ARE_READ_AS_WELL);
}

const VALUES_OF_MISSPELT_SETTINGS_ARE_READ_AS_WELL: &[Row] = &[
    (
        "[server]
workres = 0",
        "kettle.toml:2:1: `workres` is not a setting of [server]
 2 | workres = 0
   | ^^^^^^^
help: write workers
kettle.toml:2:11: `workers` takes a whole number of workers from 1 to 1024
 2 | workres = 0
   |           ^
help: write 1",
    ),
    (
        r#"[[listner]]
address = ":443"
[[listener]]
address = "0.0.0.0:443""#,
        r#"kettle.toml:1:3: `listner` is not a setting of the top level
 1 | [[listner]]
   |   ^^^^^^^
help: write listener
kettle.toml:2:11: `address` takes an IP address and a port
 2 | address = ":443"
   |           ^^^^^^
help: write "0.0.0.0:443""#,
    ),
];

#[test]
fn required_settings_are_missed() {
    assert_found(REQUIRED_SETTINGS_ARE_MISSED);
}

const REQUIRED_SETTINGS_ARE_MISSED: &[Row] = &[
    (
        "[[listener]]",
        r#"kettle.toml:1:1: [[listener]] needs the setting `address`
 1 | [[listener]]
   | ^^^^^^^^^^^^
help: write address = "0.0.0.0:443""#,
    ),
    (
        r#"[[site]]
self_signed = true
[[site.route]]
root = "/srv""#,
        r#"kettle.toml:1:1: [[site]] needs the setting `names`
 1 | [[site]]
   | ^^^^^^^^
help: write names = ["example.org"]"#,
    ),
    (
        r#"[[site]]
names = ["a"]
self_signed = true
[[site.route]]
listing = true"#,
        r#"kettle.toml:4:1: [[site.route]] needs the setting `root`, or `backend`
 4 | [[site.route]]
   | ^^^^^^^^^^^^^^
help: write root = "/path/to/it""#,
    ),
    (
        r#"[[site]]
names = ["a"]
certificate = [{ chain = "a.pem" }]
[[site.route]]
root = "/srv""#,
        r#"kettle.toml:3:16: [[site.certificate]] needs the setting `key`
 3 | certificate = [{ chain = "a.pem" }]
   |                ^^^^^^^^^^^^^^^^^^^
help: write key = "/path/to/it""#,
    ),
];

#[test]
fn tables_are_tables() {
    assert_found(TABLES_ARE_TABLES);
}

const TABLES_ARE_TABLES: &[Row] = &[
    (
        "server = 4",
        "kettle.toml:1:10: `server` takes a table, not a whole number
 1 | server = 4
   |          ^
help: write [server]",
    ),
    (
        r#"listener = "0.0.0.0:443"
"#,
        r#"kettle.toml:1:12: `listener` takes tables, not a string
 1 | listener = "0.0.0.0:443"
   |            ^^^^^^^^^^^^^
help: write [[listener]]
kettle.toml:3:1: [[listener]] stands above already
 3 | [[listener]]
   | ^^^^^^^^^^^^
help: write its settings there"#,
    ),
    (
        "tls = []",
        "kettle.toml:1:7: `tls` takes a table, not a list
 1 | tls = []
   |       ^^
help: write [tls]",
    ),
    (
        "[[server]]",
        "kettle.toml:1:1: `server` takes a table, not a list
 1 | [[server]]
   | ^^^^^^^^^^
help: write [server]",
    ),
    (
        r#"[[site]]
names = ["a"]
self_signed = true
route = [1]"#,
        "kettle.toml:4:10: `route` takes a table, not a whole number
 4 | route = [1]
   |          ^
help: write [[site.route]]",
    ),
    (
        r#"[[site]]
names = ["a"]
self_signed = true
[site.route]
root = "/srv""#,
        "kettle.toml:4:1: there may be several [site.route], so its header has two brackets
 4 | [site.route]
   | ^^^^^^^^^^^^
help: write [[site.route]]",
    ),
    (
        r#"[[site]]
names = ["a"]
self_signed = true
hsts = true
[[site.route]]
root = "/srv""#,
        "kettle.toml:4:8: `hsts` takes a table, not true or false
 4 | hsts = true
   |        ^^^^
help: write [site.hsts]",
    ),
];
