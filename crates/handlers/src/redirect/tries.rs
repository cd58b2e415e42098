//! Paths that are looked for one after the other.

use kettle_config::{Captures, Expression, Piece, Route, Template};

use super::pattern::is_normal;

/// The paths that a route tries.
#[derive(Debug)]
pub struct Tries {
    templates: Box<[Template]>,
    /// The expression whose groups stand in them.
    regex: Option<Expression>,
}

/// A path below the root of a route.
#[derive(Debug)]
pub struct TriedPath {
    /// The path, with its slash at the beginning.
    pub path: String,
    /// True if it stands for a folder.
    pub is_folder: bool,
}

impl Tries {
    /// Those of a route; none if it looks for what is asked for.
    pub fn of(route: &Route) -> Option<Self> {
        let templates: Box<[_]> =
            route.tries.iter().filter_map(|text| Template::of_try(text)).collect();
        (!templates.is_empty()).then(|| Self { templates, regex: route.regex.clone() })
    }

    /// The paths to look for, for this path of a request, of which `below` lies below the root. A name that could be no file is
    /// left out.
    pub fn candidates(&self, path: &str, below: &str) -> Vec<TriedPath> {
        let captures = self.regex.as_ref().and_then(|regex| regex.captures(path));
        let templates = self.templates.iter();
        templates.filter_map(|template| tried_path(template, below, captures.as_ref())).collect()
    }
}

fn tried_path(
    template: &Template,
    below: &str,
    captures: Option<&Captures<'_>>,
) -> Option<TriedPath> {
    let is_folder =
        matches!(template.pieces().last(), Some(Piece::Text(text)) if text.ends_with('/'));
    let path = path_below(template, below, captures)?;
    // A folder is none where a file is looked for.
    (path.ends_with('/') == is_folder).then_some(TriedPath { path, is_folder })
}

/// The path below a root that a template says; `None` if it could be no file's and no folder's.
pub fn path_below(
    template: &Template,
    below: &str,
    captures: Option<&Captures<'_>>,
) -> Option<String> {
    let mut path = String::new();
    for piece in template.pieces() {
        let text = match piece {
            Piece::Text(text) => text,
            Piece::Path => below,
            Piece::Capture(number) => captures?.get(number + 1)?,
            Piece::Named(name) => captures?.named(name)?,
            Piece::Asked | Piece::Rest | Piece::Host | Piece::Word(_) | Piece::Query => {
                return None;
            }
        };
        // A path that ends with a slash goes on with one.
        let text = if path.ends_with('/') { text.trim_start_matches('/') } else { text };
        path.push_str(text);
    }
    is_normal(&path).then_some(path)
}

#[cfg(test)]
mod tests;
