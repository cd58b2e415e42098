//! PROXY headers: no panic, the same verdict however the bytes arrive, and what is read can be written and read again.
#![no_main]

use kettle_preamble::proxy::{Endpoints, Parse, Speaker, parse, write_v2};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|received: &[u8]| {
    let whole = parse(received);
    for end in [received.len() / 2, received.len().saturating_sub(1)] {
        match parse(&received[..end]) {
            Ok(Parse::Partial { missing_bytes }) => assert!(missing_bytes > 0),
            earlier => assert_eq!(earlier, whole),
        }
    }
    if let Ok(Parse::Complete { header, bytes }) = whole {
        assert!(bytes <= received.len());
        let tlvs: Vec<_> = header.tlvs.iter().collect();
        if let Endpoints::Inet { source, destination } = header.endpoints {
            let mut again = Vec::new();
            write_v2(Speaker::Client((source, destination)), &tlvs, &mut again);
            let Ok(Parse::Complete { header: second, bytes }) = parse(&again) else {
                panic!("what was written is not read");
            };
            assert_eq!((bytes, second.endpoints), (again.len(), header.endpoints));
            assert!(second.tlvs.iter().eq(tlvs));
        }
    }
});
