use std::fs;
use std::path::Path;

use kettle_config::{Route, Site};

use super::super::file_route::SiteRoutes;
use super::*;

const NOW: Duration = Duration::from_secs(100);
const PERIOD: Duration = Duration::from_secs(1);

/// Puts a new release in the place of the one that is served.
fn release(folder: &Path) {
    let served = folder.join("www");
    let count = fs::read_dir(folder).unwrap().count();
    if count > 0 {
        fs::rename(&served, folder.join(format!("old-{count}"))).unwrap();
    }
    fs::create_dir(served).unwrap();
}

fn route() -> (tempfile::TempDir, FileRoute) {
    let folder = tempfile::tempdir().unwrap();
    release(folder.path());
    let root = folder.path().join("www");
    let route =
        FileRoute::open(&SiteRoutes::of(&Site::default()), &Route::default(), &root).unwrap();
    (folder, route)
}

/// Looks at a root's path alone.
fn look(known: &Known) -> Below {
    known.look_below(Wait::Allowed, |_| (), |()| true).unwrap().0
}

#[test]
fn a_look_that_another_one_overtook_is_begun_again_and_undoes_nothing() {
    let (folder, route) = route();
    for late in [NOW, NOW + PERIOD / 2] {
        let roots = CurrentRoots::new(PERIOD);
        let slow = roots.known(&route, NOW);
        let old = look(&slow);
        release(folder.path());
        // Within the same tick of the clock, too.
        let quick = roots.known(&route, late);
        let seen = roots.remember(&route, &quick, look(&quick), (), late);
        assert!(seen.is_root_new);

        assert!(roots.is_overtaken(&route, &slow, &old));
        assert!(!roots.is_current(&route, &old.root));
        roots.remember(&route, &slow, old, (), NOW);
        assert!(roots.is_current(&route, &seen.root));

        let again = roots.known(&route, NOW);
        assert!(!roots.is_overtaken(&route, &again, &look(&again)));
    }
}

#[test]
fn two_looks_that_see_the_same_release_agree() {
    let (folder, route) = route();
    let roots = CurrentRoots::new(PERIOD);
    let known = [roots.known(&route, NOW), roots.known(&route, NOW)];
    release(folder.path());
    let [first, second] = known.each_ref().map(look);
    assert!(roots.remember(&route, &known[0], first, (), NOW).is_root_new);
    assert!(!roots.is_overtaken(&route, &known[1], &second));
    // The first of them remembered a file of this release already.
    assert!(!roots.remember(&route, &known[1], second, (), NOW).is_root_new);
}

#[test]
fn a_new_release_is_seen_by_a_look_that_began_before_another_one() {
    let (folder, route) = route();
    let roots = CurrentRoots::new(PERIOD);
    let slow = roots.known(&route, NOW);
    let quick = roots.known(&route, NOW + PERIOD / 2);
    roots.remember(&route, &quick, look(&quick), (), NOW + PERIOD / 2);
    release(folder.path());
    let new = look(&slow);
    assert!(!roots.is_overtaken(&route, &slow, &new));
    let seen = roots.remember(&route, &slow, new, (), NOW);
    assert!(seen.is_root_new && roots.is_current(&route, &seen.root));
    // Its time counts from when that look began.
    assert!(roots.known(&route, NOW + PERIOD).fresh_since.is_none());
}
