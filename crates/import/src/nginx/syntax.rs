//! The grammar of nginx.conf: words that end in `;` or in a block. Source: `ngx_conf_read_token`, and nginx's own beginner's
//! guide.

use std::path::Path;

use kettle_config::{Diagnostic, Excerpt, Origin, Position};

/// A name with its arguments, and its block if it has one.
#[derive(Clone, Debug)]
pub(super) struct Directive {
    pub(super) name: String,
    pub(super) words: Vec<String>,
    pub(super) block: Option<Vec<Directive>>,
    /// The place of its name.
    pub(super) origin: Origin,
}

impl Directive {
    /// An argument, by its number from 0.
    pub(super) fn word(&self, index: usize) -> &str {
        self.words.get(index).map_or("", String::as_str)
    }

    pub(super) fn inner(&self) -> &[Self] {
        self.block.as_deref().unwrap_or_default()
    }
}

pub(super) fn parse(path: &Path, text: &str) -> Result<Vec<Directive>, Vec<Diagnostic>> {
    let at = Cursor { position: Position { line: 1, column: 1 }, offset: 0 };
    let mut reader = Reader { path, text, at, depth: 0 };
    reader.directives(None).map_err(|diagnostic| vec![*diagnostic])
}

/// One mistake: what follows it could mean anything.
type Wrong = Box<Diagnostic>;

struct Reader<'t> {
    path: &'t Path,
    text: &'t str,
    /// The end of the part that has been read.
    at: Cursor,
    depth: usize,
}

#[derive(Clone, Copy)]
struct Cursor {
    position: Position,
    offset: usize,
}

enum Token {
    Word(String),
    Semicolon,
    Open,
    Close,
    End,
}

impl Reader<'_> {
    fn origin(&self, at: Cursor, written: &str) -> Origin {
        Origin {
            path: self.path.to_path_buf(),
            at: at.position,
            written: written.to_owned(),
            source_line: Some(Excerpt::around(self.text, at.offset)),
        }
    }

    fn behind(&self, at: Cursor) -> &str {
        self.text.get(at.offset..).unwrap_or_default()
    }

    fn wrong(&self, at: Cursor, written: &str, message: &str, help: &str) -> Wrong {
        Box::new(self.origin(at, written).diagnostic(message, Some(help.to_owned())))
    }

    fn next(&mut self) -> Option<char> {
        let letter = self.peek()?;
        self.at.offset += letter.len_utf8();
        let position = &mut self.at.position;
        match letter {
            '\n' => *position = Position { line: position.line + 1, column: 1 },
            _ => position.column += 1,
        }
        Some(letter)
    }

    fn peek(&self) -> Option<char> {
        self.behind(self.at).chars().next()
    }

    /// Directives to the end of the file, or of the block that began at `opened`.
    fn directives(&mut self, opened: Option<&Origin>) -> Result<Vec<Directive>, Wrong> {
        let mut all = Vec::new();
        loop {
            let (at, token) = self.token()?;
            match (token, opened) {
                (Token::End, None) | (Token::Close, Some(_)) => return Ok(all),
                (Token::End, Some(opened)) => {
                    let help = Some("write a `}` behind its last directive".to_owned());
                    return Err(Box::new(opened.diagnostic("this block is never closed", help)));
                }
                (Token::Close, None) => {
                    let message = "no block is open here";
                    return Err(self.wrong(at, "}", message, "remove it"));
                }
                (Token::Semicolon, _) => {
                    let message = "a directive should stand before this";
                    return Err(self.wrong(at, ";", message, "remove it"));
                }
                (Token::Open, _) => {
                    let message = "the name of a block should stand before this";
                    return Err(self.wrong(at, "{", message, "write `server {`, say"));
                }
                (Token::Word(name), _) => {
                    let origin = self.origin(at, &name);
                    all.push(self.directive(name, origin)?);
                }
            }
        }
    }

    fn directive(&mut self, name: String, origin: Origin) -> Result<Directive, Wrong> {
        let mut words = Vec::new();
        loop {
            let (at, token) = self.token()?;
            match token {
                Token::Word(word) => words.push(word),
                Token::Semicolon => return Ok(Directive { name, words, block: None, origin }),
                Token::Open if name.ends_with("_by_lua_block") => {
                    self.skip_program(&origin)?;
                    return Ok(Directive { name, words, block: Some(Vec::new()), origin });
                }
                Token::Open => {
                    if self.depth == DEPTH_MAX {
                        let message = "blocks are too deep in each other";
                        return Err(self.wrong(at, "{", message, "write fewer of them"));
                    }
                    self.depth += 1;
                    let block = Some(self.directives(Some(&origin))?);
                    self.depth -= 1;
                    return Ok(Directive { name, words, block, origin });
                }
                Token::Close | Token::End => {
                    let message = format!("`{name}` does not end: a `;` is missing");
                    let help = Some("write a `;` behind it".to_owned());
                    return Err(Box::new(origin.diagnostic(message, help)));
                }
            }
        }
    }

    /// Lua is none of ours; its braces are in pairs.
    fn skip_program(&mut self, opened: &Origin) -> Result<(), Wrong> {
        let mut depth = 1_usize;
        while let Some(letter) = self.next() {
            depth += usize::from(letter == '{');
            depth -= usize::from(letter == '}');
            if depth == 0 {
                return Ok(());
            }
        }
        let help = Some("write a `}` behind the program".to_owned());
        Err(Box::new(opened.diagnostic("this block is never closed", help)))
    }

    fn token(&mut self) -> Result<(Cursor, Token), Wrong> {
        loop {
            match self.peek() {
                Some('#') => while self.next().is_some_and(|letter| letter != '\n') {},
                // A byte order mark is white, too.
                Some(letter) if letter.is_whitespace() || letter == '\u{feff}' => {
                    self.next();
                }
                _ => break,
            }
        }
        let at = self.at;
        let token = match self.peek() {
            None => Token::End,
            Some(';') => Token::Semicolon,
            Some('{') => Token::Open,
            Some('}') => Token::Close,
            Some(quote @ ('"' | '\'')) => {
                self.next();
                return Ok((at, Token::Word(self.quoted(at, quote)?)));
            }
            Some(_) => return Ok((at, Token::Word(self.bare()))),
        };
        self.next();
        Ok((at, token))
    }

    fn quoted(&mut self, at: Cursor, quote: char) -> Result<String, Wrong> {
        let mut word = String::new();
        loop {
            match self.next() {
                None => {
                    let message = format!("this text has no {quote} at its end");
                    let written = self.behind(at).lines().next().unwrap_or_default();
                    let help = format!("write a {quote} behind it");
                    return Err(self.wrong(at, written, &message, &help));
                }
                Some('\\') => self.escaped(&mut word),
                Some(letter) if letter == quote => break,
                Some(letter) => word.push(letter),
            }
        }
        match self.peek() {
            None | Some(';' | '{' | ')') => Ok(word),
            Some(letter) if letter.is_whitespace() => Ok(word),
            Some(letter) => {
                let message = "a quoted text ends before a space, a `;` or a `{`";
                let help = "write a space there, or all of it inside the quotes";
                Err(self.wrong(self.at, &letter.to_string(), message, help))
            }
        }
    }

    fn bare(&mut self) -> String {
        let mut word = String::new();
        let mut is_variable = false;
        while let Some(letter) = self.peek() {
            let ends = letter == ';' || letter.is_whitespace() || (letter == '{' && !is_variable);
            if ends {
                break;
            }
            self.next();
            is_variable = letter == '$';
            match letter {
                '\\' => self.escaped(&mut word),
                letter => word.push(letter),
            }
        }
        word
    }

    /// The letter that follows a backslash: some letters lose it, as in a regular expression most do not.
    fn escaped(&mut self, word: &mut String) {
        match self.next() {
            Some(letter @ ('"' | '\'' | '\\')) => word.push(letter),
            Some('t') => word.push('\t'),
            Some('r') => word.push('\r'),
            Some('n') => word.push('\n'),
            Some(letter) => word.extend(['\\', letter]),
            None => word.push('\\'),
        }
    }
}

/// nginx's own configurations are five deep.
const DEPTH_MAX: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_one_line_is_not_kept_once_for_each_directive() {
        let directives = parse(Path::new("nginx.conf"), &"set $a \"é\"; ".repeat(10_000)).unwrap();
        let last = directives.last().unwrap().origin.clone();
        assert_eq!((directives.len(), last.at.column), (10_000, 9999 * 12 + 1));
        let shown = last.diagnostic("wrong", None).to_string();
        assert!(shown.contains("; set $a \"é\";\n") && shown.len() < 300, "{shown}");
        assert!(format!("{last:?}").len() < 1000, "{last:?}");
    }
}
