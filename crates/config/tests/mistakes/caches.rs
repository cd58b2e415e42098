//! Stores that contradict or repeat, and routes that name them.

/// Returns what is found first.
fn first(route: &str, stores: &[&str]) -> String {
    let stores: String = stores.iter().map(|store| format!("[[cache]]\n{store}\n")).collect();
    let shown = crate::shown(&format!(
        "[[site]]\nnames = [\"a\"]\nself_signed = true\n[[site.route]]\nbackend = \"app\"\n{route}\n\
         [[backend]]\nname = \"app\"\n[[backend.server]]\naddress = \"127.0.0.1:80\"\n{stores}"
    ));
    shown.lines().next().unwrap_or_default().to_owned()
}

const ROUTE: &str = "cache.store = \"main\"";

#[test]
fn no_object_is_larger_than_its_store() {
    for (max_object, expected) in [
        ("1 MiB", "nothing"),
        (
            "2 MiB",
            "kettle.toml:15:14: `max_object` must not be larger than the `size` of the whole",
        ),
    ] {
        let store = format!(
            "name = \"main\"\ndirectory = \"/srv\"\nsize = \"1 MiB\"\nmax_object = \"{max_object}\""
        );
        assert_eq!(first(ROUTE, &[&store]), expected);
    }
}

#[test]
fn stores_have_names_and_folders_of_their_own() {
    let store = |name: &str, folder: &str| format!("name = \"{name}\"\ndirectory = \"{folder}\"");
    for (name, folder, expected) in [
        ("other", "/srv/ab", "nothing"),
        ("main", "/srv/b", "kettle.toml:15:8: the cache on line 12 is named \"main\" already"),
        ("other", "/srv/a", "kettle.toml:16:13: the [[cache]] \"main\" has this folder"),
        ("other", "/srv/a/b", "kettle.toml:16:13: the [[cache]] \"main\" has this folder"),
        ("other", "/srv", "kettle.toml:16:13: the [[cache]] \"main\" has this folder"),
    ] {
        let stores = [store("main", "/srv/a"), store(name, folder)];
        assert_eq!(first(ROUTE, &[&stores[0], &stores[1]]), expected, "{name} {folder}");
    }
    let unknown = first("cache.store = \"mian\"", &[&store("main", "/srv")]);
    assert_eq!(unknown, "kettle.toml:6:15: no [[cache]] is named \"mian\"");
}
