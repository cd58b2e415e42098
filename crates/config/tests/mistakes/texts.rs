//! Addresses, paths, accounts and host names.

use crate::{Row, assert_found};

#[test]
fn addresses_have_a_port() {
    assert_found(ADDRESSES_HAVE_A_PORT);
}

const ADDRESSES_HAVE_A_PORT: &[Row] = &[
    (
        r#"[[listener]]
address = "443""#,
        r#"kettle.toml:2:11: `address` takes an IP address and a port
 2 | address = "443"
   |           ^^^^^
help: write "0.0.0.0:443""#,
    ),
    (
        r#"[[listener]]
address = ":443""#,
        r#"kettle.toml:2:11: `address` takes an IP address and a port
 2 | address = ":443"
   |           ^^^^^^
help: write "0.0.0.0:443""#,
    ),
    (
        r#"[[listener]]
address = "*:443""#,
        r#"kettle.toml:2:11: `address` takes an IP address and a port
 2 | address = "*:443"
   |           ^^^^^^^
help: write "0.0.0.0:443""#,
    ),
    (
        r#"[[listener]]
address = "localhost:8443""#,
        r#"kettle.toml:2:11: `address` takes an IP address and a port
 2 | address = "localhost:8443"
   |           ^^^^^^^^^^^^^^^^
help: write "127.0.0.1:8443""#,
    ),
    (
        r#"[[listener]]
address = "::1""#,
        r#"kettle.toml:2:11: `address` takes an IP address and a port
 2 | address = "::1"
   |           ^^^^^
help: write "[::1]:443""#,
    ),
    (
        r#"[[listener]]
address = "[::1]""#,
        r#"kettle.toml:2:11: `address` takes an IP address and a port
 2 | address = "[::1]"
   |           ^^^^^^^
help: write "[::1]:443""#,
    ),
    (
        r#"[[listener]]
address = "10.0.0.1""#,
        r#"kettle.toml:2:11: `address` takes an IP address and a port
 2 | address = "10.0.0.1"
   |           ^^^^^^^^^^
help: write "10.0.0.1:443""#,
    ),
    (
        r#"[[listener]]
address = "10.0.0.1:0""#,
        r#"kettle.toml:2:11: `address` takes an IP address and a port from 1 to 65535
 2 | address = "10.0.0.1:0"
   |           ^^^^^^^^^^^^
help: write "10.0.0.1:443""#,
    ),
    (
        r#"[[listener]]
address = "example.org:443""#,
        r#"kettle.toml:2:11: `address` takes an IP address and a port
 2 | address = "example.org:443"
   |           ^^^^^^^^^^^^^^^^^
help: write "0.0.0.0:443""#,
    ),
    (
        "[[listener]]
address = 443",
        r#"kettle.toml:2:11: `address` takes an IP address and a port, not a whole number
 2 | address = 443
   |           ^^^
help: write "0.0.0.0:443""#,
    ),
    (
        r#"[[listener]]
address = "10.0.0.256:443""#,
        r#"kettle.toml:2:11: `address` takes an IP address and a port
 2 | address = "10.0.0.256:443"
   |           ^^^^^^^^^^^^^^^^
help: write "0.0.0.0:443""#,
    ),
    (
        r#"[[listener]]
address = "10.0.0.1:70000""#,
        r#"kettle.toml:2:11: `address` takes an IP address and a port from 1 to 65535
 2 | address = "10.0.0.1:70000"
   |           ^^^^^^^^^^^^^^^^
help: write a port that exists behind the last colon"#,
    ),
    (
        "[[listener]]
address = 70000",
        r#"kettle.toml:2:11: `address` takes an IP address and a port, not a whole number
 2 | address = 70000
   |           ^^^^^
help: write the address too, and a port from 1 to 65535: "0.0.0.0:443""#,
    ),
    (
        r#"[[listener]]
address = "[fe80::1%eth0]:443""#,
        r#"kettle.toml:2:11: `address` takes an IP address and a port
 2 | address = "[fe80::1%eth0]:443"
   |           ^^^^^^^^^^^^^^^^^^^^
help: write the number that `ip link` shows for eth0: "[fe80::1%2]:443" for 2"#,
    ),
];

#[test]
fn paths_are_not_empty() {
    assert_found(PATHS_ARE_NOT_EMPTY);
}

const PATHS_ARE_NOT_EMPTY: &[Row] = &[
    (
        r#"[admin]
socket = """#,
        r#"kettle.toml:2:10: `socket` takes a path: it is empty
 2 | socket = ""
   |          ^^
help: write "/path/to/it""#,
    ),
    (
        "[admin]
socket = 3",
        r#"kettle.toml:2:10: `socket` takes a path, not a whole number
 2 | socket = 3
   |          ^
help: write "/path/to/it""#,
    ),
    (
        r#"[admin]
socket = "~/kettle.sock""#,
        r#"kettle.toml:2:10: `socket` takes a path: `~` is not expanded
 2 | socket = "~/kettle.sock"
   |          ^^^^^^^^^^^^^^^
help: write "/home/NAME/kettle.sock""#,
    ),
    (
        "[log]
access = false",
        r#"kettle.toml:2:10: `access` takes a path, not true or false
 2 | access = false
   |          ^^^^^
help: write "off""#,
    ),
    (
        r#"[server]
state_directory = "a\u0000b""#,
        r#"kettle.toml:2:19: `state_directory` takes a path: no path holds a NUL character
 2 | state_directory = "a\u0000b"
   |                   ^^^^^^^^^^
help: write "ab""#,
    ),
];

#[test]
fn accounts_are_names() {
    assert_found(ACCOUNTS_ARE_NAMES);
}

const ACCOUNTS_ARE_NAMES: &[Row] = &[
    (
        r#"[server]
user = "www data""#,
        r#"kettle.toml:2:8: `user` takes the name or number of an account: it cannot be the name of an account
 2 | user = "www data"
   |        ^^^^^^^^^^
help: write the name or number of an account, such as "kettle""#,
    ),
    (
        "[server]
group = 33",
        r#"kettle.toml:2:9: `group` takes the name or number of an account, not a whole number
 2 | group = 33
   |         ^^
help: write "33""#,
    ),
    (
        r#"[server]
user = """#,
        r#"kettle.toml:2:8: `user` takes the name or number of an account: it cannot be the name of an account
 2 | user = ""
   |        ^^
help: write the name or number of an account, such as "kettle""#,
    ),
];

#[test]
fn site_names_are_host_names() {
    assert_found(SITE_NAMES_ARE_HOST_NAMES);
}

const SITE_NAMES_ARE_HOST_NAMES: &[Row] = &[
    (
        r#"[[site]]
names = ["https://example.org/"]
self_signed = true
[[site.route]]
root = "/srv""#,
        r#"kettle.toml:2:10: `names` takes a host name: a site is named by its host name alone, not by a URL
 2 | names = ["https://example.org/"]
   |          ^^^^^^^^^^^^^^^^^^^^^^
help: write "example.org""#,
    ),
    (
        r#"[[site]]
names = ["example.org:443"]
self_signed = true
[[site.route]]
root = "/srv""#,
        r#"kettle.toml:2:10: `names` takes a host name: the port belongs to the listener, not to the name
 2 | names = ["example.org:443"]
   |          ^^^^^^^^^^^^^^^^^
help: write "example.org""#,
    ),
    (
        r#"[[site]]
names = ["www.*.org"]
self_signed = true
[[site.route]]
root = "/srv""#,
        r#"kettle.toml:2:10: `names` takes a host name: `*` may only stand for the whole first label
 2 | names = ["www.*.org"]
   |          ^^^^^^^^^^^
help: write "*.example.org""#,
    ),
    (
        r#"[[site]]
names = ["*"]
self_signed = true
[[site.route]]
root = "/srv""#,
        r#"kettle.toml:2:10: `names` takes a host name: every name that no other site has is `_`
 2 | names = ["*"]
   |          ^^^
help: write "_""#,
    ),
    (
        r#"[[site]]
names = ["example.org."]
self_signed = true
[[site.route]]
root = "/srv""#,
        r#"kettle.toml:2:10: `names` takes a host name: clients leave out the dot at the end
 2 | names = ["example.org."]
   |          ^^^^^^^^^^^^^^
help: write "example.org""#,
    ),
    (
        r#"[[site]]
names = ["bücher.example"]
self_signed = true
[[site.route]]
root = "/srv""#,
        r#"kettle.toml:2:10: `names` takes a host name: names outside ASCII are written in their xn-- form
 2 | names = ["bücher.example"]
   |          ^^^^^^^^^^^^^^^^
help: write a host name, such as "example.org""#,
    ),
    (
        r#"[[site]]
names = ["a..b"]
self_signed = true
[[site.route]]
root = "/srv""#,
        r#"kettle.toml:2:10: `names` takes a host name: a dot stands between two labels
 2 | names = ["a..b"]
   |          ^^^^^^
help: write a host name, such as "example.org""#,
    ),
    (
        r#"[[site]]
names = ["-a.example"]
self_signed = true
[[site.route]]
root = "/srv""#,
        r#"kettle.toml:2:10: `names` takes a host name: `-a` is not a label of a host name
 2 | names = ["-a.example"]
   |          ^^^^^^^^^^^^
help: write a host name, such as "example.org""#,
    ),
    (
        r#"[[site]]
names = [""]
self_signed = true
[[site.route]]
root = "/srv""#,
        r#"kettle.toml:2:10: `names` takes a host name: a host name has 1 to 253 characters
 2 | names = [""]
   |          ^^
help: write a host name, such as "example.org""#,
    ),
    (
        r#"[[site]]
names = [7]
self_signed = true
[[site.route]]
root = "/srv""#,
        r#"kettle.toml:2:10: `names` takes a host name, not a whole number
 2 | names = [7]
   |          ^
help: write "7""#,
    ),
    (
        r#"[[site]]
names = ["a", "A"]
self_signed = true
[[site.route]]
root = "/srv""#,
        r#"kettle.toml:2:15: "a" stands twice in `names`
 2 | names = ["a", "A"]
   |               ^^^
help: remove one of both"#,
    ),
];

#[test]
fn site_names_are_a_list() {
    assert_found(SITE_NAMES_ARE_A_LIST);
}

const SITE_NAMES_ARE_A_LIST: &[Row] = &[
    (
        r#"[[site]]
names = "example.org"
self_signed = true
[[site.route]]
root = "/srv""#,
        r#"kettle.toml:2:9: `names` takes a list, each entry a host name, not a string
 2 | names = "example.org"
   |         ^^^^^^^^^^^^^
help: write ["example.org"]"#,
    ),
    (
        r#"[[site]]
names = []
self_signed = true
[[site.route]]
root = "/srv""#,
        r#"kettle.toml:2:9: `names` needs at least one entry
 2 | names = []
   |         ^^
help: write ["example.org"]"#,
    ),
];

#[test]
fn networks_have_an_address_and_a_prefix() {
    assert_found(NETWORKS_HAVE_AN_ADDRESS_AND_A_PREFIX);
}

const NETWORKS_HAVE_AN_ADDRESS_AND_A_PREFIX: &[Row] = &[
    (
        r#"[[listener]]
address = "0.0.0.0:443"
accept_proxy = "10.0.0.0/8""#,
        r#"kettle.toml:3:16: `accept_proxy` takes a list, each entry a network, not a string
 3 | accept_proxy = "10.0.0.0/8"
   |                ^^^^^^^^^^^^
help: write ["10.0.0.0/8"]"#,
    ),
    (
        r#"[[listener]]
address = "0.0.0.0:443"
accept_proxy = ["::ffff:192.0.2.0/120"]"#,
        r#"kettle.toml:3:17: `accept_proxy` takes a network: it is an IPv4 address in the form of IPv6
 3 | accept_proxy = ["::ffff:192.0.2.0/120"]
   |                 ^^^^^^^^^^^^^^^^^^^^^^
help: write "192.0.2.0/24""#,
    ),
    (
        r#"[[listener]]
address = "0.0.0.0:443"
accept_proxy = ["10.0.0.1/8", "fd00::/129", "balancer", "::/-1"]"#,
        r#"kettle.toml:3:17: `accept_proxy` takes a network: bits behind the prefix are set
 3 | accept_proxy = ["10.0.0.1/8", "fd00::/129", "balancer", "::/-1"]
   |                 ^^^^^^^^^^^^
help: write "10.0.0.0/8"
kettle.toml:3:31: `accept_proxy` takes a network: behind the slash stands a number from 0 to 128
 3 | accept_proxy = ["10.0.0.1/8", "fd00::/129", "balancer", "::/-1"]
   |                               ^^^^^^^^^^^^
help: write a network, such as "10.0.0.0/8"
kettle.toml:3:45: `accept_proxy` takes a network: it begins with an IP address
 3 | accept_proxy = ["10.0.0.1/8", "fd00::/129", "balancer", "::/-1"]
   |                                             ^^^^^^^^^^
help: write a network, such as "10.0.0.0/8"
kettle.toml:3:57: `accept_proxy` takes a network: behind the slash stands a number from 0 to 128
 3 | accept_proxy = ["10.0.0.1/8", "fd00::/129", "balancer", "::/-1"]
   |                                                         ^^^^^^^
help: write a network, such as "10.0.0.0/8""#,
    ),
];

#[test]
fn what_checks_ask_for_can_stand_in_a_request() {
    assert_found(WHAT_CHECKS_ASK_FOR_CAN_STAND_IN_A_REQUEST);
}

const WHAT_CHECKS_ASK_FOR_CAN_STAND_IN_A_REQUEST: &[Row] = &[
    (
        r#"[[backend]]
name = "app"
server = [{ address = "127.0.0.1:80" }]
check = { kind = "http", path = "/health?full=1&name=a%20b" }"#,
        r#"nothing"#,
    ),
    (
        r#"[[backend]]
name = "app"
server = [{ address = "127.0.0.1:80" }]
check = { kind = "http", path = "/well done?a=ü" }"#,
        r#"kettle.toml:4:33: `path` takes a path that begins with a slash, with or without a query: a request line holds visible ASCII only
 4 | check = { kind = "http", path = "/well done?a=ü" }
   |                                 ^^^^^^^^^^^^^^^^
help: write its bytes as %XX: `%20` is a space"#,
    ),
    (
        r#"[[backend]]
name = "app"
server = [{ address = "127.0.0.1:80" }]
check = { kind = "http", path = "health" }"#,
        r#"kettle.toml:4:33: `path` takes a path that begins with a slash, with or without a query: the path of a request always begins with a slash
 4 | check = { kind = "http", path = "health" }
   |                                 ^^^^^^^^
help: write "/health""#,
    ),
    (
        r#"[[backend]]
name = "app"
server = [{ address = "127.0.0.1:80" }]
check = { kind = "http", path = "/a#b" }"#,
        r#"kettle.toml:4:33: `path` takes a path that begins with a slash, with or without a query: a fragment is not sent to servers
 4 | check = { kind = "http", path = "/a#b" }
   |                                 ^^^^^^
help: write "/a""#,
    ),
    (
        r#"[[backend]]
name = "app"
server = [{ address = "127.0.0.1:80" }]
check = { kind = "http", path = "/100%" }"#,
        r#"kettle.toml:4:33: `path` takes a path that begins with a slash, with or without a query: two digits stand behind `%`
 4 | check = { kind = "http", path = "/100%" }
   |                                 ^^^^^^^
help: write `%25` for a `%` itself"#,
    ),
    (
        r#"[[backend]]
name = "app"
server = [{ address = "127.0.0.1:80" }]
check = { kind = "http", host = "*" }"#,
        r#"kettle.toml:4:33: `host` takes a host name, with or without a port: a request is for one name
 4 | check = { kind = "http", host = "*" }
   |                                 ^^^
help: write "example.org""#,
    ),
];
