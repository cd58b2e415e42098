//! `error_pages`: what is sent in place of an error.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::diagnostic::Help;
use crate::located::Located;
use crate::read::{Item, Reader};
use crate::setting::{
    DefaultText, Settings, Template, ValueShape, ValueType, destination, located_path, map_form,
    number, optional, read_entries, rules, settings, text,
};

settings! {
    /// The target of an error: a route, or elsewhere.
    pub struct ErrorTarget {
        /// The path that another route answers in place of the error, to GET and HEAD. That route asks what it asks of every
        /// request. If it answers with an error itself, the built-in page is sent.
        pub route: Option<String> = optional(text(&rules::PATH_TEXT, "/404.html"), "`redirect`"),
        /// The URL to which clients are sent in place of the error, with the words of `redirect` but `{rest}` and groups. In
        /// place of a refusal of `forward_auth`, `{auth:NAME}` is the header of this name in the service's answer;
        /// `"{auth:location}"` alone is a whole URL. The service's cookies go with it.
        pub redirect: Option<Template> = optional(destination(), "`route`"),
        /// The status. With `redirect` it is 302 if nothing is said.
        pub status: Option<u16> = optional(number(200, 200, 599, ""), "that of the error"),
    }
}

/// The content that is sent in place of an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErrorPage {
    /// This file.
    File(Located<PathBuf>),
    /// The answer of a route, or a redirect.
    Elsewhere(ErrorTarget),
}

impl ErrorPage {
    /// The file, if it is one.
    pub fn file(&self) -> Option<&Located<PathBuf>> {
        match self {
            Self::File(file) => Some(file),
            Self::Elsewhere(_) => None,
        }
    }
}

/// The content that is sent by error status.
pub(super) fn error_pages(absent: &'static str) -> ErrorPages {
    ErrorPages { absent }
}

pub(super) struct ErrorPages {
    absent: &'static str,
}

impl ValueType for ErrorPages {
    type Value = BTreeMap<u16, ErrorPage>;

    fn default_value(&self) -> Self::Value {
        BTreeMap::new()
    }

    fn shape(&self) -> ValueShape {
        let table = Box::new(ValueShape::Table(ErrorTarget::describe));
        map_form(&rules::STATUS, ValueShape::Either(Box::new(ValueShape::Path), table))
    }

    fn default_text(&self) -> DefaultText {
        DefaultText::Unset(self.absent)
    }

    fn read(&self, item: &Item<'_>, reader: &mut Reader<'_>) -> Option<Self::Value> {
        let kind = located_path();
        let mut pages = BTreeMap::new();
        for (status, _, value) in read_entries(&rules::STATUS, item, reader)? {
            let Ok(status) = status.parse() else { continue };
            let page = match value.value().is_table() {
                true => read_target(&value, reader).map(ErrorPage::Elsewhere),
                false => kind.read(&value, reader).map(ErrorPage::File),
            };
            pages.extend(page.map(|page| (status, page)));
        }
        Some(pages)
    }
}

fn read_target(value: &Item<'_>, reader: &mut Reader<'_>) -> Option<ErrorTarget> {
    let target = ErrorTarget::read(value, reader)?;
    if target.route.is_some() == target.redirect.is_some() {
        let message = "an error leads to a route or elsewhere".to_owned();
        reader.report(value, message, Help::write("{ route = \"/404.html\" }"));
    }
    let is_redirect = |status: u16| matches!(status, 301 | 302 | 303 | 307 | 308);
    if target.redirect.is_some() && target.status.is_some_and(|status| !is_redirect(status)) {
        let message = "clients follow a redirect of another status only".to_owned();
        reader.report(value, message, Help::act("write one of 301, 302, 303, 307 and 308"));
    }
    let words = target.redirect.iter().any(|to| to.captures() > 0 || to.names().next().is_some());
    if words {
        let message = "an error has no groups that could be filled in".to_owned();
        reader.report(value, message, Help::act("write {path} or {host} only"));
    }
    Some(target)
}
