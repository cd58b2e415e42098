//! `when`: what a route asks of a request besides its path.

use kettle_config::{Condition, Scheme, Subject};
use kettle_http::forwarded;

use crate::words::{Asked, WordSource, argument, cookie, header};

/// True if all conditions hold.
#[must_use]
pub fn hold(conditions: &[Condition], asked: Asked<'_>, source: &WordSource) -> bool {
    let mut all = conditions.iter();
    all.all(|condition| {
        condition.subjects().all(|it| is(asked, source, it, condition)) != condition.not
    })
}

fn is(asked: Asked<'_>, source: &WordSource, subject: Subject<'_>, condition: &Condition) -> bool {
    let Asked { head, client, .. } = asked;
    match subject {
        Subject::Method(methods) => {
            let own = head.method();
            methods.iter().any(|method| method == own.as_str())
        }
        Subject::Scheme(scheme) => client.is_some_and(|it| scheme == scheme_of(it.scheme)),
        Subject::Host(hosts) => {
            let own = head.host().map(|host| host.strip_suffix('.').unwrap_or(host));
            own.is_some_and(|own| hosts.iter().any(|host| host.eq_ignore_ascii_case(own)))
        }
        Subject::Network(networks) => {
            let address = client.and_then(|client| client.host().ip());
            address.is_some_and(|it| networks.iter().any(|network| network.contains(it)))
        }
        Subject::Header(name) => fits(condition, &header(head, name)),
        Subject::Cookie(name) => fits(condition, cookie(head, name).unwrap_or_default()),
        Subject::Query(name) => {
            let query = head.target().ok().and_then(|target| target.query).unwrap_or_default();
            fits(condition, argument(query, name).unwrap_or_default())
        }
        Subject::Of(template) => {
            fits(condition, &asked.words(source).fill(template).unwrap_or_default())
        }
    }
}

fn scheme_of(scheme: forwarded::Scheme) -> Scheme {
    match scheme {
        forwarded::Scheme::Http => Scheme::Http,
        forwarded::Scheme::Https => Scheme::Https,
    }
}

/// True if a text is what the condition asks for, or is there at all.
fn fits(condition: &Condition, text: &[u8]) -> bool {
    match (&condition.text, &condition.regex) {
        (Some(wanted), _) => wanted.as_bytes() == text,
        (None, Some(regex)) => regex.fits(text),
        (None, None) => !text.is_empty(),
    }
}

#[cfg(test)]
mod tests;
