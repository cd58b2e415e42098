use std::cell::Cell;
use std::fs;
use std::os::unix::fs::symlink;
use std::time::SystemTime;

use kettle_config::{Config, FastCgi, Limits, Located, Route, Site, Symlinks};
use kettle_runtime::clock::Clock;
use kettle_runtime::encoder::EncoderPermits;

use super::*;
use crate::files::file_route::SiteRoutes;

const PERIOD: Duration = Duration::from_secs(1);

/// A clock that only moves when told.
#[derive(Clone, Default)]
struct Hand(Rc<Cell<Duration>>);

impl Clock for Hand {
    fn wall(&self) -> SystemTime {
        SystemTime::now()
    }

    fn monotonic(&self) -> Duration {
        self.0.get()
    }
}

/// Two workers of one route, whose root is the folder `now`.
struct Stage {
    folder: tempfile::TempDir,
    clock: Hand,
    route: Arc<FileRoute>,
    workers: [Files; 2],
}

impl Stage {
    fn new(revalidate: Duration) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["first", "second"] {
            fs::create_dir(folder.path().join(name)).unwrap();
            fs::write(folder.path().join(name).join("a.php"), name).unwrap();
        }
        fs::write(folder.path().join("first/index.php"), "").unwrap();
        symlink("first", folder.path().join("now")).unwrap();
        let root = folder.path().join("now");
        let fastcgi = FastCgi { index: Some("/index.php".to_owned()), ..FastCgi::default() };
        let route = Route {
            root: Some(Located::not_written(root.clone())),
            fastcgi: Some(fastcgi),
            symlinks: Symlinks::Beneath,
            ..Route::default()
        };
        let route = FileRoute::open(&SiteRoutes::of(&Site::default()), &route, &root).unwrap();
        let clock = Hand::default();
        let limits = Limits { revalidate, disk_timeout: Duration::MAX, ..Config::default().limits };
        let files = || {
            let metrics = Arc::default();
            let encoders = EncoderPermits::new(1, 4 << 20);
            Files::with_clock(&limits, metrics, encoders, Box::new(clock.clone()))
        };
        let workers = [files(), files()];
        Self { folder, clock, route: Arc::new(route), workers }
    }

    /// The program that a worker finds by this path, or what else it says.
    async fn found(&self, worker: usize, path: &str) -> String {
        let relative = path.trim_start_matches('/');
        let key = KeyRef {
            route: self.route.number,
            preference: CodingPreference::NONE,
            by_sendfile: false,
            path,
        };
        match self.workers[worker].lookup(&self.route, relative, key).await.unwrap().0 {
            LocateOutcome::Program { path, .. } => path,
            other => format!("{other:?}"),
        }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }
}

#[tokio::test]
async fn a_program_is_looked_for_again_after_the_period() {
    let stage = Stage::new(PERIOD);
    assert_eq!(stage.found(0, "/a.php").await, "a.php");
    assert_eq!(stage.found(0, "/").await, "index.php");
    // A path that leads out of the root is never found, whatever it was before.
    fs::remove_file(stage.path("first/a.php")).unwrap();
    symlink("../second/a.php", stage.path("first/a.php")).unwrap();
    fs::remove_file(stage.path("first/index.php")).unwrap();
    stage.clock.0.set(PERIOD - Duration::from_millis(1));
    assert_eq!(stage.found(0, "/a.php").await, "a.php", "it is remembered");
    assert_eq!(stage.found(0, "/").await, "index.php");
    stage.clock.0.set(PERIOD);
    assert!(stage.found(0, "/a.php").await.starts_with("Refused"));
    assert_eq!(stage.found(0, "/").await, "Directory");
}

#[tokio::test]
async fn without_a_period_nothing_is_remembered() {
    let stage = Stage::new(Duration::ZERO);
    assert_eq!(stage.found(0, "/a.php").await, "a.php");
    fs::remove_file(stage.path("first/a.php")).unwrap();
    assert_eq!(stage.found(0, "/a.php").await, "Refused(404)");
}

#[tokio::test]
async fn what_one_worker_finds_gone_no_other_runs() {
    let stage = Stage::new(PERIOD);
    assert_eq!(stage.found(0, "/a.php").await, "a.php");
    fs::remove_file(stage.path("first/a.php")).unwrap();
    assert_eq!(stage.found(1, "/a.php").await, "Refused(404)");
    assert_eq!(stage.found(0, "/a.php").await, "Refused(404)");
}

#[tokio::test]
async fn below_a_new_root_and_after_a_reload_all_is_looked_for_again() {
    let stage = Stage::new(PERIOD);
    assert_eq!(stage.found(0, "/index.php").await, "index.php");
    fs::remove_file(stage.path("now")).unwrap();
    symlink("second", stage.path("now")).unwrap();
    // A file that is missing is looked for below the present root.
    assert_eq!(stage.found(0, "/none.php").await, "Refused(404)");
    assert_eq!(stage.found(0, "/index.php").await, "Refused(404)");
    assert_eq!(stage.found(0, "/a.php").await, "a.php");
    fs::remove_file(stage.path("second/a.php")).unwrap();
    stage.workers[0].forget();
    assert_eq!(stage.found(0, "/a.php").await, "Refused(404)");
}
