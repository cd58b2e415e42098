use super::*;

#[test]
fn every_default_that_is_a_value_is_in_the_schema() {
    let schema = json_schema();
    let default =
        |pointer: &str| schema.pointer(&format!("/properties/{pointer}/default")).cloned();
    assert_eq!(default("limits/properties/head"), Some(json!("16 KiB")));
    assert_eq!(default("tls/properties/tickets"), Some(json!(2)));
    assert_eq!(default("tls/properties/versions"), Some(json!(["tls1.2", "tls1.3"])));
    assert_eq!(default("listener/items/properties/path/anyOf/0"), Some(json!("auto")));
    assert_eq!(default("server/properties/workers"), None);
}

#[test]
fn a_setting_that_depends_on_another_takes_what_any_of_them_allows() {
    let schema = json_schema().to_string();
    for word in ["kernel-sendfile", "kernel-splice"] {
        assert!(schema.contains(&format!("\"const\":\"{word}\"")), "{word}");
    }
}

#[test]
fn required_settings_are_required_by_the_schema() {
    let schema = json_schema();
    let required = schema.pointer("/properties/site/items/properties/certificate/items/required");
    assert_eq!(required, Some(&json!(["chain", "key"])));
}
