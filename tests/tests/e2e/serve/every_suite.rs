//! Every suite and size with the records made in user space.

use kettle_tests::content::SIZES;
use kettle_tests::kernel_counts::KernelCounts;

use super::*;

#[test]
fn every_suite_carries_every_size_in_user_space() {
    let kettle = Kettle::start(Setup::path("user").sizes(&SIZES).without_memory().alone());
    let counts = KernelCounts::now();
    for suite in SUITES {
        let mut client = kettle.connect(suite);
        for bytes in SIZES.into_iter().chain(SIZES.into_iter().rev()) {
            let response = client.get(&format!("/{bytes}"));
            assert_eq!(response.status, 200);
            assert_same(&response.body, &content(bytes), suite.name);
            let entry = kettle.entry(&format!("/{bytes}"));
            assert_eq!(entry.path(), "user");
            assert_eq!(entry.text("suite"), suite.name);
            assert_eq!(entry.text("tls_version"), suite.version_name);
        }
    }
    assert_eq!(counts.growth("TlsTxSw"), 0);
}

#[test]
fn a_large_file_is_carried_in_user_space() {
    let bytes = scaled(64 << 20, 16 << 20);
    let kettle = Kettle::start(Setup::path("user").sizes(&[bytes]));
    let response = kettle.connect(TLS13_AES_128).get(&format!("/{bytes}"));
    assert_same(&response.body, &content(bytes), "user");
}

#[test]
fn small_files_are_served_from_memory_alike() {
    let kettle = Kettle::start(Setup::path("user").sizes(&SIZES));
    let mut client = kettle.connect(SUITES[0]);
    // The second time they are in memory.
    for bytes in SIZES.into_iter().chain(SIZES) {
        assert_same(&client.get(&format!("/{bytes}")).body, &content(bytes), "a file");
    }
}
