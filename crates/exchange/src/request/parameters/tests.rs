use super::*;

#[test]
fn a_path_is_what_a_server_may_look_for_instead() {
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
        ("/@scope%2Fname/x", Some("/@scope/name/x")),
        ("/resize/https:%2F%2Fa.example%2Fb", Some("/resize/https:/a.example/b")),
        ("/public/%2Fadmin", Some("/public/admin")),
        ("/public/a%2F%2Fadmin/", Some("/public/a/admin")),
        ("/public/a%2F..%2Fadmin/", None),
        ("/public/a%2F.%2Fadmin", None),
        ("/public/a%2F.%2F..;b%2Fadmin", None),
        ("/admin%2F..%2Fpublic", None),
        ("/admin%2F..", None),
        ("/admin;x%2F..%2Fpublic/users", None),
        ("/admin;x%2Fpublic/users", None),
        ("/admin%2Fa;x/users", Some("/admin/a/users")),
        ("/public/..%2F..%2Fadmin", None),
        ("/..%2Fadmin", None),
        ("/a%2F", Some("/a")),
    ] {
        assert_eq!(as_read_otherwise(path).as_deref(), plain, "{path}");
    }
}
