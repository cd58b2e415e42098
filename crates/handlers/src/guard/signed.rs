//! URLs that somebody with a secret has made: `?expires=SECONDS&signature=HEX`.
//!
//! Signed is `SECONDS`, a line feed and the path as it is served; with `client` another line feed and the address.

use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

use kettle_exchange::request::Request;
use kettle_http::Method;
use kettle_http::h1::framing::BodyFraming;
use kettle_kernel::keeper;
use kettle_runtime::client_address::ClientHost;
use kettle_tls::mac::{Mac, MacKey};

use super::users::UsersMistake;

/// The secrets of a route.
#[derive(Debug)]
pub(super) struct SignedUrls {
    keys: Vec<MacKey>,
    client: bool,
    /// True if a signature is for a request that says nothing but its path.
    is_strict: bool,
    /// True if a path with an encoded slash may be asked for. No other with the same text is, then: it is the text that is signed.
    takes_encoded_slashes: bool,
}

impl SignedUrls {
    /// Programs behind a route do things by methods and queries, which nobody signed: there, a signature is for no more than files
    /// give.
    pub(super) fn load(
        settings: &kettle_config::SignedUrls,
        route: &kettle_config::Route,
    ) -> Result<Self, UsersMistake> {
        let is_strict = route.backend.is_some();
        let takes_encoded_slashes = route.encoded_slashes;
        let path = &settings.secret.value;
        let mistake = |line, message: String| UsersMistake {
            path: path.clone(),
            line,
            message,
            help: Some(format!("run `openssl rand -hex 32 > {}`", path.display())),
        };
        let text = keeper::read(path, FILE_BYTES_MAX)
            .and_then(|bytes| String::from_utf8(bytes).map_err(io::Error::other))
            .map_err(|error| mistake(0, format!("cannot read it: {error}")))?;
        let mut keys = Vec::new();
        for (secret, line) in text.lines().zip(1..).filter(|(secret, _)| !secret.is_empty()) {
            if secret.len() < SECRET_BYTES_MIN {
                return Err(mistake(
                    line,
                    format!("a secret has {SECRET_BYTES_MIN} characters or more"),
                ));
            }
            if keys.len() == SECRETS_MAX {
                return Err(mistake(line, "there are two secrets already".to_owned()));
            }
            keys.push(MacKey::new(secret.as_bytes()));
        }
        match keys.is_empty() {
            true => Err(mistake(0, "there is no secret in it".to_owned())),
            false => Ok(Self { keys, client: settings.client, is_strict, takes_encoded_slashes }),
        }
    }

    /// Lets requests with a signed URL pass; or says why not.
    pub(super) fn check(&self, request: &Request<'_>, now: SystemTime) -> Result<(), &'static str> {
        let target = request.head.target().map_err(|_| "no-signature")?;
        if self.is_strict && !says_no_more(request, target.query.unwrap_or_default()) {
            return Err("not-signed");
        }
        if self.takes_encoded_slashes && target.has_lookalike_slash {
            return Err("not-signed");
        }
        let value = |name: &str| {
            let parameters = target.query.unwrap_or_default().split('&');
            let mut values = parameters.filter_map(|it| it.strip_prefix(name)?.strip_prefix('='));
            // Of two nobody knows which was meant.
            values.next().filter(|_| values.next().is_none())
        };
        let (expires, signature) =
            value("expires").zip(value("signature")).ok_or("no-signature")?;
        let signature = hexadecimal(signature).ok_or("signature")?;
        let client = if self.client {
            format!("\n{}", signed_client(request.client.host()))
        } else {
            String::new()
        };
        let pieces: [&[u8]; 4] =
            [expires.as_bytes(), b"\n", target.path.as_bytes(), client.as_bytes()];
        // All are tried: which one fits is not to be seen from outside.
        let fits = self.keys.iter().fold(false, |fits, key| fits | key.verify(&pieces, &signature));
        if !fits {
            return Err("signature");
        }
        let seconds = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        match expires.parse::<u64>() {
            Ok(expires) if seconds < expires => Ok(()),
            _ => Err("expired"),
        }
    }
}

/// True if a request asks for what its path names, and for nothing else.
fn says_no_more(request: &Request<'_>, query: &str) -> bool {
    let is_known =
        |parameter: &str| matches!(parameter.split('=').next(), Some("expires" | "signature"));
    let reads = matches!(request.head.method(), Method::Get | Method::Head);
    // Over HTTP/2 no field says that there is a body.
    reads && request.body.framing() == BodyFraming::None && query.split('&').all(is_known)
}

/// Returns the text that is signed of a client.
fn signed_client(client: ClientHost) -> String {
    client.network().to_string()
}

fn hexadecimal(text: &str) -> Option<Mac> {
    let mut mac = [0; 32];
    let digits: Option<Vec<u8>> =
        text.chars().map(|digit| u8::try_from(digit.to_digit(16)?).ok()).collect();
    let digits = digits.filter(|digits| digits.len() == 2 * mac.len())?;
    for (byte, pair) in mac.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = pair.iter().fold(0, |byte, digit| byte << 4 | digit);
    }
    Some(mac)
}

/// As many as `openssl rand -hex 16` prints.
const SECRET_BYTES_MIN: usize = 32;

/// Two secrets take much less.
const FILE_BYTES_MAX: u64 = 64 << 10;
/// The one before and the one after a change.
const SECRETS_MAX: usize = 2;
