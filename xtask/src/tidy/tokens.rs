//! The facts that `tidy` needs on one Rust file, read from its tokens.
//!
//! Tokens rather than a syntax tree: comments and strings are out of the way, and the insides of
//! macros are seen like everything else.

use std::str::FromStr;

use proc_macro2::{Delimiter, Group, Spacing, TokenStream, TokenTree};

mod packed;

#[derive(Debug, Default)]
pub struct Facts {
    /// The files it declares with `mod name;`.
    pub declarations: Vec<Declaration>,
    /// The paths into its own crate it mentions, resolved to the crate's root.
    pub references: Vec<Reference>,
    /// The paths beginning with a name, as `std::fs` or `sibling::Item`.
    pub names: Vec<Reference>,
    /// The lines where `unsafe` stands.
    pub unsafe_lines: Vec<usize>,
    /// The lines where a `let` packs names and values into tuples.
    pub packed_lines: Vec<usize>,
    pub forbids_unsafe: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Declaration {
    /// The module's path from the crate's root, its own name last.
    pub path: Vec<String>,
    /// The inline modules of this file it stands in, outermost first.
    pub inside: Vec<String>,
    /// True if a `#[path]` attribute stands before it.
    pub has_path_attribute: bool,
    /// True if only `cargo test` compiles it.
    pub is_for_tests: bool,
    pub line: usize,
}

/// A path into a crate.
#[derive(Debug, PartialEq, Eq)]
pub struct Reference {
    /// Its segments: from the crate's root, or from the name it begins with.
    pub path: Vec<String>,
    /// The name by which a `use` makes it known where it stands.
    pub imported_as: Option<String>,
    /// True if only `cargo test` compiles the inline module it stands in.
    pub is_for_tests: bool,
    pub line: usize,
}

impl Facts {
    /// Reads a file that is the module `module`, counted from the crate's root.
    pub fn read(text: &str, module: &[String]) -> Result<Self, String> {
        let stream = TokenStream::from_str(text)
            .map_err(|error| format!("line {}: {error}", error.span().start().line))?;
        let mut reader = Reader {
            module,
            inside: Vec::new(),
            is_for_tests: false,
            is_import: false,
            facts: Self::default(),
        };
        reader.stream(stream);
        Ok(reader.facts)
    }
}

struct Reader<'m> {
    module: &'m [String],
    inside: Vec<String>,
    is_for_tests: bool,
    /// True if it reads between a `use` and its semicolon.
    is_import: bool,
    facts: Facts,
}

impl Reader<'_> {
    fn stream(&mut self, stream: TokenStream) {
        let tokens: Vec<TokenTree> = stream.into_iter().collect();
        let mut index = 0;
        while let Some(token) = tokens.get(index) {
            index += match token {
                TokenTree::Ident(word) => {
                    let line = word.span().start().line;
                    self.word(&word.to_string(), line, &tokens, index)
                }
                TokenTree::Group(group) => {
                    self.group(group, is_inner_attribute(&tokens, index));
                    1
                }
                TokenTree::Punct(mark) => {
                    self.is_import &= mark.as_char() != ';';
                    1
                }
                TokenTree::Literal(_) => 1,
            };
        }
    }

    /// Reads from the word at `index`; returns how many tokens it took.
    fn word(&mut self, word: &str, line: usize, tokens: &[TokenTree], index: usize) -> usize {
        match word {
            "unsafe" => {
                self.facts.unsafe_lines.push(line);
                1
            }
            "let" => {
                let behind = tokens.get(index + 1..).unwrap_or_default();
                self.facts.packed_lines.extend(packed::is_packed(behind).then_some(line));
                1
            }
            "use" => {
                // `use<'a>` behind an `impl` is no import.
                self.is_import = !is_mark(tokens, index + 1, '<');
                1
            }
            "mod" => self.module_word(line, tokens, index),
            _ if is_separator(tokens, index + 1) && !is_after_separator(tokens, index) => {
                let here: Vec<_> = self.module.iter().chain(&self.inside).cloned().collect();
                let (base, is_own) = match word {
                    "crate" => (Vec::new(), true),
                    "self" => (here, true),
                    "super" => (parent(here), true),
                    name => (vec![name.to_owned()], false),
                };
                self.path(base, is_own, line, tokens, index + 3)
                    .map_or(1, |end| end.saturating_sub(index))
            }
            _ => 1,
        }
    }

    fn module_word(&mut self, line: usize, tokens: &[TokenTree], index: usize) -> usize {
        let Some(TokenTree::Ident(name)) = tokens.get(index + 1) else { return 1 };
        let name = name.to_string();
        let attributes = attributes(tokens, index);
        let is_for_tests = self.is_for_tests || attributes.iter().any(|it| it == "cfg(test)");
        match tokens.get(index + 2) {
            Some(TokenTree::Punct(end)) if end.as_char() == ';' => {
                let path = self.module.iter().chain(&self.inside).cloned().chain([name]).collect();
                let inside = self.inside.clone();
                let has_path_attribute = attributes.iter().any(|it| it.starts_with("path="));
                self.facts.declarations.push(Declaration {
                    path,
                    inside,
                    has_path_attribute,
                    is_for_tests,
                    line,
                });
                3
            }
            Some(TokenTree::Group(body)) if body.delimiter() == Delimiter::Brace => {
                self.inside.push(name);
                let outer = std::mem::replace(&mut self.is_for_tests, is_for_tests);
                self.stream(body.stream());
                self.is_for_tests = outer;
                self.inside.pop();
                3
            }
            _ => 1,
        }
    }

    fn group(&mut self, group: &Group, is_inner_attribute: bool) {
        if is_inner_attribute {
            self.facts.forbids_unsafe |= squeezed(group) == "forbid(unsafe_code)";
        }
        self.stream(group.stream());
    }

    /// Follows a path whose next segment is at `index`, and records where it ends; returns the
    /// index after it.
    fn path(
        &mut self,
        mut base: Vec<String>,
        is_own: bool,
        line: usize,
        tokens: &[TokenTree],
        mut index: usize,
    ) -> Option<usize> {
        loop {
            match tokens.get(index)? {
                TokenTree::Ident(segment) => {
                    match segment.to_string().as_str() {
                        "super" => base = parent(base),
                        "self" => {}
                        segment => base.push(segment.to_owned()),
                    }
                    index += 1;
                    if !is_separator(tokens, index) {
                        break;
                    }
                    index += 2;
                }
                TokenTree::Group(branches) if branches.delimiter() == Delimiter::Brace => {
                    self.branches(&base, is_own, branches);
                    return Some(index + 1);
                }
                // A glob, or the `<` of a turbofish, which the caller reads on from.
                TokenTree::Punct(_) | TokenTree::Group(_) | TokenTree::Literal(_) => break,
            }
        }
        let imported_as = self.is_import.then(|| renamed(tokens, index).or(base.last().cloned()));
        let reference = Reference {
            path: base,
            imported_as: imported_as.flatten(),
            is_for_tests: self.is_for_tests,
            line,
        };
        let kind = if is_own { &mut self.facts.references } else { &mut self.facts.names };
        kind.push(reference);
        Some(index)
    }

    fn branches(&mut self, base: &[String], is_own: bool, branches: &Group) {
        let tokens: Vec<TokenTree> = branches.stream().into_iter().collect();
        let is_comma =
            |token: &TokenTree| matches!(token, TokenTree::Punct(mark) if mark.as_char() == ',');
        for branch in tokens.split(is_comma) {
            if let Some(first) = branch.first() {
                let line = first.span().start().line;
                self.path(base.to_vec(), is_own, line, branch, 0);
            }
        }
    }
}

fn parent(mut path: Vec<String>) -> Vec<String> {
    path.pop();
    path
}

/// The name behind an `as` at `index`.
fn renamed(tokens: &[TokenTree], index: usize) -> Option<String> {
    match (tokens.get(index)?, tokens.get(index + 1)?) {
        (TokenTree::Ident(word), TokenTree::Ident(name)) if word == "as" => Some(name.to_string()),
        _ => None,
    }
}

fn is_mark(tokens: &[TokenTree], index: usize, wanted: char) -> bool {
    matches!(tokens.get(index), Some(TokenTree::Punct(mark)) if mark.as_char() == wanted)
}

fn is_separator(tokens: &[TokenTree], index: usize) -> bool {
    let is_joint = matches!(tokens.get(index), Some(TokenTree::Punct(mark)) if mark.spacing() == Spacing::Joint);
    is_joint && is_mark(tokens, index, ':') && is_mark(tokens, index + 1, ':')
}

fn is_after_separator(tokens: &[TokenTree], index: usize) -> bool {
    index >= 2 && is_separator(tokens, index - 2)
}

/// True if the group at `index` is the `[…]` of a `#![…]`.
fn is_inner_attribute(tokens: &[TokenTree], index: usize) -> bool {
    index >= 2 && is_mark(tokens, index - 1, '!') && is_mark(tokens, index - 2, '#')
}

/// The outer attributes before the `mod` at `index`, without spaces: `cfg(test)`.
fn attributes(tokens: &[TokenTree], index: usize) -> Vec<String> {
    let before = tokens.get(..index).unwrap_or_default();
    let since = before.iter().rposition(|token| {
        matches!(token, TokenTree::Punct(mark) if mark.as_char() == ';')
            || matches!(token, TokenTree::Group(body) if body.delimiter() == Delimiter::Brace)
    });
    let item = before.get(since.map_or(0, |at| at + 1)..).unwrap_or_default();
    let is_inner = |at: usize| is_inner_attribute(item, at);
    let attributes = item.iter().enumerate().filter_map(|(at, token)| match token {
        TokenTree::Group(body) if body.delimiter() == Delimiter::Bracket && !is_inner(at) => {
            Some(squeezed(body))
        }
        _ => None,
    });
    attributes.collect()
}

fn squeezed(group: &Group) -> String {
    group.stream().to_string().split_whitespace().collect()
}

#[cfg(test)]
mod tests;
