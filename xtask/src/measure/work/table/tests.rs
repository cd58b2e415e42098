use super::super::servers::SERVERS;
use super::*;

fn vector(server: &str, round: u32, counted: f64) -> Vector {
    Vector {
        server: server.to_owned(),
        bytes: 1024,
        round,
        erms: true,
        figures: [
            ("counted_instructions_per_request", counted),
            ("pages_allocated_per_request", -0.01),
        ]
        .into(),
    }
}

#[test]
fn a_row_is_the_mean_of_its_rounds_and_auto_is_held_against_the_best() {
    let vectors = [
        vector("kettle-auto", 0, 10_000.0),
        vector("kettle-auto", 1, 12_000.0),
        vector("kettle-user", 0, 22_000.0),
        vector("kettle-kernel-write", 0, 11_000.0),
    ];
    let servers: Vec<&MeasuredServer> = SERVERS.iter().collect();
    let text = all(&vectors, &servers);
    assert!(text.contains("| kettle-auto | 11.0 |"), "{text}");
    assert!(text.contains("| auto ÷ kettle's best fixed path | 1.000 |"), "{text}");
    assert!(!text.contains("nginx's best") && !text.contains("-0.0"), "{text}");
}

#[test]
fn calls_of_one_more_request_leave_out_rare_ones() {
    let mut calls = Calls::default();
    for line in [
        "CALLS a 1 20 recvfrom 30",
        "CALLS a 1 20 futex 9",
        "CALLS a 1 120 recvfrom 130",
        "CALLS a 1 120 futex 10",
        "CALLS a 1 120 sendto 100",
    ] {
        calls.take(line);
    }
    assert_eq!(calls.of_one_more("a", 1).unwrap(), "recvfrom 1.00, sendto 1.00");
}
