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

/// Whichever workers its connections are on.
#[test]
fn one_client_does_not_take_all_turns_of_those_who_check_passwords() {
    let (client, other) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
    let workers: Vec<_> = (0..4)
        .map(|_| std::thread::spawn(move || (0..8).map(|_| Pending::begin(client)).collect()))
        .collect();
    let begun: Vec<Vec<Option<Pending>>> =
        workers.into_iter().map(|worker| worker.join().unwrap()).collect();
    assert_eq!(begun.iter().flatten().flatten().count(), 8);
    assert!(Pending::begin(client).is_none());
    assert!(Pending::begin(other).is_some());
    drop(begun);
    assert!(Pending::begin(client).is_some());
    assert!(!pending().contains_key(&client), "nobody is remembered for that");
}
