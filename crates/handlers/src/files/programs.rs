//! Which files are programs: they are run by an application, or nobody gets them. Their names alone decide that, before anything is
//! opened, so that no way to a file (index files, tries, fallbacks, compressed forms, what is remembered) sends a source.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use kettle_config::Route;

/// The programs below the root of a route.
#[derive(Clone, Debug)]
pub struct Programs {
    /// The ends of the names of those that it has run.
    run: Box<[String]>,
    /// The ends of the names that it never sends: those of all other routes as well.
    never_sent: Box<[String]>,
    /// The same and what goes with them, in small letters.
    sources: Box<[String]>,
    /// True if the route has them run; otherwise it has none of them.
    pub are_run: bool,
    /// True if a path may go on behind one.
    pub take_path_info: bool,
    /// True if the application knows what one is that is not there.
    asks_missing: bool,
    /// The answer where nothing is found.
    pub missing: Option<Missing>,
}

/// The answer for a path where there is no file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The program of this path below the root, with its slash.
    Index(String),
    /// The one program of the application.
    Script,
}

/// The nature of a file by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nature {
    /// It is no program.
    File,
    /// It is one. The route may have it run, or another one.
    Program,
    /// It is a program's source under another name: of a copy, compressed, or in other letters.
    Source,
}

/// The programs of a configuration. No route sends a file that is called as one of them, wherever it lies: links that turn, bind mounts
/// and folders that an application sees by another name would lead to it. A page elsewhere (`.html`) counts by its folder.
#[derive(Debug, Default)]
pub struct AllPrograms {
    /// The ends of names that no route sends.
    everywhere: Vec<String>,
    /// Those of pages, and the folders in which they are programs.
    pages: Vec<String>,
    folders: HashSet<PathBuf>,
    /// The folders around these.
    above: HashSet<PathBuf>,
}

impl AllPrograms {
    /// Those of the routes of all sites.
    pub fn of<'r>(routes: impl Iterator<Item = &'r Route>) -> Self {
        let mut all = Self::default();
        for route in routes {
            let endings = endings_of(route);
            let has_pages = endings.iter().any(|it| is_page(it));
            for ending in endings {
                let list = if is_page(&ending) { &mut all.pages } else { &mut all.everywhere };
                if !list.contains(&ending) {
                    list.push(ending);
                }
            }
            if has_pages {
                for folder in folders_of(route).iter().flat_map(|it| names_of(it)) {
                    all.above.extend(folder.ancestors().skip(1).map(Path::to_owned));
                    all.folders.insert(folder);
                }
            }
        }
        all
    }

    /// The ends of names that are never sent from this folder.
    fn endings_for(&self, root: &Path) -> impl Iterator<Item = &String> {
        let is_met = !self.pages.is_empty() && self.meet(root);
        self.everywhere.iter().chain(self.pages.iter().filter(move |_| is_met))
    }

    /// True if pages that are programs are below this folder, or around it.
    fn meet(&self, root: &Path) -> bool {
        let is_met = |folder: &Path| {
            self.above.contains(folder) || folder.ancestors().any(|it| self.folders.contains(it))
        };
        names_of(root).iter().any(|it| is_met(it))
    }
}

/// The folders of a route's programs, as far as this host has them.
fn folders_of(route: &Route) -> Vec<PathBuf> {
    let fastcgi = route.fastcgi.as_ref();
    let script = fastcgi.and_then(|it| Path::new(it.script.as_ref()?).parent());
    let seen = fastcgi.and_then(|it| it.root.as_deref()).map(Path::new);
    let own = route.root.as_ref().map(|root| root.value.as_path());
    [own, seen, script].into_iter().flatten().map(Path::to_owned).collect()
}

/// A folder by the path that the operator wrote, and by the one without links.
fn names_of(folder: &Path) -> Vec<PathBuf> {
    let real = folder.canonicalize().ok().filter(|real| real != folder);
    std::iter::once(folder.to_owned()).chain(real).collect()
}

/// Returns the ends of the names of a route's programs. Its one program is never sent either; one without an extension counts
/// by its whole name.
fn endings_of(route: &Route) -> Vec<String> {
    let Some(fastcgi) = &route.fastcgi else { return Vec::new() };
    // Without a folder of files the route looks for none of them.
    let mut endings = match route.root {
        Some(_) => fastcgi.extensions.clone(),
        None => Vec::new(),
    };
    let name = fastcgi.script.as_deref().and_then(|script| script.rsplit('/').next());
    if let Some(name) = name.filter(|name| !name.is_empty()) {
        let ending = name.rfind('.').filter(|at| *at > 0).and_then(|at| name.get(at..));
        endings.push(ending.unwrap_or(name).to_owned());
    }
    endings
}

impl Programs {
    /// Those of a route and of all others; none if there are none.
    pub fn of(route: &Route, root: &Path, all: Option<&AllPrograms>) -> Option<Self> {
        let own = route.fastcgi.as_ref();
        let run = endings_of(route);
        let mut never_sent = run.clone();
        for ending in all.into_iter().flat_map(|all| all.endings_for(root)) {
            if !never_sent.contains(ending) {
                never_sent.push(ending.clone());
            }
        }
        let mut sources: Vec<_> = never_sent.iter().map(|it| it.to_ascii_lowercase()).collect();
        if sources.iter().any(|it| it == ".php") {
            sources.extend(ALSO_PHP.map(str::to_owned));
            sources.extend((0..10).map(|digit| format!(".php{digit}")));
        }
        let index = own.and_then(|it| it.index.clone()).map(Missing::Index);
        let script = || own.and_then(|it| it.script.as_ref()).map(|_| Missing::Script);
        (!never_sent.is_empty()).then(|| Self {
            run: run.into(),
            never_sent: never_sent.into(),
            sources: sources.into(),
            are_run: own.is_some(),
            take_path_info: own.is_some_and(|it| it.path_info),
            asks_missing: own.is_some_and(|it| it.ask_missing),
            missing: index.or_else(script),
        })
    }

    /// Returns the nature of a path by its last name.
    pub fn nature(&self, path: &str) -> Nature {
        let name = path.rsplit('/').next().unwrap_or_default();
        if self.never_sent.iter().any(|ending| ends_with(name, ending)) {
            return Nature::Program;
        }
        // Some file systems take one name for the other.
        let lower = name.to_ascii_lowercase();
        match self.sources.iter().any(|ending| stands_in(&lower, ending)) {
            true => Nature::Source,
            false => Nature::File,
        }
    }

    /// True if the route has the program of this path run.
    pub fn run(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or_default();
        self.run.iter().any(|ending| ends_with(name, ending))
    }

    /// True if the application is asked for the program of this path, whether it is there or not.
    pub fn ask_for(&self, path: &str) -> bool {
        self.asks_missing && self.run(path)
    }

    /// The name that answers for a folder before its index files.
    pub fn index_name(&self) -> Option<&str> {
        match &self.missing {
            Some(Missing::Index(index)) => index.rsplit('/').next(),
            _ => None,
        }
    }
}

/// True if a name ends so; where that is no extension, if it is this name.
fn ends_with(name: &str, ending: &str) -> bool {
    if ending.starts_with('.') { name.ends_with(ending) } else { name == ending }
}

/// True if an extension stands in a name with no letter or digit behind it, as in what editors, administrators and packages leave beside
/// a file. An ending that is no extension may have other signs around it.
fn stands_in(name: &str, ending: &str) -> bool {
    let is_sign = |sign: char| !sign.is_ascii_alphanumeric();
    if !ending.starts_with('.') {
        return name.trim_matches(is_sign) == ending.trim_matches(is_sign);
    }
    let mut behind = name.match_indices(ending).map(|(at, _)| name.get(at + ending.len()..));
    behind.any(|rest| rest.is_none_or(|rest| rest.is_empty() || rest.starts_with(is_sign)))
}

/// True if files with this extension are pages nearly everywhere.
fn is_page(ending: &str) -> bool {
    PAGES.contains(&ending.to_ascii_lowercase().as_str())
}

const PAGES: [&str; 9] =
    [".css", ".htm", ".html", ".js", ".json", ".svg", ".txt", ".xhtml", ".xml"];
/// Names that servers take for PHP besides, show as its source, or that it includes.
const ALSO_PHP: [&str; 5] = [".phtml", ".phar", ".phps", ".pht", ".inc"];

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
            ("a.phpx", Nature::File),
            ("a.include", Nature::File),
            ("git.cgit.html", Nature::File),
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
            ("a.phps", Nature::Source),
            ("a.pht", Nature::Source),
            ("a.php0", Nature::Source),
            ("a.php6", Nature::Source),
            ("db.inc", Nature::Source),
            ("a.php.txt", Nature::Source),
            ("a.php.1", Nature::Source),
            ("a.php_", Nature::Source),
            ("a.php-", Nature::Source),
            ("a.php%", Nature::Source),
            ("a.php.new", Nature::Source),
            ("a.php.bak1", Nature::Source),
            ("a.php.2024-01-01", Nature::Source),
            ("a.phpx.php.rpmnew", Nature::Source),
            ("a.php\u{fc}", Nature::Source),
            ("cgit.cgi.orig", Nature::Source),
        ] {
            assert_eq!(programs.nature(path), nature, "{path:?}");
        }
    }

    #[test]
    fn a_program_without_an_extension_is_its_whole_name() {
        let fastcgi = FastCgi { script: Some("/a/index".to_owned()), ..FastCgi::default() };
        let all = AllPrograms::of([route("/srv", Some(fastcgi))].iter());
        let programs = Programs::of(&route("/else", None), Path::new("/else"), Some(&all)).unwrap();
        for (path, nature) in [
            ("a/index", Nature::Program),
            ("index~", Nature::Source),
            ("INDEX", Nature::Source),
            ("index.html", Nature::File),
            ("reindex", Nature::File),
        ] {
            assert_eq!(programs.nature(path), nature, "{path:?}");
        }
    }

    /// Each route sends no program of any other, and runs its own alone.
    #[test]
    fn no_route_sends_a_program_of_another() {
        let of = |extension: &str| FastCgi {
            extensions: vec![extension.to_owned()],
            ..FastCgi::default()
        };
        let script =
            FastCgi { script: Some("/srv/app/public/index.php".to_owned()), ..FastCgi::default() };
        let front = Route { root: None, ..route("/", Some(script)) };
        let routes = [
            route("/srv/app/public", Some(of(".php"))),
            front,
            route("/srv/app", Some(of(".cgi"))),
            route("/srv/app/public", None),
            route("/elsewhere", None),
        ];
        for one in &routes {
            let own = endings_of(one);
            for other in &routes {
                let all = AllPrograms::of([one, other].into_iter());
                for route in [one, other] {
                    let Some(root) = &route.root else { continue };
                    let programs = Programs::of(route, &root.value, Some(&all));
                    for ending in &own {
                        let name = format!("a/b{ending}");
                        let programs = programs.as_ref().unwrap();
                        assert_eq!(programs.nature(&name), Nature::Program, "{route:?}");
                        assert_eq!(programs.run(&name), endings_of(route).contains(ending));
                    }
                }
            }
        }
        let none = AllPrograms::of([].iter());
        assert!(Programs::of(&route("/srv", None), Path::new("/srv"), Some(&none)).is_none());
    }

    #[test]
    fn pages_are_programs_in_folders_that_meet_theirs() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        std::fs::create_dir_all(path("app/public")).unwrap();
        std::fs::create_dir_all(path("script")).unwrap();
        std::os::unix::fs::symlink(path("app"), path("current")).unwrap();
        let fastcgi = FastCgi {
            extensions: vec![".php".to_owned(), ".html".to_owned()],
            script: Some(path("script/a.php")),
            root: Some(path("seen")),
            ..FastCgi::default()
        };
        let run = [route(&path("current"), Some(fastcgi))];
        let all = AllPrograms::of(run.iter());
        let root = folder.path().to_str().unwrap().to_owned();
        for (other, is_met) in [
            (path("current"), true),
            (path("app"), true),
            (path("app/public"), true),
            (path("script"), true),
            (path("seen/a"), true),
            (root, true),
            ("/".to_owned(), true),
            (path("apple"), false),
            (path("other"), false),
        ] {
            let programs = Programs::of(&route(&other, None), Path::new(&other), Some(&all));
            let programs = programs.unwrap();
            assert_eq!(programs.nature("a.html") == Nature::Program, is_met, "{other}");
            assert_eq!(programs.nature("a.php"), Nature::Program, "{other}");
            assert!(!programs.are_run);
        }
    }
}
