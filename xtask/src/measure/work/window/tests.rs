use super::*;

#[test]
fn counts_are_found_by_name() {
    let windows = read("WINDOW 1 server.tasks=2 server.user.calls=7\nEND 1\n").unwrap();
    assert_eq!(windows[0].count("server.user.calls"), 7);
    assert_eq!(windows[0].count("server.user.copied"), 0);
}

#[test]
fn a_file_with_trouble_or_without_its_end_is_refused() {
    assert!(read("WINDOW 1 a=1\nTROUBLE more tasks\nEND 1").is_err_and(|why| why.contains("more")));
    assert!(read("WINDOW 1 a=1\n").is_err());
    assert!(read("WINDOW 1 a=x\nEND 1").is_err());
}

#[test]
fn known_work_must_be_counted_exactly() {
    let turns = |turns: u64| {
        let words: Vec<String> = KNOWN
            .iter()
            .map(|(name, known)| format!("client.user.{name}={}", 500 + turns * known))
            .collect();
        read(&format!("WINDOW 1 {}\nEND 1", words.join(" "))).unwrap().remove(0)
    };
    assert_eq!(check((10, &turns(10)), (20, &turns(20))), Ok(()));
    assert!(check((10, &turns(10)), (20, &turns(21))).is_err_and(|why| why.contains("22242")));
}
