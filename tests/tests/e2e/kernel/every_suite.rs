//! Every suite and size by every path through the kernel: the bytes are right, the log tells the path, and the kernel
//! counted exactly the connections that moved.

use kettle_tests::content::SIZES;
use kettle_tests::environment::THROUGH_THE_KERNEL;

use super::*;

/// One connection by each path, with sizes that grow and shrink.
#[test]
fn every_suite_is_carried_by_every_path() {
    let setup = Setup::paths(&THROUGH_THE_KERNEL).sizes(&SIZES).without_memory();
    let Some(kettle) = Kettle::start_in_kernel(setup.alone()) else { return };
    let ways = THROUGH_THE_KERNEL.into_iter().flat_map(|path| SUITES.map(|suite| (path, suite)));
    for (path, suite) in ways {
        let counts = KernelCounts::now();
        let mut client = kettle.connect_by(path, suite);
        for bytes in SIZES.into_iter().chain(SIZES.into_iter().rev()) {
            let response = client.get(&format!("/{bytes}"));
            assert_same(&response.body, &content(bytes), path);
        }
        for _ in 0..2 {
            let entry = kettle.entry("/1048576");
            assert_eq!(entry.path(), taken(path, 1 << 20));
            assert_eq!(entry.text("suite"), suite.name);
            assert_eq!(entry.text("tls_version"), suite.version_name);
        }
        assert_eq!(counts.growth("TlsTxSw"), 1, "{path} {}", suite.name);
    }
}

#[test]
fn every_size_can_be_the_first_that_the_kernel_encrypts() {
    let setup = Setup::paths(&THROUGH_THE_KERNEL).sizes(&SIZES).without_memory();
    let Some(kettle) = Kettle::start_in_kernel(setup.alone()) else { return };
    for (path, suite) in
        THROUGH_THE_KERNEL.into_iter().zip([TLS13_AES_128, TLS12_AES_128, TLS13_AES_128])
    {
        let counts = KernelCounts::now();
        let mut moved = 0;
        for bytes in SIZES {
            let target = format!("/{bytes}");
            let response = kettle.connect_by(path, suite).get(&target);
            assert_same(&response.body, &content(bytes), path);
            let entry = kettle.entry(&target);
            assert_eq!(entry.path(), taken(path, bytes), "{bytes} bytes by {path}");
            moved += u64::from(entry.path() != "user");
        }
        assert_eq!(counts.growth("TlsTxSw"), moved, "{path}");
    }
}

/// The path of a response to the first request where `configured` is what the configuration says.
fn taken(configured: &str, bytes: usize) -> &'static str {
    match (configured, bytes) {
        ("auto", ..CROSSOVER) => "user",
        ("auto", _) => "kernel-sendfile",
        // There is nothing to send from.
        ("kernel-sendfile", 1..) => "kernel-sendfile",
        _ => "kernel-write",
    }
}

#[test]
fn a_large_file_is_carried_by_every_path() {
    let bytes = scaled(64 << 20, 16 << 20);
    let Some(kettle) =
        Kettle::start_in_kernel(Setup::paths(&THROUGH_THE_KERNEL).sizes(&[bytes]).alone())
    else {
        return;
    };
    for path in THROUGH_THE_KERNEL {
        let counts = KernelCounts::now();
        let response = kettle.connect_by(path, TLS13_AES_128).get(&format!("/{bytes}"));
        assert_same(&response.body, &content(bytes), path);
        assert_eq!(counts.growth("TlsTxSw"), 1);
    }
}

/// Where `auto` moves a connection, unless the configuration says otherwise.
const CROSSOVER: usize = 65_536;
