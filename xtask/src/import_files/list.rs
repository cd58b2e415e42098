//! The list of files: where each comes from, and its path there. A star stands for any letters but slashes.

use std::path::Path;

use crate::files;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub kind: SourceKind,
    /// The name in the source: a package, or a repository.
    pub source: String,
    /// Its version, or its commit; of Debian's packages none.
    pub version: String,
    path: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceKind {
    Debian,
    Npm,
    Pypi,
    Go,
    Repository,
}

pub fn parse(text: &str) -> Result<Vec<Entry>, String> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(entry).collect()
}

fn entry(line: &str) -> Result<Entry, String> {
    let words: Vec<&str> = line.split(' ').collect();
    let [kind, source, version, path] = words[..] else {
        return Err(format!("a line is a kind, a source, a version and a path: {line}"));
    };
    let kind = match kind {
        "debian" => SourceKind::Debian,
        "npm" => SourceKind::Npm,
        "pypi" => SourceKind::Pypi,
        "go" => SourceKind::Go,
        "repository" => SourceKind::Repository,
        _ => return Err(format!("an unknown kind: {line}")),
    };
    let [source, version, path] = [source, version, path].map(str::to_owned);
    Ok(Entry { kind, source, version, path })
}

/// Each source once, with the paths that are wanted of it.
pub fn by_source(entries: &[Entry]) -> Vec<(&Entry, Vec<&str>)> {
    let mut sources: Vec<(&Entry, Vec<&str>)> = Vec::new();
    for entry in entries {
        let same =
            |(it, _): &&mut (&Entry, _)| (it.kind, &it.source) == (entry.kind, &entry.source);
        match sources.iter_mut().find(same) {
            Some((_, paths)) => paths.push(&entry.path),
            None => sources.push((entry, vec![&entry.path])),
        }
    }
    sources
}

/// The files of a folder that the paths are for, in order.
pub fn files(folder: &Path, wanted: &[&str]) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    for path in wanted {
        let (below, name) = path.rsplit_once('/').unwrap_or(("", path));
        let names = files::entries(&folder.join(below))?.into_iter().map(|it| files::name(&it));
        let fitting: Vec<String> = names
            .filter(|it| fits(it, name))
            .map(|it| if below.is_empty() { it } else { format!("{below}/{it}") })
            .collect();
        if fitting.is_empty() {
            return Err(format!("{} has no {path}", folder.display()));
        }
        found.extend(fitting);
    }
    Ok(found)
}

fn fits(name: &str, pattern: &str) -> bool {
    match pattern.split_once('*') {
        Some((beginning, end)) => {
            name.len() >= pattern.len() - 1 && name.starts_with(beginning) && name.ends_with(end)
        }
        None => name == pattern,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_read_and_every_source_has_one_version() {
        let entries = parse(super::super::LIST).unwrap();
        for (source, _) in by_source(&entries) {
            let same = entries.iter().filter(|it| it.source == source.source);
            assert!(same.clone().all(|it| it.version == source.version), "{}", source.source);
        }
        assert!(parse("npm a 1").is_err() && parse("x a 1 p").is_err());
    }

    #[test]
    fn a_star_stands_for_letters() {
        assert!(fits("a.conf", "*.conf") && fits("a.conf", "a.conf") && fits("ab", "a*b"));
        assert!(!fits("a", "a*a") && !fits("a.conf.bak", "*.conf"));
    }
}
