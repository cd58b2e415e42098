//! Headers, error pages, and the settings of routes.

use crate::{Row, assert_found};

#[test]
fn headers_cannot_be_split() {
    assert_found(HEADERS_CANNOT_BE_SPLIT);
}

const HEADERS_CANNOT_BE_SPLIT: &[Row] = &[
    (
        r#"[[site]]
names = ["a"]
self_signed = true
headers = { "X-A:" = "1" }
[[site.route]]
root = "/srv""#,
        r#"kettle.toml:4:13: each key of `headers` is a header name: it has only letters, digits and !#$%&'*+-.^_`|~
 4 | headers = { "X-A:" = "1" }
   |             ^^^^^^
help: write X-A"#,
    ),
    (
        r#"[[site]]
names = ["a"]
self_signed = true
headers = { "X A" = "1" }
[[site.route]]
root = "/srv""#,
        r#"kettle.toml:4:13: each key of `headers` is a header name: it has only letters, digits and !#$%&'*+-.^_`|~
 4 | headers = { "X A" = "1" }
   |             ^^^^^
help: write X-A"#,
    ),
    (
        r#"[[site]]
names = ["a"]
self_signed = true
headers = { X-A = "1\r\nSet-Cookie: a=b" }
[[site.route]]
root = "/srv""#,
        r#"kettle.toml:4:19: `X-A` takes a header value: a header value is one line without control characters
 4 | headers = { X-A = "1\r\nSet-Cookie: a=b" }
   |                   ^^^^^^^^^^^^^^^^^^^^^^
help: write "1 Set-Cookie: a=b""#,
    ),
    (
        r#"[[site]]
names = ["a"]
self_signed = true
headers = { X-A = "a\u0000" }
[[site.route]]
root = "/srv""#,
        r#"kettle.toml:4:19: `X-A` takes a header value: a header value is one line without control characters
 4 | headers = { X-A = "a\u0000" }
   |                   ^^^^^^^^^
help: write "a""#,
    ),
    (
        r#"[[site]]
names = ["a"]
self_signed = true
headers = { X-A = " a" }
[[site.route]]
root = "/srv""#,
        r#"kettle.toml:4:19: `X-A` takes a header value: spaces around a header value are not sent
 4 | headers = { X-A = " a" }
   |                   ^^^^
help: write "a""#,
    ),
    (
        r#"[[site]]
names = ["a"]
self_signed = true
headers = { X-A = 1 }
[[site.route]]
root = "/srv""#,
        r#"kettle.toml:4:19: `X-A` takes a header value, not a whole number
 4 | headers = { X-A = 1 }
   |                   ^
help: write "1""#,
    ),
    (
        r#"[[site]]
names = ["a"]
self_signed = true
headers = { X-A = ["1", 2] }
[[site.route]]
root = "/srv""#,
        r#"kettle.toml:4:25: `X-A` takes a header value, not a whole number
 4 | headers = { X-A = ["1", 2] }
   |                         ^
help: write "2""#,
    ),
    (
        r#"[[site]]
names = ["a"]
self_signed = true
headers = { Content-Length = "1", age = "0" }
[[site.route]]
root = "/srv""#,
        r#"kettle.toml:4:13: each key of `headers` is a header name: kettle writes this header itself, to fit each response
 4 | headers = { Content-Length = "1", age = "0" }
   |             ^^^^^^^^^^^^^^
help: remove it
kettle.toml:4:35: each key of `headers` is a header name: kettle writes this header itself, to fit each response
 4 | headers = { Content-Length = "1", age = "0" }
   |                                   ^^^
help: remove it"#,
    ),
    (
        r#"[[site]]
names = ["a"]
self_signed = true
headers = { Content-Type = "text/html" }
[[site.route]]
root = "/srv""#,
        r#"kettle.toml:4:13: each key of `headers` is a header name: the type follows from the extension of the file
 4 | headers = { Content-Type = "text/html" }
   |             ^^^^^^^^^^^^
help: write it in the table `mime` of the route"#,
    ),
    (
        r#"[[site]]
names = ["a"]
self_signed = true
headers = { X-A = "1", x-a = "2" }
[[site.route]]
root = "/srv""#,
        r#"kettle.toml:4:24: `x-a` and `X-A` are the same header
 4 | headers = { X-A = "1", x-a = "2" }
   |                        ^^^
help: write X-A = ["…", "…"]"#,
    ),
];

#[test]
fn error_pages_are_for_errors() {
    assert_found(ERROR_PAGES_ARE_FOR_ERRORS);
}

const ERROR_PAGES_ARE_FOR_ERRORS: &[Row] = &[
    (
        r#"[[site]]
names = ["a"]
self_signed = true
error_pages = { 200 = "a" }
[[site.route]]
root = "/srv""#,
        r#"kettle.toml:4:17: each key of `error_pages` is an error status from 400 to 599: only responses of these statuses have an error page
 4 | error_pages = { 200 = "a" }
   |                 ^^^
help: write an error status from 400 to 599, such as 404"#,
    ),
    (
        r#"[[site]]
names = ["a"]
self_signed = true
error_pages = { "4xx" = "a" }
[[site.route]]
root = "/srv""#,
        r#"kettle.toml:4:17: each key of `error_pages` is an error status from 400 to 599: only responses of these statuses have an error page
 4 | error_pages = { "4xx" = "a" }
   |                 ^^^^^
help: write an error status from 400 to 599, such as 404"#,
    ),
    (
        r#"[[site]]
names = ["a"]
self_signed = true
error_pages = { 404 = 1 }
[[site.route]]
root = "/srv""#,
        r#"kettle.toml:4:23: `error_pages` takes a path, not a whole number
 4 | error_pages = { 404 = 1 }
   |                       ^
help: write "/path/to/it""#,
    ),
];

#[test]
fn routes_have_rules() {
    assert_found(ROUTES_HAVE_RULES);
}

const ROUTES_HAVE_RULES: &[Row] = &[
    (
        r#"[[site]]
names = ["a"]
self_signed = true
[[site.route]]
root = "/srv"
prefix = "img""#,
        r#"kettle.toml:6:10: `prefix` takes a path that begins with a slash: the path of a request always begins with a slash
 6 | prefix = "img"
   |          ^^^^^
help: write "/img""#,
    ),
    (
        r#"[[site]]
names = ["a"]
self_signed = true
[[site.route]]
root = "/srv"
prefix = "/img/*""#,
        r#"kettle.toml:6:10: `prefix` takes a path that begins with a slash: a prefix needs no `*` at its end
 6 | prefix = "/img/*"
   |          ^^^^^^^^
help: write "/img/""#,
    ),
    (
        r#"[[site]]
names = ["a"]
self_signed = true
[[site.route]]
root = "/srv"
prefix = "/a%20b""#,
        r#"kettle.toml:6:10: `prefix` takes a path that begins with a slash: requests are compared after decoding
 6 | prefix = "/a%20b"
   |          ^^^^^^^^
help: write the character itself in place of each %XX"#,
    ),
    (
        r#"[[site]]
names = ["a"]
self_signed = true
[[site.route]]
root = "/srv"
prefix = "/a/../b""#,
        r#"kettle.toml:6:10: `prefix` takes a path that begins with a slash: requests are compared after `//`, `.` and `..` are removed
 6 | prefix = "/a/../b"
   |          ^^^^^^^^^
help: write "/b""#,
    ),
    (
        r#"[[site]]
names = ["a"]
self_signed = true
[[site.route]]
root = "/srv"
prefix = "/a?b""#,
        r#"kettle.toml:6:10: `prefix` takes a path that begins with a slash: a prefix holds neither query, fragment nor control characters
 6 | prefix = "/a?b"
   |          ^^^^^^
help: write "/a""#,
    ),
    (
        r#"[[site]]
names = ["a"]
self_signed = true
[[site.route]]
root = "/srv"
index = ["/index.html"]"#,
        r#"kettle.toml:6:10: `index` takes a file name: only files of the folder itself can answer for it
 6 | index = ["/index.html"]
   |          ^^^^^^^^^^^^^
help: write "index.html""#,
    ),
    (
        r#"[[site]]
names = ["a"]
self_signed = true
[[site.route]]
root = "/srv"
index = [""]"#,
        r#"kettle.toml:6:10: `index` takes a file name: it cannot be the name of a file
 6 | index = [""]
   |          ^^
help: write a file name, such as "index.html""#,
    ),
    (
        r#"[[site]]
names = ["a"]
self_signed = true
[[site.route]]
root = "/srv"
charset = "a b""#,
        r#"kettle.toml:6:11: `charset` takes the name of a charset: it has other characters
 6 | charset = "a b"
   |           ^^^^^
help: write the name of a charset, such as "utf-8""#,
    ),
    (
        r#"[[site]]
names = ["a"]
self_signed = true
[[site.route]]
root = "/srv"
charset = false"#,
        r#"kettle.toml:6:11: `charset` takes the name of a charset, not true or false
 6 | charset = false
   |           ^^^^^
help: write "utf-8""#,
    ),
    (
        r#"[[site]]
names = ["a"]
self_signed = true
[[site.route]]
root = "/srv"
symlinks = true"#,
        r#"kettle.toml:6:12: `symlinks` takes one of "never", "beneath", "follow", not true or false
 6 | symlinks = true
   |            ^^^^
help: write "beneath""#,
    ),
    (
        r#"[[site]]
names = ["a"]
self_signed = true
[[site.route]]
root = "/srv"
cache_control = { "*.css" = 5 }"#,
        r#"kettle.toml:6:29: `"*.css"` takes a header value, not a whole number
 6 | cache_control = { "*.css" = 5 }
   |                             ^
help: write "5""#,
    ),
    (
        r#"[[site]]
names = ["a"]
self_signed = true
[[site.route]]
root = "/srv"
cache_control = { "*.{css,js}" = "no-cache" }"#,
        r#"kettle.toml:6:19: each key of `cache_control` is a pattern of `*`, `**` and `?`: sets in [ ] or { } and \ are not known
 6 | cache_control = { "*.{css,js}" = "no-cache" }
   |                   ^^^^^^^^^^^^
help: write "*.css" = … and "*.js" = …"#,
    ),
    (
        r#"[[site]]
names = ["a"]
self_signed = true
[[site.route]]
root = "/srv"
cache_control = { "img/*" = "no-cache" }"#,
        r#"kettle.toml:6:19: each key of `cache_control` is a pattern of `*`, `**` and `?`: one with a slash is held against the whole path, which begins with a slash
 6 | cache_control = { "img/*" = "no-cache" }
   |                   ^^^^^^^
help: write "/img/*""#,
    ),
    (
        r#"[[site]]
names = ["a"]
self_signed = true
[[site.route]]
root = "/srv"
cache_control = { "" = "no-cache" }"#,
        r#"kettle.toml:6:19: each key of `cache_control` is a pattern of `*`, `**` and `?`: an empty pattern fits no file
 6 | cache_control = { "" = "no-cache" }
   |                   ^^
help: write "*""#,
    ),
    (
        r#"[[site]]
names = ["a"]
self_signed = true
[[site.route]]
root = "/srv"
cache_control = { "***" = "no-cache" }"#,
        r#"kettle.toml:6:19: each key of `cache_control` is a pattern of `*`, `**` and `?`: more than two stars in a row mean nothing
 6 | cache_control = { "***" = "no-cache" }
   |                   ^^^^^
help: write "**""#,
    ),
    (
        r#"[[site]]
names = ["a"]
self_signed = true
[[site.route]]
root = "/srv"
cache_control = { "*" = "no\ncache" }"#,
        r#"kettle.toml:6:25: `"*"` takes a header value: a header value is one line without control characters
 6 | cache_control = { "*" = "no\ncache" }
   |                         ^^^^^^^^^^^
help: write "no cache""#,
    ),
    (
        r#"[[site]]
names = ["a"]
self_signed = true
[[site.route]]
root = "/srv"
cache_control = ["*"]"#,
        r#"kettle.toml:6:17: `cache_control` takes a table, each key a pattern of `*`, `**` and `?`, not a list
 6 | cache_control = ["*"]
   |                 ^^^^^
help: write [site.route.cache_control]"#,
    ),
    (
        r#"[[site]]
names = ["a"]
self_signed = true
[[site.route]]
root = "/srv"
mime = { ".wasm" = "application/wasm" }"#,
        r#"kettle.toml:6:10: each key of `mime` is a file extension: an extension is written without its dot
 6 | mime = { ".wasm" = "application/wasm" }
   |          ^^^^^^^
help: write wasm"#,
    ),
    (
        r#"[[site]]
names = ["a"]
self_signed = true
[[site.route]]
root = "/srv"
mime = { wasm = "wasm" }"#,
        r#"kettle.toml:6:17: `wasm` takes a MIME type: a MIME type is two words around a slash
 6 | mime = { wasm = "wasm" }
   |                 ^^^^^^
help: write a MIME type, such as "application/wasm""#,
    ),
    (
        r#"[[site]]
names = ["a"]
self_signed = true
[[site.route]]
root = "/srv"
mime = { txt = "text/plain; charset" }"#,
        r#"kettle.toml:6:16: `txt` takes a MIME type: a parameter of a MIME type is name=value
 6 | mime = { txt = "text/plain; charset" }
   |                ^^^^^^^^^^^^^^^^^^^^^
help: write a MIME type, such as "application/wasm""#,
    ),
    (
        r#"[[site]]
names = ["a"]
self_signed = true
[[site.route]]
root = "/srv"
precompressed = ["brotli"]"#,
        r#"kettle.toml:6:18: `precompressed` takes one of "br", "zstd", "gzip"
 6 | precompressed = ["brotli"]
   |                  ^^^^^^^^
help: write "br""#,
    ),
];

#[test]
fn redirects_that_cannot_be_meant_are_found() {
    assert_found(&[(
        r#"[[site]]
names = ["a"]
self_signed = true
[[site.route]]
prefix = "/old"
redirect = [{ to = "/old/x" }, { from = "/old/*", to = "/new/{2}" }]
[[site.route]]
root = "/srv"
prefix = "/in"
rewrite = [{ to = "/out{rest}" }]"#,
        r#"kettle.toml:6:20: that lies below the same route, so clients would go round in circles
 6 | redirect = [{ to = "/old/x" }, { from = "/old/*", to = "/new/{2}" }]
   |                    ^^^^^^^^
help: write `from` with the paths that are meant
kettle.toml:6:56: `from` has 1 stars, so {2} is nothing
 6 | redirect = [{ to = "/old/x" }, { from = "/old/*", to = "/new/{2}" }]
   |                                                        ^^^^^^^^^^
help: write more stars in `from`
kettle.toml:10:19: only what lies below the prefix of its route can be looked for
 10 | rewrite = [{ to = "/out{rest}" }]
    |                   ^^^^^^^^^^^^
help: write "/in/…""#,
    )]);
}
