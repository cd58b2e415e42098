//! Which module of a package mentions which other, also where a re-export stands between the two.

use std::collections::BTreeMap;

use super::scan::{Module, Workspace};
use super::tokens::Reference;

/// One place where a module names something of its own package.
#[derive(Debug)]
pub struct Mention<'w> {
    /// The module that does.
    pub from: &'w Module,
    /// The path of the module it means.
    pub to: &'w [String],
    pub line: usize,
}

/// A mention, seen as one between two children of the same module.
#[derive(Clone, Copy, Debug)]
pub struct Edge<'w> {
    /// The child that mentions, or has below it who does.
    pub from: &'w str,
    /// The child mentioned, or the one that has it below.
    pub to: &'w str,
    pub file: &'w str,
    pub line: usize,
}

impl<'w> Mention<'w> {
    /// Every mention in the product of a package, tests left out.
    pub fn all(workspace: &'w Workspace, package: &str) -> Vec<Self> {
        let modules: Modules<'w> = workspace
            .product_modules(package)
            .map(|module| (module.path.as_slice(), module))
            .collect();
        let mentions = workspace.product_modules(package).flat_map(|from| {
            let references = from.facts.references.iter().filter(|it| !it.is_for_tests);
            let meant = references.filter_map(|it| Some((target(&modules, &it.path)?, it.line)));
            meant.map(move |(to, line)| Self { from, to, line }).collect::<Vec<_>>()
        });
        mentions.collect()
    }
}

/// The mentions between different children of the module at `parent`.
pub fn edges<'w>(mentions: &[Mention<'w>], parent: &[String]) -> Vec<Edge<'w>> {
    let child = |path: &'w [String]| path.strip_prefix(parent)?.first().map(String::as_str);
    let edges = mentions.iter().filter_map(|&Mention { from, to, line }| {
        let edge = Edge { from: child(&from.path)?, to: child(to)?, file: &from.file, line };
        (edge.from != edge.to).then_some(edge)
    });
    edges.collect()
}

type Modules<'w> = BTreeMap<&'w [String], &'w Module>;

/// The path of the module that declares what `path` means.
fn target<'w>(modules: &Modules<'w>, path: &[String]) -> Option<&'w [String]> {
    let mut path = path.to_vec();
    for _ in 0..REEXPORTS_MAX {
        let depths = (0..=path.len()).rev();
        let deepest = depths.filter_map(|depth| modules.get(path.get(..depth)?)).next()?;
        let (name, inside) = match path.get(deepest.path.len()..) {
            Some([name, inside @ ..]) => (name, inside),
            _ => return Some(&deepest.path),
        };
        match import(deepest, name) {
            Some(source) => path = [&source, inside].concat(),
            None => return Some(&deepest.path),
        }
    }
    None
}

/// Returns the path that a `use` in the module makes known as `name`, counted from the package's root. Children see
/// what their parents import, so a private one counts too.
fn import(module: &Module, name: &str) -> Option<Vec<String>> {
    let is_it = |it: &&Reference| it.imported_as.as_deref() == Some(name) && !it.is_for_tests;
    let own = module.facts.references.iter().find(is_it).map(|it| it.path.clone());
    own.or_else(|| {
        let named = module.facts.names.iter().find(is_it)?;
        let declares = |child: &String| {
            let path = [module.path.as_slice(), std::slice::from_ref(child)].concat();
            module.facts.declarations.iter().any(|declaration| declaration.path == path)
        };
        let is_child = named.path.first().is_some_and(declares);
        is_child.then(|| [module.path.as_slice(), &named.path].concat())
    })
}

/// The number of re-exports that are followed from a name to its place.
const REEXPORTS_MAX: usize = 8;

#[cfg(test)]
mod tests;
