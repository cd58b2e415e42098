//! Guesses which known word a mistyped one was meant to be.

/// Words from other configurations, lower case and with `_` for `-`, and their kettle names.
const SYNONYMS: &[(&str, &str)] = &[
    ("autoindex", "listing"),
    ("browse", "listing"),
    ("bind", "address"),
    ("listen", "address"),
    ("socket", "listen"),
    ("server_name", "names"),
    ("hostnames", "names"),
    ("domains", "names"),
    ("ssl_certificate", "chain"),
    ("fullchain", "chain"),
    ("cert", "chain"),
    ("certificate", "chain"),
    ("cert", "certificate"),
    ("ssl_certificate_key", "key"),
    ("private_key", "key"),
    ("ciphers", "suites"),
    ("curves", "groups"),
    ("protocols", "versions"),
    ("location", "route"),
    ("upstream", "backend"),
    ("proxy_pass", "backend"),
    ("leastconn", "least-connections"),
    ("least_conn", "least-connections"),
    ("roundrobin", "round-robin"),
    ("ip_hash", "source-hash"),
    ("source", "source-hash"),
    ("send_proxy_v2", "send_proxy"),
    ("write_proxy_v2", "send_proxy"),
    ("proxy_protocol", "accept_proxy"),
    ("maxconn", "connections"),
    ("max_conns", "connections"),
    ("splice", "kernel-splice"),
    ("ca_file", "roots"),
    ("sni", "name"),
    ("server", "site"),
    ("document_root", "root"),
    ("worker_processes", "workers"),
    ("threads", "workers"),
    ("keepalive_timeout", "idle_timeout"),
    ("http", "redirect"),
    ("apache", "combined"),
    ("nginx", "combined"),
    ("kernel", "kernel-sendfile"),
    ("ktls", "kernel-sendfile"),
    ("sendfile", "kernel-sendfile"),
    ("userspace", "user"),
    ("prime256v1", "p-256"),
    ("secp256r1", "p-256"),
    ("secp384r1", "p-384"),
    ("curve25519", "x25519"),
    ("tls_aes_128_gcm_sha256", "aes-128-gcm"),
    ("tls_aes_256_gcm_sha384", "aes-256-gcm"),
    ("tls_chacha20_poly1305_sha256", "chacha20-poly1305"),
    ("brotli", "br"),
    ("zstandard", "zstd"),
    ("gz", "gzip"),
];

/// Settings of other servers that no single setting here stands for, and how to get there. For words that are only
/// spelt differently there is `SYNONYMS`.
const ELSEWHERE: &[(&str, &str)] = &[
    (
        "try_files",
        "remove it: kettle sends the file, or the `index` of a folder, or else what `fallback` of the route names",
    ),
    ("alias", "write `root`, which replaces the prefix of its route as `alias` does"),
    (
        "return",
        "write `to` below [[site.route.redirect]]; for a redirect to HTTPS a [[listener]] with kind = \"redirect\"",
    ),
    ("expires", "write `\"*.css\" = \"max-age=3600\"` below [site.route.cache_control]"),
    ("add_header", "write `Name = \"value\"` below [site.headers] or [site.route.headers]"),
    ("error_page", "write `404 = \"/path/404.html\"` below [site.error_pages]"),
    ("gzip", "write compress = [\"gzip\"] below [[site.route]]"),
    ("gzip_static", "write precompressed = [\"gzip\"]"),
    ("brotli_static", "write precompressed = [\"br\"]"),
    ("proxy_pass", "write `backend` below [[site.route]], and a [[backend]] of that name"),
    ("access_log", "write `access` below [log], or `access_log` below [[site]] or [[site.route]]"),
    ("error_log", "write `level` below [log]; messages go to standard error"),
    ("ssl_session_tickets", "write `tickets` below [tls]"),
    ("ssl_protocols", "write `versions` below [tls]"),
    ("ssl_ciphers", "write `suites` below [tls]"),
];

/// What to do in place of another server's setting.
pub(crate) fn elsewhere(written: &str) -> Option<&'static str> {
    let plain = plain(written);
    ELSEWHERE.iter().find(|(name, _)| *name == plain).map(|(_, advice)| *advice)
}

/// The longest word worth comparing; longer ones resemble no setting.
const COMPARED_CHARACTERS_MAX: usize = 64;

/// The known word that `written` most likely stands for.
pub fn closest<'k>(written: &str, known: &[&'k str]) -> Option<&'k str> {
    synonym(written, known).or_else(|| nearest(&plain(written), known))
}

/// The known word for what other servers call so.
pub(crate) fn synonym<'k>(written: &str, known: &[&'k str]) -> Option<&'k str> {
    let plain = plain(written);
    let mut synonyms = SYNONYMS.iter().filter(|(other, _)| *other == plain);
    synonyms.find_map(|(_, name)| known.iter().find(|word| *word == name)).copied()
}

/// Case, and `-` in place of `_`, never make a different setting.
fn plain(written: &str) -> String {
    written.trim().to_lowercase().replace(['-', ' '], "_")
}

fn nearest<'k>(written: &str, known: &[&'k str]) -> Option<&'k str> {
    let characters = written.chars().count();
    if characters > COMPARED_CHARACTERS_MAX {
        return None;
    }
    let with_distance = known.iter().map(|word| (distance(written, &plain(word)), *word));
    let (distance, word) = with_distance.min_by_key(|(distance, _)| *distance)?;
    let allowed = characters.max(word.len()).div_ceil(3).min(3);
    (distance <= allowed && distance < characters).then_some(word)
}

/// The number of insertions, removals, replacements and swaps of neighbours between two words
/// (optimal string alignment).
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    let mut left_before = None;
    for (row, left_here) in left.chars().enumerate() {
        let mut current = vec![row + 1];
        let mut right_before = None;
        for (column, right_here) in right.iter().copied().enumerate() {
            let at =
                |row: &[usize], column: usize| row.get(column).copied().unwrap_or(usize::MAX - 1);
            let replaced = at(&last, column) + usize::from(left_here != right_here);
            let inserted = at(&current, column) + 1;
            let removed = at(&last, column + 1) + 1;
            let mut best = replaced.min(inserted).min(removed);
            if left_before == Some(right_here) && right_before == Some(left_here) {
                best = best.min(at(&before_last, column.wrapping_sub(1)).saturating_add(1));
            }
            current.push(best);
            right_before = Some(right_here);
        }
        before_last = std::mem::replace(&mut last, current);
        left_before = Some(left_here);
    }
    last.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests;
