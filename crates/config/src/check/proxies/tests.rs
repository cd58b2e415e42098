use super::*;
use crate::setting::Settings as _;

/// The settings of both files and requests to a backend. `root`, `backend` and `cache` are checked by themselves.
const BOTH: &[&str] = &[
    "prefix",
    "text_prefix",
    "exact",
    "regex",
    "first",
    "when",
    "expires",
    "always",
    "error_pages",
    "internal",
    "missing",
    "fastcgi",
    "strip_prefix",
    "respond",
    "backend",
    "cache",
    "redirect",
    "rewrite",
    "allow",
    "deny",
    "deny_files",
    "basic_auth",
    "rate_limit",
    "cors",
    "signed_urls",
    "forward_auth",
    "mark_private",
    "limit_rate",
    "limit_rate_after",
    "headers",
    "access_log",
    "compress",
    "compress_types",
    "compress_min",
    "compress_for_proxies",
];

/// A new setting that counts for one of both only must be a mistake beside the other.
#[test]
fn each_setting_of_a_route_is_of_files_of_requests_or_of_both() {
    let mut listed: Vec<&str> = [FILES, REQUESTS, BOTH].concat();
    let mut declared: Vec<&str> = Route::describe().settings.iter().map(|it| it.name).collect();
    listed.sort_unstable();
    declared.sort_unstable();
    assert_eq!(listed, declared);
}
