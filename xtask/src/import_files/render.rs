//! A file as nginx can be given it: whole, with places that exist where it names what only its own machine has.

/// The text as a whole configuration. Puts a whole configuration around what is only a server, or part of one.
pub fn whole(text: &str, certificate: &str, key: &str) -> String {
    let text = without_placeholders(text);
    let words = top_words(&text);
    let has = |names: &[&str]| words.iter().any(|word| names.contains(&word.as_str()));
    let text: String = text
        .lines()
        .filter(|line| {
            let first = line.split_whitespace().next();
            !first.is_some_and(|first| OF_THE_MACHINE.contains(&first))
        })
        .map(|line| format!("{line}\n"))
        .collect();
    let events = "events { }\n";
    if has(&["http", "stream", "mail"]) {
        return if has(&["events"]) { text } else { format!("{events}{text}") };
    }
    let known = format!(
        "ssl_certificate {certificate};\nssl_certificate_key {key};\n{}",
        match text.contains("map $http_upgrade") {
            true => "",
            false => "map $http_upgrade $connection_upgrade { default upgrade; '' close; }\n",
        }
    );
    match has(&["server", "upstream", "map", "geo", "log_format", "proxy_cache_path"]) {
        true => format!("{events}http {{\n{known}{text}\n}}\n"),
        false => format!("{events}http {{\n{known}server {{ listen 80;\n{text}\n}}\n}}\n"),
    }
}

/// The names of its servers, as a certificate has them.
pub fn names(text: &str) -> Vec<String> {
    let said = text.split("server_name ").skip(1).filter_map(|rest| rest.split(';').next());
    let mut names = vec!["localhost".to_owned()];
    for name in said.flat_map(str::split_whitespace) {
        let is_letter = |it: char| it.is_ascii_alphanumeric() || ".-".contains(it);
        let rest = name.strip_prefix("*.").or(name.strip_prefix('.')).unwrap_or(name);
        if !rest.is_empty() && rest.contains('.') && rest.chars().all(is_letter) {
            names.extend([rest.to_owned(), format!("*.{rest}")]);
        }
    }
    names.sort();
    names.dedup();
    names.truncate(NAMES_MAX);
    names
}

pub fn has_server(text: &str) -> bool {
    let lines = text.lines().map(str::trim_start).filter(|line| !line.starts_with('#'));
    lines.flat_map(str::split_whitespace).any(|word| word == "server" || word == "server{")
}

/// Puts values in the place of those that come when a container starts (`${HOST}`) or a file is made (`{{ host }}`).
fn without_placeholders(text: &str) -> String {
    let mut new = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['$', '{']) {
        let (before, from) = rest.split_at(at);
        new.push_str(before);
        let found = [("${", "}"), ("{{", "}}")].into_iter().find_map(|(begin, end)| {
            let inner = from.strip_prefix(begin)?;
            let (name, after) = inner.split_once(end)?;
            let is_name = |it: char| it.is_ascii_alphanumeric() || "_ .-:".contains(it);
            let is_constant = begin == "{{" || !name.contains(|it: char| it.is_ascii_lowercase());
            (is_constant && !name.is_empty() && name.chars().all(is_name)).then_some((name, after))
        });
        match found {
            Some((name, after)) => {
                let is_port = name.to_ascii_lowercase().contains("port");
                new.push_str(if is_port { "8080" } else { "placeholder.example" });
                rest = after;
            }
            None => {
                let end = from.chars().next().map_or(0, char::len_utf8);
                let (letter, after) = from.split_at(end);
                new.push_str(letter);
                rest = after;
            }
        }
    }
    new + rest
}

/// The first words of the statements that stand in no block.
fn top_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut depth = 0_usize;
    let mut is_first = true;
    let mut word = String::new();
    let mut letters = text.chars().peekable();
    let mut quote = None;
    while let Some(letter) = letters.next() {
        if let Some(end) = quote {
            match letter {
                '\\' => drop(letters.next()),
                _ if letter == end => quote = None,
                _ => {}
            }
            continue;
        }
        match letter {
            '#' if word.is_empty() => while letters.next_if(|it| *it != '\n').is_some() {},
            '"' | '\'' if word.is_empty() => quote = Some(letter),
            '{' | '}' | ';' => {
                if !word.is_empty() && is_first && depth == 0 {
                    words.push(std::mem::take(&mut word));
                }
                word.clear();
                is_first = true;
                match letter {
                    '{' => depth += 1,
                    '}' => depth = depth.saturating_sub(1),
                    _ => {}
                }
            }
            _ if letter.is_whitespace() => {
                if !word.is_empty() {
                    if is_first && depth == 0 {
                        words.push(word.clone());
                    }
                    is_first = false;
                    word.clear();
                }
            }
            _ => word.push(letter),
        }
    }
    words
}

/// Statements about one machine: who serves, and what is there.
const OF_THE_MACHINE: [&str; 7] =
    ["daemon", "error_log", "load_module", "lock_file", "pid", "ssl_dhparam", "user"];
/// More than a certificate needs.
const NAMES_MAX: usize = 60;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_around_a_part_is_added() {
        let whole = |text: &str| whole(text, "c.pem", "c.key");
        let given = "events { }\nhttp { server { } }\n";
        assert_eq!(whole(given), given);
        assert!(whole("http { }").starts_with("events { }\nhttp { }"));
        assert!(whole("# a {\nserver { listen 80; }").contains("http {\nssl_certificate c.pem;"));
        assert!(whole("location / { }").contains("server { listen 80;\nlocation / { }"));
        assert!(!whole("user www;\nserver { }").contains("user"));
    }

    #[test]
    fn names_and_servers_are_found() {
        let text = "http { server{ server_name a.example .b.example ~^c _ *.d.example; } }";
        let expected = [
            "*.a.example",
            "*.b.example",
            "*.d.example",
            "a.example",
            "b.example",
            "d.example",
            "localhost",
        ];
        assert_eq!(names(text), expected);
        assert!(has_server(text) && !has_server("http {\n  # server {\n include a; }"));
    }

    #[test]
    fn only_what_is_put_in_beforehand_is_put_in() {
        let text = "listen ${PORT}; server_name {{ host }} $host ${host}; return 200 \"{}\";";
        let expected =
            "listen 8080; server_name placeholder.example $host ${host}; return 200 \"{}\";";
        assert_eq!(without_placeholders(text), expected);
    }

    #[test]
    fn words_of_blocks_are_not_those_of_the_file() {
        let text = "a b;\n# c d;\ne { f g; } \"h\" ; i \"j { k\";";
        assert_eq!(top_words(text), ["a", "e", "i"]);
    }
}
