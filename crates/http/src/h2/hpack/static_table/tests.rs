use super::*;

#[test]
fn indexes_count_from_one_to_sixty_one() {
    assert_eq!(field_line(0), None);
    assert_eq!(field_line(1), Some((b":authority".as_slice(), b"".as_slice())));
    assert_eq!(field_line(16), Some((b"accept-encoding".as_slice(), b"gzip, deflate".as_slice())));
    assert_eq!(field_line(61), Some((b"www-authenticate".as_slice(), b"".as_slice())));
    assert_eq!(field_line(62), None);
    assert_eq!(field_line(usize::MAX), None);
}

#[test]
fn every_name_is_found_at_its_first_index_in_any_case() {
    for (name, _) in FIELD_LINES {
        let first = FIELD_LINES.iter().position(|line| line.0 == name).unwrap() + 1;
        let found = |name: &[u8]| name_index(name).map(usize::from);
        assert_eq!(found(name), Some(first), "{}", name.escape_ascii());
        assert_eq!(found(&name.to_ascii_uppercase()), Some(first), "{}", name.escape_ascii());
    }
}

#[test]
fn other_names_are_not_found() {
    for name in ["", "a", "ag", "agee", "aae", "x-age", "alt-svc", "\0ge", ":statuS ", "x"] {
        assert_eq!(name_index(name.as_bytes()), None, "{name:?}");
    }
    // As long as `age` in the eight bits that the search counts.
    let name = [vec![b'a'], vec![b'g'; 257], vec![b'e']].concat();
    assert_eq!(name_index(&name), None);
}

#[test]
fn fields_with_credentials_have_their_indexes() {
    assert_eq!(name_index(b"authorization"), Some(AUTHORIZATION));
    assert_eq!(name_index(b"cookie"), Some(COOKIE));
    assert_eq!(name_index(b"proxy-authorization"), Some(PROXY_AUTHORIZATION));
    assert_eq!(name_index(b"set-cookie"), Some(SET_COOKIE));
}
