use super::*;

fn obtain(cache: &Cache, recipe: &str, content: &str) -> String {
    let folder = cache
        .obtain("thing", recipe, |folder| {
            fs::write(folder.join("file"), content).map_err(|error| error.to_string())
        })
        .unwrap();
    fs::read_to_string(folder.join("file")).unwrap()
}

#[test]
fn an_intact_artefact_is_not_built_again() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(folder.path().to_owned()).unwrap();
    assert_eq!(obtain(&cache, "recipe", "first"), "first");
    assert_eq!(obtain(&cache, "recipe", "second"), "first");
}

#[test]
fn a_changed_recipe_builds_anew() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(folder.path().to_owned()).unwrap();
    obtain(&cache, "recipe", "first");
    assert_eq!(obtain(&cache, "other recipe", "second"), "second");
}

#[test]
fn a_damaged_file_builds_anew() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(folder.path().to_owned()).unwrap();
    obtain(&cache, "recipe", "first");
    fs::write(folder.path().join("thing/file"), "damaged").unwrap();
    assert_eq!(obtain(&cache, "recipe", "second"), "second");
}

#[test]
fn a_failed_build_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(folder.path().to_owned()).unwrap();
    assert!(cache.obtain("thing", "recipe", |_| Err("no network".into())).is_err());
    assert!(!folder.path().join("thing").exists());
    assert_eq!(obtain(&cache, "recipe", "second"), "second");
}
