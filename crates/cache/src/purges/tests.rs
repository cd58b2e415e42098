use super::*;

fn object(key: &str, tags: &[&str], generation: u64) -> Head {
    let tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
    Head { key: key.to_owned(), tags, generation, ..Head::default() }
}

fn tag(text: &str) -> Purge {
    Purge::Tag(text.to_owned())
}

#[test]
fn a_purge_means_what_was_asked_for_before_it() {
    let purges = Purges::read(b"");
    let before = purges.generation();
    purges.add(&tag("news"));
    purges.add(&Purge::Prefix("https://a/x/".into()));
    purges.add(&Purge::Key("https://a/k".into()));
    let after = purges.generation();
    for (key, tags, is_meant) in [
        ("https://a/1", &["old", "news"][..], true),
        ("https://a/1", &["new"], false),
        ("https://a/x/1", &[], true),
        ("https://a/x", &[], false),
        ("https://a/k", &[], true),
        ("https://a/kk", &[], false),
    ] {
        assert_eq!(purges.mean(&object(key, tags, before)), is_meant, "{key} {tags:?}");
        assert!(!purges.mean(&object(key, tags, after)), "{key} {tags:?}");
    }
}

#[test]
fn purges_are_read_back_and_generations_go_on() {
    let purges = Purges::read(b"");
    let kept = [tag("a b"), Purge::Prefix("https://a/ü".into()), tag("c")];
    let lines: String = kept.iter().filter_map(|purge| purges.add(purge)).collect();
    for text in [lines, purges.text()] {
        let again = Purges::read(text.as_bytes());
        assert_eq!(again.generation(), purges.generation());
        assert!(again.mean(&object("https://a/üx", &[], 1)));
        assert!(again.mean(&object("k", &["a b"], 1)));
        assert!(!again.mean(&object("k", &["a"], 1)));
        assert!(!again.mean(&object("k", &["a b"], 2)));
    }
}

#[test]
fn objects_of_a_later_generation_than_the_last_are_not_believed() {
    assert!(Purges::read(b"").mean(&object("k", &[], 7)));
}

#[test]
fn a_line_that_is_not_understood_purges_everything() {
    for text in ["5 tag a\nx", "5 tag a\n6 what b\n", "5 tag a\n+6 tag b\n"] {
        let purges = Purges::read(text.as_bytes());
        assert!(purges.mean(&object("k", &[], 5)), "{text}");
        assert!(!purges.mean(&object("k", &[], purges.generation())), "{text}");
    }
}

#[test]
fn too_many_purges_become_one_of_everything_older() {
    let purges = Purges::read(b"");
    let last_line =
        (0..=TAGS_MAX).filter_map(|number| purges.add(&tag(&number.to_string()))).last();
    assert!(last_line.unwrap().contains("floor"));
    assert!(purges.mean(&object("k", &[], 1)));
    assert!(purges.mean(&object("k", &[&TAGS_MAX.to_string()], purges.generation() - 1)));
    assert!(!purges.mean(&object("k", &["0"], purges.generation() - 1)));
    let table = purges.table.read().unwrap();
    assert!(table.tags.len() <= TAGS_MAX / 2 + 1);
}
