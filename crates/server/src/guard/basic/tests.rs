use super::*;

#[test]
fn credentials_are_read_in_one_way() {
    let decoded = |value: &str| decode(value.as_bytes()).map(|text| text.to_string());
    assert_eq!(decoded("Basic YW5uOnNlY3JldA=="), Some("ann:secret".to_owned()));
    assert_eq!(decoded("basic  YW5uOnNlY3JldA== "), Some("ann:secret".to_owned()));
    for value in
        ["", "Basic", "Basic ", "Bearer YW5uOnNlY3JldA==", "BasicYW5u", "Basic YW5u=", "Basic /w=="]
    {
        assert_eq!(decoded(value).filter(|text| !text.is_empty()), None, "{value}");
    }
}

#[test]
fn one_client_does_not_take_all_turns_of_those_who_check_passwords() {
    let verdicts = Verdicts::new();
    let (client, other) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
    let held: Vec<_> = (0..8).map(|_| verdicts.begin(client).unwrap()).collect();
    assert!(verdicts.begin(client).is_none());
    assert!(verdicts.begin(other).is_some());
    drop(held);
    assert!(verdicts.begin(client).is_some());
    assert!(verdicts.pending.borrow().is_empty(), "nobody is remembered for that");
}
