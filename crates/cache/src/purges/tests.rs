use super::*;

fn object(key: &str, tags: &[&str], generation: u64) -> ObjectHead {
    let tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
    ObjectHead { key: key.to_owned(), tags, generation, ..ObjectHead::default() }
}

fn key(text: &str) -> Purge {
    Purge::Key(Name::of_key(text))
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
    purges.add(&key("https://a/k"));
    let after = purges.generation();
    for (key, tags, is_covered) in [
        ("https://a/1", &["old", "news"][..], true),
        ("https://a/1", &["new"], false),
        ("https://a/x/1", &[], true),
        ("https://a/x", &[], false),
        ("https://a/k", &[], true),
        ("https://a/kk", &[], false),
    ] {
        assert_eq!(purges.covers(&object(key, tags, before)), is_covered, "{key} {tags:?}");
        assert!(!purges.covers(&object(key, tags, after)), "{key} {tags:?}");
    }
}

#[test]
fn purges_are_read_back_and_generations_go_on() {
    let purges = Purges::read(b"");
    let first = purges.generation();
    let kept = [tag("a b"), Purge::Prefix("https://a/ü".into()), tag("c")];
    let lines: String = kept.iter().filter_map(|purge| purges.add(purge)).collect();
    for text in [lines, purges.text()] {
        let again = Purges::read(text.as_bytes());
        assert!(again.generation() > purges.generation());
        assert!(again.covers(&object("https://a/üx", &[], first)));
        assert!(again.covers(&object("k", &["a b"], first)));
        assert!(!again.covers(&object("k", &["a"], first)));
        assert!(!again.covers(&object("k", &["a b"], first + 1)));
    }
}

#[test]
fn what_came_after_a_purge_of_a_key_is_there_in_the_next_life_and_purged_by_it() {
    let purges = Purges::read(b"");
    let text = purges.text();
    // Not written down: what it covers is gone.
    assert_eq!(purges.add(&key("https://a/k")), None);
    let kept = object("https://a/other", &["t"], purges.generation());
    let again = Purges::read(text.as_bytes());
    assert!(!again.covers(&kept));
    again.add(&tag("t"));
    for _ in 0..10 {
        again.add(&key("https://a/k"));
    }
    assert!(again.covers(&kept));
}

#[test]
fn any_number_of_purges_of_keys_leaves_what_has_arrived() {
    let purges = Purges::read(b"");
    let before = purges.generation();
    for number in 0..=KEYS_MAX {
        let name = Name::of_key(&format!("https://a/{number}"));
        assert_eq!(purges.add(&Purge::Key(name)), None);
        purges.key_removed(name, purges.key_purged_at(name));
    }
    let other = object("https://b/", &[], before);
    assert!(!purges.covers(&other));
    // Which keys they were is not known any more.
    assert!(purges.covers_arriving(&other));
    assert!(!purges.covers_arriving(&object("https://b/", &[], purges.generation())));
    assert!(purges.table.read().unwrap().keys.len() <= KEYS_MAX / 2 + 1);
}

#[test]
fn keys_whose_objects_may_be_there_become_one_purge_of_everything_older() {
    let purges = Purges::read(b"");
    let before = purges.generation();
    let first = Name::of_key("https://a/0");
    purges.add(&Purge::Key(first));
    // An object that was removed then may have come again before this.
    purges.key_removed(first, Some(before));
    let lines: String = (1..=KEYS_MAX)
        .filter_map(|number| purges.add(&key(&format!("https://a/{number}"))))
        .collect();
    assert!(lines.contains("floor"));
    assert!(purges.covers(&object("https://a/0", &[], before)));
    assert!(!purges.covers(&object("https://b/", &[], purges.generation())));
}

#[test]
fn what_is_older_than_the_last_purge_of_a_key_is_known_not_to_be_new() {
    let purges = Purges::read(b"");
    let since = || purges.unpurged_since("https://a/x");
    let life = purges.generation();
    assert_eq!(since(), life);
    purges.add(&key("https://a/y"));
    purges.add(&tag("t"));
    purges.add(&Purge::Prefix("https://b/".into()));
    assert_eq!(since(), life, "others were meant");
    purges.add(&key("https://a/x"));
    assert_eq!(since(), purges.generation());
    purges.add(&Purge::Prefix("https://a/".into()));
    assert_eq!(since(), purges.generation());
    let last = purges.generation();
    let removed: Vec<_> = (0..=KEYS_MAX).map(|number| Name::of_key(&number.to_string())).collect();
    for name in removed {
        purges.add(&Purge::Key(name));
        purges.key_removed(name, purges.key_purged_at(name));
    }
    assert!(since() > last, "which keys they were is not known any more");
    assert!(Purges::read(purges.text().as_bytes()).unpurged_since("https://a/x") > since());
}

#[test]
fn objects_of_a_later_generation_than_the_last_are_not_believed() {
    let purges = Purges::read(b"");
    assert!(purges.covers(&object("k", &[], purges.generation() + 7)));
}

#[test]
fn a_line_that_is_not_understood_purges_everything() {
    let huge = format!("5 tag a\n{} tag b\n", u64::MAX);
    for text in ["5 tag a\nx", "5 tag a\n6 what b\n", "5 tag a\n+6 tag b\n", &huge] {
        let purges = Purges::read(text.as_bytes());
        assert!(purges.covers(&object("k", &[], 5)), "{text}");
        assert!(!purges.covers(&object("k", &[], purges.generation())), "{text}");
    }
}

#[test]
fn a_file_of_which_nothing_is_understood_purges_what_earlier_lives_kept() {
    let mut life = Purges::read(b"");
    for _ in 0..3 {
        let kept = object("k", &[], life.generation());
        life = Purges::read(life.text().as_bytes());
        assert!(Purges::read(b"?").covers(&kept));
        assert!(!life.covers(&kept));
    }
}

#[test]
fn a_prefix_that_is_purged_again_and_again_is_one_after_a_restart() {
    let purges = Purges::read(b"");
    let other = object("https://b/", &[], purges.generation());
    let mut text = purges.text();
    for number in 0..=2 * PREFIXES_MAX {
        let prefix = format!("https://a/{}", number % 3);
        text += &purges.add(&Purge::Prefix(prefix)).unwrap();
    }
    let again = Purges::read(text.as_bytes());
    assert!(!again.covers(&other));
    assert!(again.covers(&object("https://a/2", &[], other.generation)));
    assert_eq!(again.table.read().unwrap().prefixes.len(), 3);
}

#[test]
fn too_many_purges_become_one_of_everything_older() {
    let purges = Purges::read(b"");
    let last_line =
        (0..=TAGS_MAX).filter_map(|number| purges.add(&tag(&number.to_string()))).last();
    assert!(last_line.unwrap().contains("floor"));
    assert!(purges.covers(&object("k", &[], 1)));
    assert!(purges.covers(&object("k", &[&TAGS_MAX.to_string()], purges.generation() - 1)));
    assert!(!purges.covers(&object("k", &["0"], purges.generation() - 1)));
    let table = purges.table.read().unwrap();
    assert!(table.tags.len() <= TAGS_MAX / 2 + 1);
}

#[test]
fn what_has_no_tags_yet_is_meant_by_each_tag_and_by_no_other_key() {
    let purges = Purges::read(b"");
    let before = purges.generation();
    purges.add(&key("https://a/k"));
    purges.add(&Purge::Prefix("https://a/x/".into()));
    for (key, is_covered) in
        [("https://a/k", true), ("https://a/x/1", true), ("https://a/1", false)]
    {
        assert_eq!(purges.may_cover(key, before), is_covered, "{key}");
    }
    purges.add(&tag("t"));
    assert!(purges.may_cover("https://a/1", before));
    assert!(!purges.may_cover("https://a/1", purges.generation()));
}
