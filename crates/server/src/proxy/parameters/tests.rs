use super::*;

#[test]
fn a_path_without_parameters_is_what_a_server_may_look_for() {
    for (path, plain) in [
        ("/", Some("/")),
        ("/a/b", Some("/a/b")),
        ("/a;b/c;d=e;f", Some("/a/c")),
        ("/admin;/users/", Some("/admin/users/")),
        ("/a...;b", Some("/a...")),
        ("/;/a", None),
        ("/a/.;b", None),
        ("/public/..;/admin", None),
        ("/a/;", None),
    ] {
        assert_eq!(without_parameters(path).as_deref(), plain, "{path}");
    }
}
