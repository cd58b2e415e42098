//! Error responses: the site's own page where there is one, a few words where there is not.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kettle_config::{ERROR_PAGE_BYTES_MAX, media_type};
use kettle_http::conditional::SelectionError;
use kettle_http::h1::write::reason_phrase;
use kettle_http::html::escape;
use kettle_runtime::access_log::RequestId;
use kettle_runtime::disk::Device;

use crate::response::{Body, ConfiguredFields, Response, ResponseFields};

/// A status to answer with, and the fields it needs besides the usual ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpError {
    /// The status.
    pub status: u16,
    /// Names and values, such as `allow`.
    pub fields: Vec<(&'static str, String)>,
}

impl From<u16> for HttpError {
    fn from(status: u16) -> Self {
        // An overload passes; a minute would keep clients away longer than most last.
        let fields = (status == 503).then(|| ("retry-after", "1".to_owned()));
        Self { status, fields: fields.into_iter().collect() }
    }
}

impl From<SelectionError> for HttpError {
    fn from(error: SelectionError) -> Self {
        match error {
            SelectionError::PreconditionFailed => 412.into(),
            SelectionError::Unsatisfiable { length } => {
                let fields = vec![("content-range", format!("bytes */{length}"))];
                Self { status: 416, fields }
            }
        }
    }
}

/// The body of an error response.
#[derive(Clone, Debug)]
pub struct ErrorPage {
    /// Its bytes.
    pub bytes: Bytes,
    /// Its type.
    pub content_type: String,
}

impl ErrorPage {
    /// The page for a status no site has a page for.
    pub fn plain(status: u16, id: &RequestId) -> Self {
        Self::of(status, reason_phrase(status), id)
    }

    /// The page for a host that no site has.
    pub fn unknown_host(host: &str, id: &RequestId) -> Self {
        Self::of(421, &format!("No site here has the name <b>{}</b>.", escape(host)), id)
    }

    /// The page for plain HTTP on a port that speaks HTTPS.
    pub fn plain_http(location: &str, id: &RequestId) -> Self {
        let location = escape(location);
        Self::of(
            400,
            &format!(
                "This port speaks HTTPS, and the request came in plain HTTP: use \
                 <a href=\"{location}\">{location}</a>."
            ),
            id,
        )
    }

    /// `content` is HTML.
    fn of(status: u16, content: &str, id: &RequestId) -> Self {
        let reason = reason_phrase(status);
        let id = id.to_string();
        let id = escape(&id);
        let text = format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>{status} {reason}</title>\n</head>\n\
             <body style=\"font:16px/1.5 system-ui,sans-serif;margin:4rem auto;max-width:40rem;\
             padding:0 1rem\">\n<h1>{status}</h1>\n<p>{content}</p>\n\
             <p><small>Request {id}</small></p>\n</body>\n</html>\n"
        );
        Self { bytes: text.into(), content_type: "text/html; charset=utf-8".to_owned() }
    }

    /// Reads a page from a file. Waits for the disk.
    ///
    /// # Errors
    /// If the file cannot be read or is larger than [`ERROR_PAGE_BYTES_MAX`].
    pub fn read(file: impl Read, content_type: String) -> io::Result<Self> {
        let mut bytes = Vec::new();
        file.take(ERROR_PAGE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > ERROR_PAGE_BYTES_MAX {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "larger than 256 KiB"));
        }
        Ok(Self { bytes: bytes.into(), content_type })
    }
}

/// Pages that a worker has read, so that responses with the same page have one copy of it. There are as many as the configuration
/// names.
#[derive(Debug, Default)]
pub struct ErrorPages(HashMap<PathBuf, KnownPage>);

#[derive(Debug)]
struct KnownPage {
    page: ErrorPage,
    /// When it was last known to be what its file holds, unless another configuration came since.
    checked: Option<Duration>,
    /// The device from which it was read.
    device: Arc<Device>,
}

impl ErrorPages {
    /// A page that was read no longer ago than `age_max`.
    pub fn find(&self, path: &Path, now: Duration, age_max: Duration) -> Option<ErrorPage> {
        let known = self.0.get(path)?;
        let age = now.saturating_sub(known.checked?);
        (age < age_max).then(|| known.page.clone())
    }

    /// Returns the device on which a page lies, as far as that is known: where it was read, or another page of its folder.
    pub fn device_of(&self, path: &Path) -> Option<Arc<Device>> {
        let is_beside = |known: &&PathBuf| known.parent() == path.parent();
        let beside = || self.0.get(self.0.keys().find(is_beside)?);
        Some(Arc::clone(&self.0.get(path).or_else(beside)?.device))
    }

    /// A page as it was last read, however long ago: its disk does not answer now, and is not asked again at once.
    pub fn outdated(&mut self, path: &Path, now: Duration) -> Option<ErrorPage> {
        let known = self.0.get_mut(path)?;
        known.checked = Some(now);
        Some(known.page.clone())
    }

    /// Remembers what was read, and returns it, or the copy that responses have already.
    pub fn remember(
        &mut self,
        path: &Path,
        page: ErrorPage,
        device: Arc<Device>,
        now: Duration,
    ) -> ErrorPage {
        let page = match self.0.get(path) {
            Some(known) if known.page.bytes == page.bytes => known.page.clone(),
            _ => page,
        };
        let known = KnownPage { page: page.clone(), checked: Some(now), device };
        self.0.insert(path.to_owned(), known);
        page
    }

    /// Another configuration is in force: each page is read again, and those that nobody asked for since this was last said are
    /// forgotten.
    pub fn forget(&mut self) {
        self.0.retain(|_, known| known.checked.take().is_some());
    }
}

/// The type of an error page, from its name.
pub fn content_type_of(path: &Path) -> String {
    let extension = path.extension().and_then(OsStr::to_str);
    let kind = extension.and_then(media_type).unwrap_or("text/html");
    if kind.starts_with("text/") { format!("{kind}; charset=utf-8") } else { kind.to_owned() }
}

/// An error as a response.
pub fn response(error: &HttpError, page: ErrorPage, configured: &ConfiguredFields) -> Response {
    let mut fields = ResponseFields::ready(configured.for_errors().clone());
    for (name, value) in &error.fields {
        fields = fields.with_own(name, value);
    }
    let fields = fields.with("content-type", page.content_type);
    Response::new(error.status, fields, Body::Memory(page.bytes))
}

/// The answer to what belongs to no site.
pub fn plain(error: &HttpError, id: &RequestId) -> Response {
    response(error, ErrorPage::plain(error.status, id), &ConfiguredFields::default())
}

#[cfg(test)]
mod tests;
