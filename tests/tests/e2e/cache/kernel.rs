//! Kept responses on connections that the kernel encrypts.

use kettle_tests::kernel_counts::KernelCounts;

use super::*;

#[test]
fn what_arrives_and_what_is_kept_goes_out_by_sendfile() {
    if !kernel_tls_or_skip() {
        return;
    }
    for suite in ONE_OF_EACH_VERSION {
        let cached = Cached::start("");
        let counts = KernelCounts::now();
        let body = content(1_000_000);
        let connect = || Dialer::suite(suite).connect(cached.kettle.address());
        let [mut first, mut late, mut next] = [connect(), connect(), connect()];
        first.send(&get("/app/x")).unwrap();
        let mut server = cached.backend.accept_request();
        let head =
            "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\nCache-Control: max-age=100\r\n\r\n";
        server.write_all(head.as_bytes()).unwrap();
        server.write_all(&body[..400_000]).unwrap();
        first.response_head();
        assert_same(&first.receive_exactly(400_000), &body[..400_000], suite.name);
        late.send(&get("/app/x")).unwrap();
        late.response_head();
        assert_same(&late.receive_exactly(400_000), &body[..400_000], suite.name);
        server.write_all(&body[400_000..]).unwrap();
        for client in [&mut first, &mut late] {
            assert_same(&client.receive_exactly(600_000), &body[400_000..], suite.name);
            let entry = cached.kettle.entry("/app/x");
            assert_eq!((entry.path().as_str(), entry.is_complete()), ("kernel-sendfile", true));
        }
        cached.wait_until_kept("/app/x");
        let hit = next.get("/app/x");
        assert_hit(&hit);
        assert_same(&hit.body, &body, suite.name);
        assert_eq!(cached.kettle.entry("/app/x").path(), "kernel-sendfile");
        // Others may count meanwhile.
        assert!(counts.growth("TlsTxSw") >= 3);
    }
}
