//! `when`: what a route asks of a request besides its path.

use std::sync::Arc;

use kettle_config::{
    Condition, Config, Diagnostic, Expression, FileKind, Route, Scheme, Subject, Template,
};
use kettle_exchange::request::There;
use kettle_http::forwarded;

use super::Site;
use super::mistake::root_diagnostic;
use crate::files::file_route::{FileRoute, SiteRoutes};
use crate::redirect::tries::path_below;
use crate::words::{Asked, WordSource, Words, argument, cookie, header};

/// The conditions on a request, all of which must hold.
#[derive(Debug, Default)]
pub struct When {
    conditions: Box<[Condition]>,
    /// Where each that asks about a file looks for it; nothing for most routes.
    looks: Box<[Option<Look>]>,
}

/// Where a file is looked for.
#[derive(Debug)]
struct Look {
    /// The number of the folder among those of the site.
    number: usize,
    folder: Arc<FileRoute>,
    path: Option<Template>,
    /// The expression whose groups stand in the path.
    regex: Option<Expression>,
}

/// The folders below which the conditions of a site look for files.
#[derive(Debug, Default)]
pub(super) struct Folders<'s> {
    /// By their numbers.
    pub(super) open: Vec<Arc<FileRoute>>,
    /// Those of the same configuration that are open: their folders may be gone.
    pub(super) same: &'s [Arc<FileRoute>],
}

impl When {
    /// The conditions of a route, or of what is asked before routes: then there is no route that says more of files.
    pub(super) fn open(
        site: (&Config, &SiteRoutes<'_>),
        (when, regex, route): (&[Condition], Option<&Expression>, Option<&Route>),
        folders: &mut Folders<'_>,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Self {
        let mut looks = Vec::new();
        if when.iter().any(|it| it.file.is_some()) {
            for condition in when {
                let look = condition.file.and_then(|_| {
                    let path = condition.file_path.as_deref().and_then(Template::of_try);
                    let folder = folders.open(site, condition, route, diagnostics)?;
                    let number = folders.open.len();
                    folders.open.push(Arc::clone(&folder));
                    Some(Look { number, folder, path, regex: regex.cloned() })
                });
                looks.push(look);
            }
        }
        Self { conditions: when.into(), looks: looks.into() }
    }

    /// True if it asks nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.conditions.is_empty()
    }

    /// True if all conditions hold for this path. If that takes a fact on a file that is not known yet, the fact is wanted, and
    /// this is false.
    pub fn holds(&self, path: &str, asked: Asked<'_>, source: &WordSource) -> bool {
        let Self { conditions, looks } = self;
        hold(conditions, path, asked, source)
            && looks.iter().zip(conditions).all(|(look, condition)| {
                let Some(look) = look else { return condition.file.is_none() };
                let there = look.there(path, asked);
                let fits = match condition.file {
                    Some(FileKind::File) => there == Some(There::File),
                    Some(FileKind::Folder) => there == Some(There::Folder),
                    Some(FileKind::Any) | None => there != Some(There::Nothing),
                };
                there.is_some() && fits != condition.not
            })
    }
}

impl Look {
    /// Returns the kind of file; `None` if that is not known.
    fn there(&self, path: &str, asked: Asked<'_>) -> Option<There> {
        let below = self.folder.below(path);
        let captures = self.regex.as_ref().and_then(|regex| regex.captures(path));
        let path = match &self.path {
            Some(template) => path_below(template, below.unwrap_or(path), captures.as_ref()),
            None => below.map(str::to_owned),
        };
        match path {
            Some(path) => asked.files?.find(self.number, path.trim_start_matches('/')),
            // It could be no file's.
            None => Some(There::Nothing),
        }
    }
}

impl Folders<'_> {
    /// The folder of a condition, opened, or as it is open. None if it is not there.
    fn open(
        &self,
        (config, site): (&Config, &SiteRoutes<'_>),
        condition: &Condition,
        route: Option<&Route>,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Option<Arc<FileRoute>> {
        let own = route.cloned().unwrap_or_default();
        let root = condition.file_root.as_ref().or(route.and_then(|it| it.root.as_ref()))?;
        let place = match condition.file_root {
            // Of the path, all but this.
            Some(_) => Route {
                prefix: condition.file_prefix.clone().or_else(|| Some("/".to_owned())),
                ..Route::default()
            },
            None => Route {
                prefix: own.prefix,
                text_prefix: own.text_prefix,
                exact: own.exact,
                regex: own.regex,
                strip_prefix: own.strip_prefix,
                ..Route::default()
            },
        };
        // The operator's own text hides nothing.
        let is_written = condition.file_path.as_ref().is_some_and(|path| !path.contains('{'));
        let dotfiles = condition.file_dotfiles.unwrap_or(own.dotfiles) || is_written;
        let symlinks = condition.file_symlinks.unwrap_or(own.symlinks);
        let place = Route { symlinks, dotfiles, index: Vec::new(), ..place };
        match FileRoute::open(site, &place, &root.value) {
            Ok(mut folder) => {
                folder.others = None;
                Some(Arc::new(folder))
            }
            Err(error) => {
                let same = self.same.get(self.open.len());
                let same = same.filter(|it| it.root.path() == root.value).cloned();
                if same.is_none() {
                    diagnostics.push(root_diagnostic(config, root, error));
                }
                same
            }
        }
    }
}

/// True if all conditions hold that ask about no file, for this path.
fn hold(conditions: &[Condition], path: &str, asked: Asked<'_>, source: &WordSource) -> bool {
    let words = || Words { path: Some(path), ..asked.words(source) };
    let mut all = conditions.iter().filter(|it| it.file.is_none());
    all.all(|condition| {
        condition.subjects().all(|it| is(asked, words, it, condition)) != condition.not
    })
}

fn is<'w>(
    asked: Asked<'_>,
    words: impl Fn() -> Words<'w>,
    subject: Subject<'_>,
    condition: &Condition,
) -> bool {
    let Asked { head, client, .. } = asked;
    match subject {
        Subject::Method(methods) => {
            let own = head.method();
            methods.iter().any(|method| method == own.as_str())
        }
        Subject::Scheme(scheme) => client.is_some_and(|it| scheme == scheme_of(it.scheme)),
        Subject::Host(hosts) => {
            let own = asked.host();
            own.is_some_and(|own| hosts.iter().any(|host| host.eq_ignore_ascii_case(&own)))
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
        Subject::Of(template) => fits(condition, &words().fill(template).unwrap_or_default()),
        // Asked apart.
        Subject::File(_) => true,
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

impl Site {
    /// A folder below which conditions look for files.
    pub fn folder(&self, number: usize) -> Option<&Arc<FileRoute>> {
        self.folders.get(number)
    }
}
