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
