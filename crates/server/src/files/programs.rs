//! Which files are programs: they are run by an application, or nobody gets them. Their names alone decide that, before anything is
//! opened, so that no way to a file (index files, tries, fallbacks, compressed forms, what is remembered) sends a source.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use kettle_config::{Coding, Route};

/// The programs below the root of a route.
#[derive(Clone, Debug)]
pub struct Programs {
    /// The ends of their names.
    endings: Box<[String]>,
    /// True if the route has them run; otherwise it has none of them.
    pub are_run: bool,
    /// True if a path may go on behind one.
    pub take_path_info: bool,
    /// What answers where nothing is found.
    pub missing: Option<Missing>,
}

/// What answers for a path where there is no file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The program of this path below the root, with its slash.
    Index(String),
    /// The one program of the application.
    Script,
}

/// What the name of a file says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nature {
    /// It is no program.
    File,
    /// It is one.
    Program,
    /// It is a program's source under another name: of an editor's copy, compressed, or in other letters.
    Source,
}

/// The folders of a configuration in which programs are, and around which no route may send one.
#[derive(Debug, Default)]
pub struct ProgramFolders {
    folders: HashSet<PathBuf>,
    /// The folders around these.
    above: HashSet<PathBuf>,
    endings: Vec<String>,
}

impl ProgramFolders {
    /// Those of the routes of all sites.
    #[must_use]
    pub fn of<'r>(routes: impl Iterator<Item = &'r Route>) -> Self {
        let mut all = Self::default();
        for route in routes {
            let (Some(_), Some(root)) = (&route.fastcgi, &route.root) else { continue };
            for folder in names_of(&root.value) {
                all.above.extend(folder.ancestors().skip(1).map(Path::to_owned));
                all.folders.insert(folder);
            }
            for ending in endings_of(route) {
                if !all.endings.contains(&ending) {
                    all.endings.push(ending);
                }
            }
        }
        all
    }

    /// True if programs are below this folder, or around it.
    fn meet(&self, root: &Path) -> bool {
        let is_met = |folder: &Path| {
            self.above.contains(folder) || folder.ancestors().any(|it| self.folders.contains(it))
        };
        !self.folders.is_empty() && names_of(root).iter().any(|it| is_met(it))
    }
}

/// A folder by the path that the operator wrote, and by the one without links.
fn names_of(folder: &Path) -> Vec<PathBuf> {
    let real = folder.canonicalize().ok().filter(|real| real != folder);
    std::iter::once(folder.to_owned()).chain(real).collect()
}

/// What the names of a route's programs end with. Its one program is never sent either, should it lie below the root.
fn endings_of(route: &Route) -> Vec<String> {
    let Some(fastcgi) = &route.fastcgi else { return Vec::new() };
    let mut endings = fastcgi.extensions.clone();
    let name = fastcgi.script.as_deref().and_then(|script| script.rsplit('/').next());
    if let Some(name) = name.filter(|name| !name.is_empty()) {
        let ending = name.rfind('.').filter(|at| *at > 0).and_then(|at| name.get(at..));
        endings.push(ending.unwrap_or(name).to_owned());
    }
    endings
}

impl Programs {
    /// Those of a route, or of others whose folders meet its own; none if there are none.
    #[must_use]
    pub fn of(route: &Route, root: &Path, others: Option<&ProgramFolders>) -> Option<Self> {
        let own = route.fastcgi.as_ref();
        let mut endings = endings_of(route);
        if let Some(others) = others.filter(|it| it.meet(root)) {
            let more = others.endings.iter().filter(|it| !endings.contains(it)).cloned();
            // A program of another route is none of this one's.
            let more: Vec<_> = if own.is_some() { Vec::new() } else { more.collect() };
            endings.extend(more);
        }
        let index = own.and_then(|it| it.index.clone()).map(Missing::Index);
        let script = || own.and_then(|it| it.script.as_ref()).map(|_| Missing::Script);
        (!endings.is_empty()).then(|| Self {
            endings: endings.into(),
            are_run: own.is_some(),
            take_path_info: own.is_some_and(|it| it.path_info),
            missing: index.or_else(script),
        })
    }

    /// What the last name of a path says of it.
    #[must_use]
    pub fn nature(&self, path: &str) -> Nature {
        let name = path.rsplit('/').next().unwrap_or_default();
        if self.endings.iter().any(|ending| name.ends_with(ending.as_str())) {
            return Nature::Program;
        }
        // Some file systems take one name for the other.
        let lower = name.to_ascii_lowercase();
        let mut bare = lower.split(':').next().unwrap_or_default();
        loop {
            let own = |ending: &String| bare.ends_with(&*ending.to_ascii_lowercase());
            if self.endings.iter().any(own)
                || self.is_php() && ALSO_PHP.iter().any(|it| bare.ends_with(it))
            {
                return Nature::Source;
            }
            let shorter = COPIES.iter().find_map(|copy| bare.strip_suffix(copy));
            match shorter.or_else(|| CODINGS.iter().find_map(|it| bare.strip_suffix(it.suffix()))) {
                Some(shorter) => bare = shorter,
                None => return Nature::File,
            }
        }
    }

    fn is_php(&self) -> bool {
        self.endings.iter().any(|ending| ending == ".php")
    }

    /// The name that answers for a folder before its index files.
    #[must_use]
    pub fn index_name(&self) -> Option<&str> {
        match &self.missing {
            Some(Missing::Index(index)) => index.rsplit('/').next(),
            _ => None,
        }
    }
}

const CODINGS: [Coding; 3] = [Coding::Br, Coding::Zstd, Coding::Gzip];
/// What editors, administrators and packages leave beside a file.
const COPIES: [&str; 17] = [
    "~",
    "#",
    ".",
    " ",
    ".bak",
    ".backup",
    ".save",
    ".orig",
    ".old",
    ".swp",
    ".swo",
    ".tmp",
    ".dist",
    ".dpkg-old",
    ".dpkg-dist",
    ".rpmsave",
    ",v",
];
/// Names that servers take for PHP besides.
const ALSO_PHP: [&str; 7] = [".phtml", ".phar", ".php3", ".php4", ".php5", ".php7", ".php8"];

#[cfg(test)]
mod tests {
    use kettle_config::FastCgi;

    use super::*;

    fn route(root: &str, fastcgi: Option<FastCgi>) -> Route {
        let root = kettle_config::Located::not_written(PathBuf::from(root));
        Route { root: Some(root), fastcgi, ..Route::default() }
    }

    #[test]
    fn names_alone_say_what_is_a_program() {
        let fastcgi = FastCgi { script: Some("/a/cgit.cgi".to_owned()), ..FastCgi::default() };
        let programs =
            Programs::of(&route("/srv", Some(fastcgi)), Path::new("/srv"), None).unwrap();
        for (path, nature) in [
            ("index.php", Nature::Program),
            ("a/b.php", Nature::Program),
            ("cgit.cgi", Nature::Program),
            ("a.php/b.txt", Nature::File),
            ("php", Nature::File),
            ("a.phps", Nature::File),
            ("a.php.txt", Nature::File),
            ("b.html", Nature::File),
            ("b.gz", Nature::File),
            ("", Nature::File),
            ("a.PHP", Nature::Source),
            ("a.pHp", Nature::Source),
            ("a.php~", Nature::Source),
            ("#a.php#", Nature::Source),
            ("a.php.bak", Nature::Source),
            (".a.php.swp", Nature::Source),
            ("a.php.gz", Nature::Source),
            ("a.php.br", Nature::Source),
            ("a.php.bak.zst", Nature::Source),
            ("a.php.", Nature::Source),
            ("a.php .", Nature::Source),
            ("a.php::$DATA", Nature::Source),
            ("a.php,v", Nature::Source),
            ("a.phtml", Nature::Source),
            ("a.PHAR", Nature::Source),
        ] {
            assert_eq!(programs.nature(path), nature, "{path:?}");
        }
    }

    #[test]
    fn no_other_route_has_programs_from_folders_that_meet_theirs() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        std::fs::create_dir_all(path("app/public")).unwrap();
        std::os::unix::fs::symlink(path("app"), path("current")).unwrap();
        let run = [route(&path("current"), Some(FastCgi::default()))];
        let folders = ProgramFolders::of(run.iter());
        let root = folder.path().to_str().unwrap().to_owned();
        for (other, is_met) in [
            (path("current"), true),
            (path("app"), true),
            (path("app/public"), true),
            (root, true),
            ("/".to_owned(), true),
            (path("apple"), false),
            (path("other"), false),
        ] {
            let programs = Programs::of(&route(&other, None), Path::new(&other), Some(&folders));
            assert_eq!(programs.is_some(), is_met, "{other}");
            assert!(programs.is_none_or(|it| !it.are_run));
        }
        let none = ProgramFolders::of([].iter());
        assert!(Programs::of(&route("/srv", None), Path::new("/srv"), Some(&none)).is_none());
    }
}
