use std::net::{Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use super::*;

fn candidate(weight: u32, connections: u32) -> Candidate {
    Candidate { weight, connections, is_eligible: true, key: 0 }
}

fn servers(weights: &[u32]) -> Vec<Candidate> {
    let keyed = weights.iter().enumerate();
    keyed
        .map(|(at, weight)| Candidate { key: key_of(&at.to_string()), ..candidate(*weight, 0) })
        .collect()
}

fn client(number: u32) -> ClientHost {
    IpAddr::V4(Ipv4Addr::from_bits(number)).into()
}

#[test]
fn fewest_connections_count_for_the_weight() {
    assert_eq!(least_connections(&[candidate(1, 3), candidate(1, 2)], 0), Some(1));
    // Four of weight three are fewer than two of weight one: 5/3 < 3/1.
    assert_eq!(least_connections(&[candidate(1, 2), candidate(3, 4)], 0), Some(1));
    let out = Candidate { is_eligible: false, ..candidate(1, 0) };
    assert_eq!(least_connections(&[out, candidate(1, 9)], 0), Some(1));
    assert_eq!(least_connections(&[out], 7), None);
    assert_eq!(least_connections(&[], 7), None);
}

#[test]
fn equals_take_turns() {
    let equal = [candidate(2, 5); 3];
    let chosen: Vec<_> = (0..6).map(|turn| least_connections(&equal, turn).unwrap()).collect();
    assert_eq!(chosen, [0, 1, 2, 0, 1, 2]);
}

#[test]
fn round_robin_is_smooth() {
    let candidates = servers(&[5, 1, 1]);
    let mut credits = [0; 3];
    let chosen: Vec<_> = (0..7).map(|_| round_robin(&candidates, &mut credits).unwrap()).collect();
    assert_eq!(chosen, [0, 0, 1, 0, 2, 0, 0]);
    assert_eq!(credits, [0; 3]);
}

#[test]
fn who_is_out_gets_no_turn_and_makes_up_for_none() {
    let mut candidates = servers(&[1, 1, 1]);
    let mut credits = [0; 3];
    candidates[1].is_eligible = false;
    for _ in 0..100 {
        assert_ne!(round_robin(&candidates, &mut credits), Some(1));
    }
    candidates[1].is_eligible = true;
    let turns = (0..6).filter(|_| round_robin(&candidates, &mut credits) == Some(1)).count();
    assert_eq!(turns, 2);
}

#[test]
fn an_address_is_the_same_in_both_ways_to_write_it() {
    let candidates = servers(&[1; 8]);
    for number in 0..64 {
        let mapped = Ipv4Addr::from_bits(number).to_ipv6_mapped();
        let chosen = source_hash(&candidates, client(number));
        assert_eq!(source_hash(&candidates, IpAddr::V6(mapped).into()), chosen);
    }
    let six = (0..64_u16).map(|low| Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, low));
    let mut chosen: Vec<_> =
        six.map(|it| source_hash(&candidates, IpAddr::V6(it).into()).unwrap()).collect();
    chosen.sort_unstable();
    chosen.dedup();
    assert_eq!(chosen.len(), 8);
}

#[test]
fn clients_of_one_network_have_one_server() {
    let place = |text: &str| network_of(text.parse::<IpAddr>().unwrap().into());
    assert_eq!(place("192.0.2.1"), place("192.0.2.255"));
    assert_eq!(place("::ffff:192.0.2.1"), place("192.0.2.9"));
    assert_ne!(place("192.0.2.1"), place("192.0.3.1"));
    assert_ne!(place("2001:db8::1"), place("2001:db8::2"));
    assert_eq!(network_of(ClientHost::Unix), ClientHost::Unix);
}

#[test]
fn clients_stay_where_they_are_over_versions_of_the_program() {
    // If this fails, every client moves at an upgrade, and hosts of two versions disagree.
    let addresses = ["10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80"];
    let candidates = addresses.map(|text| Candidate { key: key_of(text), ..candidate(1, 0) });
    let chosen: Vec<_> =
        (0..12).map(|at| source_hash(&candidates, client(0xc000_0200 + at)).unwrap()).collect();
    assert_eq!(chosen, GOLDEN);
}

const GOLDEN: [usize; 12] = [2, 1, 0, 1, 0, 1, 1, 2, 0, 2, 2, 0];

#[test]
fn the_first_that_may_is_the_first() {
    let mut candidates = servers(&[1, 1]);
    assert_eq!(first(&candidates), Some(0));
    candidates[0].is_eligible = false;
    assert_eq!(first(&candidates), Some(1));
    candidates[1].is_eligible = false;
    assert_eq!(first(&candidates), None);
}

fn any_candidates() -> impl Strategy<Value = Vec<Candidate>> {
    let one = (1..1_000_u32, 0..1_000_000_u32, any::<bool>(), any::<u64>());
    let one = one.prop_map(|(weight, connections, is_eligible, key)| Candidate {
        weight,
        connections,
        is_eligible,
        key,
    });
    prop::collection::vec(one, 0..12)
}

proptest! {
    #[test]
    fn all_choose_whoever_is_eligible(candidates in any_candidates(), random in any::<u64>()) {
        let mut credits = vec![0; candidates.len()];
        let choices = [
            least_connections(&candidates, random as usize),
            round_robin(&candidates, &mut credits),
            random_two(&candidates, random),
            source_hash(&candidates, client(random as u32)),
            first(&candidates),
        ];
        for choice in choices {
            prop_assert_eq!(choice.is_some(), candidates.iter().any(|it| it.is_eligible));
            if let Some(index) = choice {
                prop_assert!(candidates[index].is_eligible);
            }
        }
    }

    #[test]
    fn round_robin_is_exact_over_a_whole_round(weights in prop::collection::vec(1..20_u32, 1..8)) {
        let candidates = servers(&weights);
        let mut credits = vec![0; weights.len()];
        let mut turns = vec![0; weights.len()];
        for _ in 0..weights.iter().sum() {
            turns[round_robin(&candidates, &mut credits).unwrap()] += 1;
        }
        prop_assert_eq!(turns, weights);
    }

    #[test]
    fn connections_settle_by_weight(weights in prop::collection::vec(1..20_u32, 1..8)) {
        let mut candidates = servers(&weights);
        for turn in 0..(10 * weights.iter().sum::<u32>()) as usize {
            let index = least_connections(&candidates, turn).unwrap();
            candidates[index].connections += 1;
        }
        for it in &candidates {
            prop_assert!(it.connections.abs_diff(10 * it.weight) <= it.weight, "{candidates:?}");
        }
    }

    #[test]
    fn hashing_shares_by_weight(weights in prop::collection::vec(1..10_u32, 2..6), from in any::<u32>()) {
        let candidates = servers(&weights);
        let total: u32 = weights.iter().sum();
        let mut clients = vec![0.0; weights.len()];
        for number in 0..4_000 {
            clients[source_hash(&candidates, client(from.wrapping_add(number))).unwrap()] += 1.0;
        }
        for (weight, share) in weights.iter().zip(clients) {
            let expected = 4_000.0 * f64::from(*weight) / f64::from(total);
            // Five standard deviations, and a little for the few.
            prop_assert!((share - expected).abs() < 5.0 * expected.sqrt() + 10.0, "{share} of {expected}");
        }
    }

    #[test]
    fn a_lost_server_moves_only_its_own_clients(
        mut candidates in any_candidates(), lost in any::<prop::sample::Index>(), number in any::<u32>()
    ) {
        prop_assume!(!candidates.is_empty());
        let before = source_hash(&candidates, client(number));
        let lost = lost.index(candidates.len());
        candidates[lost].is_eligible = false;
        let after = source_hash(&candidates, client(number));
        if before != Some(lost) {
            prop_assert_eq!(before, after);
        }
    }

    #[test]
    fn one_weight_that_grows_only_takes(
        mut candidates in any_candidates(), grown in any::<prop::sample::Index>(), number in any::<u32>()
    ) {
        prop_assume!(!candidates.is_empty());
        let before = source_hash(&candidates, client(number));
        let grown = grown.index(candidates.len());
        candidates[grown].weight *= 2;
        let after = source_hash(&candidates, client(number));
        prop_assert!(after == before || after == Some(grown));
    }

    #[test]
    fn of_two_the_busier_is_spared(random in any::<u64>()) {
        prop_assert_eq!(random_two(&[candidate(1, 9), candidate(1, 3)], random), Some(1));
        prop_assert_eq!(random_two(&[candidate(1, 9)], random), Some(0));
    }

    #[test]
    fn the_busiest_of_many_is_never_drawn(random in any::<u64>()) {
        let candidates = [candidate(1, 3), candidate(1, 9), candidate(1, 3), candidate(1, 4)];
        prop_assert_ne!(random_two(&candidates, random), Some(1));
    }
}

#[test]
fn lots_are_drawn_by_weight() {
    let candidates = servers(&[1, 3]);
    let drawn =
        (0..4_000).filter(|random| draw(&candidates, None, mix(*random)) == Some(1)).count();
    assert!(drawn.abs_diff(3_000) < 150, "{drawn}");
}
