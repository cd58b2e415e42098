//! The output of other clients, read.

use super::*;

#[test]
fn what_clients_print_is_understood() {
    let wrk = "  3709 requests in 1.01s, 354.63MB read\nRequests/sec:   3666.25\n";
    let found = Found { requests: 3709.0, per_second: Some(3666.25) };
    assert_eq!(Client::Wrk.read(wrk), Some(found));

    let h2load = "finished in 1.01s, 2107.00 req/s, 201.43MB/s\n\
                  requests: 2107 total, 2112 started, 2107 done, 2105 succeeded, 0 failed, 0 errored, 0 timeout\n";
    let found = Found { requests: 2105.0, per_second: Some(2107.0) };
    assert_eq!(Client::H2load.read(h2load), Some(found));

    let s_time = "starting\n***\n\n1699 connections in 0.23s; 7386.96 connections/user sec, bytes read 17\n\
                  1699 connections in 2 real seconds, 1024 bytes read per connection\n";
    let client = Client::STime { version: "1.2", is_resuming: true };
    assert_eq!(client.read(s_time), Some(Found { requests: 1699.0, per_second: None }));

    let kettle =
        r#"{"succeeded": 10, "requests_per_second": 5.5, "failures": {}, "not_as_asked": null}"#;
    let found = Found { requests: 10.0, per_second: Some(5.5) };
    assert_eq!(Client::Kettle.read(kettle), Some(found));
}

#[test]
fn an_answer_with_failures_is_none() {
    let wrk = "  37 requests in 1.01s, 3MB read\n  Socket errors: connect 0, read 3\nRequests/sec:   36.25\n";
    assert_eq!(Client::Wrk.read(wrk), None);
    let h2load = "finished in 1.01s, 2107.00 req/s, 201.43MB/s\n\
                  requests: 2107 total, 2112 started, 2107 done, 2105 succeeded, 2 failed, 0 errored, 0 timeout\n";
    assert_eq!(Client::H2load.read(h2load), None);
    let kettle = r#"{"succeeded": 10, "requests_per_second": 5.5, "failures": {"reset": 1}, "not_as_asked": null}"#;
    assert_eq!(Client::Kettle.read(kettle), None);
    assert_eq!(Client::Kettle.read("fault"), None);
}
