//! The target that a server names in place of its answer (`X-Accel-Redirect`, `X-Sendfile`), and what of the answer goes with
//! that.

use std::num::NonZeroU64;

use kettle_config::AccelRedirect;
use kettle_http::h1::response::{HANDING_OVER, ResponseHead};
use kettle_http::target::{named_path, named_target};

/// The target that a server has handed over.
#[derive(Debug)]
pub struct Handed {
    /// The place; `None` if it says none, or two.
    pub to: Option<HandedTo>,
    /// True if that may be a path which clients may ask for, too.
    pub is_for_any: bool,
    /// The status of the answer.
    pub status: u16,
    /// Names and values that go with what is sent.
    pub fields: Vec<(&'static str, Vec<u8>)>,
    /// The charset of a text; `off` names none.
    pub charset: Option<String>,
    /// The number of bytes of it go in a second.
    pub rate: Option<NonZeroU64>,
}

/// The place of that target.
#[derive(Debug, PartialEq, Eq)]
pub enum HandedTo {
    /// A path of the site, and a query.
    Path(String, Option<String>),
    /// A file of this host.
    File(String),
}

impl Handed {
    /// That of an answer; `None` if it is to be sent itself.
    pub fn of(head: &ResponseHead<impl AsRef<[u8]>>, may: AccelRedirect) -> Option<Self> {
        if may == AccelRedirect::Ignore || !head.hands_over() {
            return None;
        }
        let [mut paths, mut files] = HANDING_OVER.map(|name| head.header_values(name));
        let places = (paths.next(), files.next());
        let is_sole = paths.next().is_none() && files.next().is_none();
        let to = match places {
            _ if !is_sole => None,
            (Some(path), None) => {
                named_target(path).map(|(path, query)| HandedTo::Path(path, query))
            }
            (None, Some(file)) => named_path(file).map(HandedTo::File),
            _ => None,
        };
        let lines = FIELDS
            .iter()
            .flat_map(|name| head.header_values(name).map(|value| (*name, value.to_vec())));
        let text = |name: &str| {
            let value = head.header_values(name).next()?;
            Some(std::str::from_utf8(value).ok()?.trim().to_owned())
        };
        let is_path = matches!(to, Some(HandedTo::Path(..)));
        Some(Self {
            to,
            is_for_any: may == AccelRedirect::Any && is_path,
            status: head.status(),
            fields: lines.collect(),
            charset: text("x-accel-charset").filter(|it| is_charset(it)),
            rate: text("x-accel-limit-rate").and_then(|it| it.parse().ok()),
        })
    }
}

fn is_charset(text: &str) -> bool {
    let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:+".contains(&byte);
    !text.is_empty() && text.bytes().all(is_of_name)
}

/// As nginx has it: the rest is said of what is sent.
const FIELDS: [&str; 5] =
    ["content-type", "content-disposition", "set-cookie", "cache-control", "expires"];

#[cfg(test)]
mod tests {
    use kettle_http::h1::response::{ParseResponse, parse_response};

    use super::*;

    fn handed(fields: &str) -> Option<Handed> {
        let text = format!("HTTP/1.1 200 OK\r\n{fields}\r\n");
        match parse_response(text.as_bytes()) {
            Ok(ParseResponse::Complete { head, .. }) => Handed::of(&head, AccelRedirect::Internal),
            _ => panic!("{text}"),
        }
    }

    #[test]
    fn one_place_is_one() {
        let path = |path: &str| Some(HandedTo::Path(path.to_owned(), None));
        for (fields, expected) in [
            ("X-Accel-Redirect: /files/a%20b\r\n", path("/files/a b")),
            ("X-Sendfile: /srv/a\r\n", Some(HandedTo::File("/srv/a".to_owned()))),
            ("X-Accel-Redirect: /a\r\nX-Accel-Redirect: /b\r\n", None),
            ("X-Accel-Redirect: /a\r\nX-Sendfile: /b\r\n", None),
            ("X-Accel-Redirect: @named\r\n", None),
            ("X-Accel-Redirect: https://other.example/a\r\n", None),
            ("X-Accel-Redirect: /a/../b\r\n", None),
            ("X-Accel-Redirect: \r\n", None),
            ("X-Sendfile: srv/a\r\n", None),
        ] {
            assert_eq!(handed(fields).unwrap().to, expected, "{fields}");
        }
        assert!(handed("X-Accel-Expires: 0\r\nX-Accel-Limit-Rate: 5\r\n").is_none());
    }

    #[test]
    fn what_goes_with_it_is_what_nginx_takes() {
        let said = "Content-Type: a/b\r\nSet-Cookie: a=b\r\nSet-Cookie: c=d\r\nETag: \"x\"\r\nX-Own: 1\r\n";
        let more = "X-Accel-Charset: utf-8\r\nX-Accel-Limit-Rate: 1000\r\n";
        let it = handed(&format!("X-Accel-Redirect: /a\r\n{said}{more}")).unwrap();
        let names: Vec<&str> = it.fields.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["content-type", "set-cookie", "set-cookie"]);
        assert_eq!((it.charset.as_deref(), it.rate), (Some("utf-8"), NonZeroU64::new(1000)));
        let it =
            handed("X-Accel-Redirect: /a\r\nX-Accel-Charset: a b\r\nX-Accel-Limit-Rate: off\r\n");
        assert_eq!(it.map(|it| (it.charset, it.rate)), Some((None, None)));
    }
}
