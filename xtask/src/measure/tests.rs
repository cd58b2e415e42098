use super::configs::ConfigInput;
use super::*;

fn parse(words: &str) -> Result<MeasureArguments, String> {
    MeasureArguments::parse(&words.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
}

#[test]
fn only_picks_by_part_of_the_name() {
    let arguments = parse("--rounds 3 --only auto,nginx").unwrap();
    assert_eq!(arguments.rounds, Some(3));
    assert!(arguments.wants("kettle-auto") && !arguments.wants("kettle-user"));
    assert!(parse("").unwrap().wants("kettle-user"));
}

#[test]
fn nonsense_is_refused() {
    assert!(
        parse("--rounds").is_err() && parse("--rounds 0").is_err() && parse("--fast 1").is_err()
    );
}

#[test]
fn no_word_of_a_configuration_stays_unfilled() {
    let input =
        ConfigInput { folder: "/f", site: "/s", port: 8443, has_http2: true, is_confined: true };
    for text in [input.kettle("auto", "0 B"), input.nginx(true, false), input.proxied("user")] {
        let settings = text.lines().filter(|line| !line.trim_start().starts_with('#'));
        assert!(settings.clone().count() > 10);
        assert!(settings.into_iter().all(|line| !line.contains('@')), "{text}");
    }
    let proxied = input.proxied("user");
    assert!(proxied.contains("[[site.route]]\nbackend = \"plain\"") && !proxied.contains("cache"));
}
