//! Is this the `let` of values that have nothing to do with each other?

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// True if the tokens behind a `let` pack names and values into two tuples. A name that a later value has is a swap, or stands for what it
/// was before.
pub fn is_packed(behind: &[TokenTree]) -> bool {
    let [TokenTree::Group(names), TokenTree::Punct(equals), TokenTree::Group(values), end, ..] =
        behind
    else {
        return false;
    };
    let is_tuple = [names, values].iter().all(|it| it.delimiter() == Delimiter::Parenthesis);
    if !is_tuple || equals.as_char() != '=' || !is_mark(end, ';') {
        return false;
    }
    let names: Option<Vec<String>> = parts(names.stream()).iter().map(|part| name(part)).collect();
    let values = parts(values.stream());
    let Some(names) = names.filter(|names| names.len() > 1 && names.len() == values.len()) else {
        return false;
    };
    let has_earlier = |at: usize| names[..at].iter().any(|name| says(&values[at], name));
    !(1..values.len()).any(has_earlier)
}

fn parts(stream: TokenStream) -> Vec<Vec<TokenTree>> {
    let tokens: Vec<TokenTree> = stream.into_iter().collect();
    let parts = tokens.split(|token| is_mark(token, ',')).map(<[_]>::to_vec);
    parts.filter(|part| !part.is_empty()).collect()
}

fn name(pattern: &[TokenTree]) -> Option<String> {
    match pattern {
        [TokenTree::Ident(name)] => Some(name.to_string()),
        [TokenTree::Ident(word), TokenTree::Ident(name)] if word == "mut" => Some(name.to_string()),
        _ => None,
    }
}

/// True if a word stands in these tokens, or in a text that is filled in.
fn says(tokens: &[TokenTree], name: &str) -> bool {
    tokens.iter().any(|token| match token {
        TokenTree::Group(group) => says(&group.stream().into_iter().collect::<Vec<_>>(), name),
        TokenTree::Ident(word) => word == name,
        TokenTree::Literal(text) => text.to_string().contains(&format!("{{{name}")),
        TokenTree::Punct(_) => false,
    })
}

fn is_mark(token: &TokenTree, wanted: char) -> bool {
    matches!(token, TokenTree::Punct(mark) if mark.as_char() == wanted)
}
