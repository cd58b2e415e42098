//! Proxies that name clients by a header: kettle lets in whom nginx lets in.

use super::*;

#[test]
fn clients_that_proxies_name_are_let_in_as_by_nginx() {
    let files = [("t/x", Vec::new()), ("www/a.txt", b"a".to_vec())];
    for (header, words) in [
        ("X-Forwarded-For", "real_ip_header X-Forwarded-For; real_ip_recursive on;"),
        ("X-Real-IP", ""),
        ("CF-Connecting-IP", "real_ip_header CF-Connecting-IP;"),
    ] {
        for guard in
            ["allow 192.0.2.1; deny all;", "deny 192.0.2.1; allow all;", "deny 127.0.0.0/8;"]
        {
            let config = NGINX.replace("WORDS", words).replace("GUARD", guard).leak();
            let place = Place::new(config, &files);
            let Some((_nginx, nginx)) = place.nginx() else { return };
            let (_kettle, kettle) = place.kettle();
            for said in SAID_OF_CLIENTS {
                let fields: String = said.iter().map(|it| format!("{header}: {it}\r\n")).collect();
                let [nginx, kettle] =
                    [nginx, kettle].map(|address| answer(address, "/a.txt", &fields).status);
                // A list names nobody where one address is meant.
                let is_one = header == "X-Forwarded-For" || !fields.contains(',');
                assert!(kettle == nginx || !is_one, "{guard} {fields}: {nginx} {kettle}");
            }
        }
    }
}

const SAID_OF_CLIENTS: [&[&str]; 9] = [
    &[],
    &["192.0.2.1"],
    &["192.0.2.1:80"],
    &["198.51.100.1"],
    &["nobody"],
    &["192.0.2.1, 10.0.0.1"],
    &["192.0.2.1, 198.51.100.1, 10.0.0.1"],
    &["198.51.100.1, 192.0.2.1, 10.0.0.1, 127.0.0.9"],
    &["192.0.2.1, nobody, 10.0.0.1"],
];

const NGINX: &str = include_str!("proxies.conf");
