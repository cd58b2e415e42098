//! A target that a server hands over: the request goes on as one for that, to a route of the same site to which its own
//! route lets it lead.

use kettle_exchange::error_page::HttpError;
use kettle_exchange::request::{Handed, HandedTo, Request};
use kettle_exchange::response::{Answer, Body, LogNotes, Response, SendRate};
use kettle_http::h1::framing::BodyFraming;
use kettle_http::message::AsAsked;

use crate::files::handler::Files;
use crate::respond::{Led, Start};
use crate::route::{Route, Site};

/// All that was handed over on the way of a request.
#[derive(Default)]
pub(super) struct HandedOver {
    all: Vec<Handed>,
    /// The request before that, with the framing of its body.
    before: Option<(AsAsked, BodyFraming)>,
}

impl HandedOver {
    /// Makes the request one for what is handed over; the path of that, and the route that answers for it.
    ///
    /// # Errors
    /// 502 if no route does that may be led to.
    pub(super) async fn go_on<'s>(
        &mut self,
        handed: Handed,
        (files, site): (&Files, &'s Site),
        request: &mut Request<'_>,
        notes: &mut LogNotes,
    ) -> Result<(String, Option<&'s Route>), HttpError> {
        let (path, query) = match &handed.to {
            Some(HandedTo::Path(path, query)) => (path.clone(), query.clone()),
            Some(HandedTo::File(file)) => (site.path_of(file).ok_or(502_u16)?, None),
            None => return Err(502.into()),
        };
        let asked = request.head.begin_handed(path.clone(), query);
        // As with nginx: what is handed over is read. The body was meant for who handed it over, and so was a program.
        request.body.end_upload();
        request.program = None;
        let framing = request.body.set_framing(BodyFraming::None);
        self.before.get_or_insert((asked, framing));
        // A file that the site keeps from everybody is not handed over either.
        let Start { route, outcome: None, .. } =
            site.led(files, (path.clone(), Led::ByFile), request).await
        else {
            return Err(502.into());
        };
        if !route.is_some_and(|it| handed.is_for_any || it.is_internal()) {
            return Err(502.into());
        }
        if let Some(trace) = &mut notes.upstream {
            trace.failure = None;
        }
        self.all.push(handed);
        Ok((path, route))
    }

    /// Makes the request again what it was, and gives its answer what the servers said of it.
    pub(super) fn end(self, request: &mut Request<'_>, answer: &mut Answer) {
        let Some((asked, framing)) = self.before else { return };
        request.head.end_page(asked);
        request.body.set_framing(framing);
        if let Some(response) = answer.response_mut() {
            self.all.iter().for_each(|handed| describe(handed, response));
        }
    }
}

/// Says of a response what was said of it where it was handed over.
fn describe(handed: &Handed, response: &mut Response) {
    let is_parts = matches!(response.body, Body::Parts(_));
    // A server says itself what it sends.
    let is_sent = matches!(response.status, 200 | 206 | 304)
        && !matches!(response.body, Body::Upstream(_) | Body::Growing(_));
    let mut fields = std::mem::take(&mut response.fields);
    let said = handed.fields.iter().filter(|(name, _)| match *name {
        SET_COOKIE => true,
        CONTENT_TYPE => is_sent && !is_parts && response.status != 304,
        _ => is_sent,
    });
    let said: Vec<_> = said.collect();
    for name in ONCE.iter().filter(|name| said.iter().any(|(own, _)| own == *name)) {
        fields = fields.without_all(name);
    }
    for (name, value) in said {
        fields.add(name, value);
    }
    let kind = fields.values(CONTENT_TYPE).next().map(<[u8]>::to_vec);
    if let (Some(charset), Some(kind), true) = (&handed.charset, kind, is_sent && !is_parts) {
        let kind = kind.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii_end();
        let kind = match charset.as_str() {
            "off" => kind.to_vec(),
            charset => [kind, b"; charset=", charset.as_bytes()].concat(),
        };
        fields = fields.without_all(CONTENT_TYPE).with(CONTENT_TYPE, kind);
    }
    response.fields = fields;
    if let Some(bytes_per_second) = handed.rate {
        response.rate = Some(Box::new(SendRate { bytes_per_second, after_bytes: 0 }));
    }
}

const CONTENT_TYPE: &str = "content-type";
const SET_COOKIE: &str = "set-cookie";
/// The headers that stand in place of those of the route.
const ONCE: [&str; 4] = [CONTENT_TYPE, "content-disposition", "cache-control", "expires"];
