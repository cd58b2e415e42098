use std::time::Duration;

use super::*;
use crate::load::{Arrivals, Reuse};

fn load() -> Load {
    Load::once(([127, 0, 0, 1], 1).into(), Duration::from_secs(1))
}

#[test]
fn loads_without_sense_are_refused() {
    assert!(check(&load()).is_ok());
    let second = Duration::from_secs(1);
    let never = Arrivals::Constant { per_second: 0.0 };
    let reuse = load().reuse;
    for senseless in [
        Load { cpus: vec![], ..load() },
        Load { model: LoadModel::Closed { connections: 0 }, ..load() },
        Load { model: LoadModel::Open { arrivals: never, transactions_max: 1 }, ..load() },
        Load {
            model: LoadModel::Streaming { connections: 1, interval: second, spread: second * 2 },
            ..load()
        },
        Load { reuse: Reuse { connections_per_session: 0, ..reuse }, ..load() },
        Load { reuse: Reuse { requests_per_connection: Some(0), ..reuse }, ..load() },
        Load { warm_up: second, ..load() },
        Load { timeout: Duration::ZERO, ..load() },
    ] {
        let refused = check(&senseless);
        let why = refused.unwrap_err().to_string();
        assert!(why.starts_with("this load cannot be carried out"), "{senseless:?}: {why}");
    }
}

#[test]
fn more_connections_than_files_are_refused_with_what_to_do() {
    let model = LoadModel::Idle { connections: u32::MAX, requests: 0 };
    let error = check(&Load { model, sources: 200, ..load() }).unwrap_err();
    assert!(error.to_string().contains("ulimit"), "{error}");
}

#[test]
fn more_connections_than_ports_are_refused() {
    let model = LoadModel::Idle { connections: 100_000, requests: 0 };
    let few = Load { model, ..load() };
    let error = check_ports(&few, 100_000).unwrap_err();
    assert!(error.to_string().contains("with 1 source addresses"), "{error}");
    let many = Load { sources: 250, ..few };
    assert!(check_ports(&many, 100_000).is_ok());
    // Only loopback has more addresses.
    assert_eq!(sources(&Load { target: ([192, 0, 2, 1], 1).into(), ..many }), 1);
}
