use super::*;

const ALL: [Coding; 3] = [Coding::Br, Coding::Zstd, Coding::Gzip];

fn order(offered: &[Coding], accept_encoding: &str) -> Vec<Coding> {
    CodingPreference::negotiate(offered, [accept_encoding.as_bytes()]).codings().collect()
}

#[test]
fn equal_weights_keep_the_order_of_the_route() {
    assert_eq!(order(&ALL, "gzip, br, zstd"), [Coding::Br, Coding::Zstd, Coding::Gzip]);
    let reversed = [Coding::Gzip, Coding::Zstd, Coding::Br];
    assert_eq!(order(&reversed, "gzip, br, zstd"), reversed);
}

#[test]
fn the_clients_weights_come_first() {
    assert_eq!(
        order(&ALL, "br;q=0.1, zstd;q=0.5, gzip;q=0.9"),
        [Coding::Gzip, Coding::Zstd, Coding::Br]
    );
}

#[test]
fn what_the_client_refuses_or_does_not_name_is_not_offered() {
    assert_eq!(order(&ALL, "br;q=0, gzip"), [Coding::Gzip]);
    assert_eq!(order(&ALL, "deflate"), []);
    assert_eq!(order(&ALL, ""), []);
    assert_eq!(order(&[Coding::Br], "gzip"), []);
    assert_eq!(CodingPreference::negotiate(&ALL, []), CodingPreference::NONE);
}

#[test]
fn a_star_stands_for_the_codings_that_are_not_named() {
    assert_eq!(order(&ALL, "*, zstd;q=0"), [Coding::Br, Coding::Gzip]);
    assert_eq!(order(&ALL, "*;q=0, gzip"), [Coding::Gzip]);
}

#[test]
fn a_client_that_likes_the_identity_better_gets_it() {
    assert_eq!(order(&ALL, "identity, br;q=0.5, gzip"), [Coding::Gzip]);
    assert_eq!(order(&ALL, "identity;q=0, br;q=0.001"), [Coding::Br]);
}

#[test]
fn different_orders_are_different_preferences() {
    let accept = Some(&b"br, gzip;q=0.5"[..]);
    let other = Some(&b"br;q=0.5, gzip"[..]);
    assert_ne!(CodingPreference::negotiate(&ALL, accept), CodingPreference::negotiate(&ALL, other));
}
