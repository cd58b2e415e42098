//! Access to a route: by network, by name and password.

use std::fs;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kettle_config::{BasicAuth, Config, Located, Route, parse};

use super::stage::Stage;
use crate::route::Router;

/// Lets `ann` with the password `secret` ask a route.
pub(super) fn asks_for_a_password(stage: Stage) -> Stage {
    let path = stage.folder.path().join("users");
    fs::write(&path, format!("ann:{}\n", bcrypt::hash("secret", 4).unwrap())).unwrap();
    stage.route(|route| {
        let users = Located::not_written(path);
        route.basic_auth = Some(BasicAuth { users, ..BasicAuth::default() });
    })
}

pub(super) fn credentials(text: &str) -> String {
    format!("Authorization: Basic {}", STANDARD.encode(text))
}

/// The first route of a configuration with these settings.
pub(super) fn route(settings: &str) -> Route {
    let text = format!(
        "[[listener]]\naddress = \"127.0.0.1:1\"\n[[site]]\nnames = [\"a\"]\nself_signed = true\n\
         [[site.route]]\nroot = \"/\"\n{settings}"
    );
    let mut config: Config = parse(&text, "kettle.toml".as_ref()).unwrap();
    config.sites[0].routes.remove(0)
}

#[tokio::test]
async fn a_file_of_users_with_a_mistake_is_not_taken() {
    let stage = asks_for_a_password(Stage::new());
    let path = stage.folder.path().join("users");
    fs::write(&path, "# users\nann:$apr1$x$y\n").unwrap();
    let diagnostics =
        Router::build(&stage.config, &Default::default(), &Default::default(), None).unwrap_err();
    let [diagnostic] = &*diagnostics else { panic!("{diagnostics:?}") };
    assert_eq!((&diagnostic.path, diagnostic.line), (&path, 2));
    let help = format!("run `htpasswd -B {} ann`", path.display());
    assert_eq!(diagnostic.help.as_deref(), Some(&*help));
}
