use super::*;

fn networks(allow: &str, deny: &str) -> Networks {
    let text = format!(
        "[[listener]]\naddress = \"127.0.0.1:1\"\n[[site]]\nnames = [\"a\"]\nself_signed = true\n\
         [[site.route]]\nroot = \"/\"\nallow = {allow}\ndeny = {deny}"
    );
    let config = kettle_config::parse(&text, "kettle.toml".as_ref()).unwrap();
    let Route { allow, deny, .. } = config.sites[0].routes[0].clone();
    Networks { allow, deny }
}

#[test]
fn the_longest_prefix_decides_and_of_two_alike_deny() {
    let wide =
        networks("[\"10.0.0.0/8\", \"10.1.2.0/24\", \"2001:db8::/32\"]", "[\"10.1.0.0/16\"]");
    let only_deny = networks("[]", "[\"192.0.2.0/24\", \"2001:db8::/32\"]");
    let both = networks("[\"10.0.0.0/8\"]", "[\"10.0.0.0/8\"]");
    let all_but = networks("[\"0.0.0.0/0\"]", "[\"::/0\"]");
    for (networks, client, expected) in [
        (&wide, "10.9.9.9", true),
        (&wide, "::ffff:10.9.9.9", true),
        (&wide, "10.1.9.9", false),
        (&wide, "10.1.2.9", true),
        (&wide, "11.0.0.1", false),
        (&wide, "2001:db8::1", true),
        (&wide, "2001:db9::1", false),
        (&only_deny, "192.0.2.1", false),
        (&only_deny, "::ffff:192.0.2.1", false),
        (&only_deny, "192.0.3.1", true),
        (&only_deny, "2001:db8:1::1", false),
        (&both, "10.0.0.1", false),
        (&all_but, "10.0.0.1", true),
        (&all_but, "::1", false),
    ] {
        let client = ClientHost::Ip(client.parse().unwrap());
        assert_eq!(networks.allow(client), expected, "{client}");
    }
    // It is in no network, not even in that of all.
    for (networks, expected) in [(&wide, false), (&only_deny, true), (&both, false)] {
        assert_eq!(networks.allow(ClientHost::Unix), expected);
    }
}
