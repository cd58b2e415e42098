use super::*;

fn windows() -> Vec<Window> {
    let known = |turns: u64| {
        format!(
            "WINDOW 0 client.user.instructions={} client.user.copied={} client.user.filled={} client.user.blocks={} client.user.rounds={} client.user.calls={turns}\n",
            turns * 2022,
            turns * 4196,
            turns * 2048,
            turns * 3,
            turns * 12
        )
    };
    let run = |requests: u64| {
        format!(
            "WINDOW 0 server.user.instructions={} server.kernel.instructions={} server.kernel.repeats={} server.kernel.copied={} server.user.blocks={} server.user.calls={} server.switches={}\n",
            requests * 100,
            requests * 200,
            requests * 1024,
            requests * 2048,
            requests * 65,
            requests * 3,
            requests
        )
    };
    let text = format!("{}{}{}{}END 4", known(10), known(20), run(20), run(120));
    window::read(&text).unwrap()
}

fn lines(lines: &[&str]) -> GuestLines {
    let mut taken = GuestLines::default();
    lines.iter().for_each(|line| taken.take(line));
    taken
}

fn user() -> &'static MeasuredServer {
    super::super::servers::SERVERS.iter().find(|server| server.name == "kettle-user").unwrap()
}

#[test]
fn one_more_request_is_the_difference_of_two_numbers() {
    let lines = lines(&[
        "MACHINE kernel 7.3.4",
        "KNOWN 10 1",
        "KNOWN 20 2",
        "WORK kettle-user 1 0 20 3 26480 7 0",
        "WORK kettle-user 1 0 120 4 158880 57 0",
    ]);
    assert_eq!(lines.machine("kernel"), "7.3.4");
    let vectors = lines.vectors(&windows(), &[user()], true).unwrap();
    let figure = |name| mean(&vectors, "kettle-user", 1024, true, name).unwrap();
    assert_eq!(figure("instructions_per_request"), 300.0);
    assert_eq!(figure("counted_instructions_per_request"), 1324.0);
    assert_eq!(figure("copied_bytes_per_byte"), 2.0);
    assert_eq!(figure("aes_blocks_per_byte"), 65.0 / 1024.0);
    assert_eq!(figure("calls_per_request"), 3.0);
    assert_eq!(figure("pages_allocated_per_request"), 0.5);
    assert_eq!(mean(&vectors, "kettle-user", 1024, false, "calls_per_request"), None);
}

#[test]
fn a_path_not_taken_is_an_error() {
    let lines = lines(&[
        "KNOWN 10 1",
        "KNOWN 20 2",
        "WORK kettle-user 1 0 20 3 26480 7 1",
        "WORK kettle-user 1 0 120 4 158880 57 0",
    ]);
    let why = lines.vectors(&windows(), &[user()], true).unwrap_err();
    assert_eq!(why, "kettle-user took another path for 1 KiB");
}

#[test]
fn a_clock_that_disagrees_with_the_plugin_is_an_error() {
    let lines = lines(&[
        "KNOWN 10 1",
        "KNOWN 20 2",
        "WORK kettle-user 1 0 20 3 26480 7 0",
        "WORK kettle-user 1 0 120 4 170000 57 0",
    ]);
    assert!(lines.vectors(&windows(), &[user()], true).is_err_and(|why| why.contains("clock")));
}

#[test]
fn an_unchecked_plugin_is_an_error() {
    assert!(lines(&[]).vectors(&windows(), &[user()], true).is_err());
}
