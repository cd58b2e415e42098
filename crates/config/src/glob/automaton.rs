//! The part between a pattern's fixed beginning and its fixed end, if that is more than one star: held against a text in time
//! of the text's length, however many stars it has.

/// The middle of a pattern, in `W` words of places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Automaton<const W: usize> {
    tokens: Box<[Token]>,
    stars: States<W>,
    /// The tokens that take any character, and any but a slash.
    anything: States<W>,
    within_segment: States<W>,
    /// The tokens that take one character only, by it.
    exactly: Box<[(char, States<W>)]>,
}

impl<const W: usize> Automaton<W> {
    /// The automaton of tokens that fit into its words with one place more.
    pub(super) fn new(tokens: Vec<Token>) -> Self {
        let mut stars = States::default();
        let mut anything = States::default();
        let mut within_segment = States::default();
        let mut exactly: Vec<(char, States<W>)> = Vec::new();
        for (number, token) in tokens.iter().enumerate() {
            match token {
                Token::Anything => anything.add(number),
                Token::WithinSegment | Token::One => within_segment.add(number),
                Token::Exactly(character) => {
                    match exactly.iter_mut().find(|(other, _)| other == character) {
                        Some((_, states)) => states.add(number),
                        None => {
                            let mut states = States::default();
                            states.add(number);
                            exactly.push((*character, states));
                        }
                    }
                }
            }
            if token.is_star() {
                stars.add(number);
            }
        }
        let exactly = exactly.into();
        Self { tokens: tokens.into(), stars, anything, within_segment, exactly }
    }

    /// True if it takes the whole text. Nothing is allocated, and it ends with the first character that nothing takes.
    pub(super) fn fits(&self, text: &str) -> bool {
        // No two stars stand side by side, so that one step past them is enough.
        let past_stars = |states: States<W>| states.or(states.and(self.stars).up());
        let mut before = States::default();
        before.add(0);
        before = past_stars(before);
        for character in text.chars() {
            let taken = before.and(self.taking(character));
            if taken == States::default() {
                return false;
            }
            // A star stays; any other token is over.
            let stays = taken.and(self.stars);
            let goes_on = taken.and(self.stars.not()).up();
            before = past_stars(stays.or(goes_on));
        }
        before.has(self.tokens.len())
    }

    /// Adds what each star stands for in a text, the first as much as it can; `None` if it does not fit.
    pub(super) fn capture<'t>(&self, text: &'t str, captures: &mut Vec<&'t str>) -> Option<()> {
        let characters: Vec<(usize, char)> = text.char_indices().collect();
        let fits = self.rests_that_fit(&characters);
        let rest_fits = |token: usize, character: usize| -> bool {
            fits.get(character).is_some_and(|states| states.has(token))
        };
        let offset = |index: usize| characters.get(index).map_or(text.len(), |(offset, _)| *offset);
        let mut at = 0;
        if !rest_fits(0, 0) {
            return None;
        }
        for (index, token) in self.tokens.iter().enumerate() {
            if !token.is_star() {
                at += 1;
                continue;
            }
            let taken = characters.get(at..)?.iter().take_while(|(_, one)| token.takes(*one));
            let end = (at..=at + taken.count()).rev().find(|end| rest_fits(index + 1, *end))?;
            captures.push(text.get(offset(at)..offset(end))?);
            at = end;
        }
        Some(())
    }

    /// The tokens from which on the rest of the pattern fits the rest of the text: for each character, and for the end.
    fn rests_that_fit(&self, characters: &[(usize, char)]) -> Vec<States<W>> {
        let past_stars = |states: States<W>| states.or(states.down().and(self.stars));
        let mut after = States::default();
        after.add(self.tokens.len());
        after = past_stars(after);
        let mut rows = vec![after];
        for (_, character) in characters.iter().rev() {
            let stays = after.and(self.stars);
            let goes_on = after.down().and(self.stars.not());
            after = past_stars(self.taking(*character).and(stays.or(goes_on)));
            rows.push(after);
        }
        rows.reverse();
        rows
    }

    /// The tokens that take a character.
    fn taking(&self, character: char) -> States<W> {
        let mut taking = self.anything;
        if character != '/' {
            taking = taking.or(self.within_segment);
        }
        match self.exactly.iter().find(|(other, _)| *other == character) {
            Some((_, exactly)) => taking.or(*exactly),
            None => taking,
        }
    }
}

/// A set of places in a pattern, its end included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct States<const W: usize>([u64; W]);

impl<const W: usize> States<W> {
    fn add(&mut self, number: usize) {
        if let Some(word) = self.0.get_mut(number / 64) {
            *word |= 1 << (number % 64);
        }
    }

    fn has(self, number: usize) -> bool {
        self.0.get(number / 64).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    /// Each place as the one before it.
    fn down(mut self) -> Self {
        let mut carry = 0;
        for word in self.0.iter_mut().rev() {
            (*word, carry) = (*word >> 1 | carry, *word << 63);
        }
        self
    }

    /// Each place as the one behind it.
    fn up(mut self) -> Self {
        let mut carry = 0;
        for word in &mut self.0 {
            (*word, carry) = (*word << 1 | carry, *word >> 63);
        }
        self
    }

    fn or(self, other: Self) -> Self {
        self.each(other, |one, other| one | other)
    }

    fn and(self, other: Self) -> Self {
        self.each(other, |one, other| one & other)
    }

    fn not(self) -> Self {
        Self(self.0.map(|word| !word))
    }

    fn each(mut self, other: Self, join: impl Fn(u64, u64) -> u64) -> Self {
        self.0.iter_mut().zip(other.0).for_each(|(one, other)| *one = join(*one, other));
        self
    }
}

impl<const W: usize> Default for States<W> {
    fn default() -> Self {
        Self([0; W])
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// `**`
    Anything,
    /// `*`
    WithinSegment,
    /// `?`
    One,
    Exactly(char),
}

impl Token {
    pub(super) fn is_star(self) -> bool {
        matches!(self, Self::Anything | Self::WithinSegment)
    }

    /// True if this character can be part of what it stands for.
    fn takes(self, character: char) -> bool {
        match self {
            Self::Anything => true,
            Self::WithinSegment | Self::One => character != '/',
            Self::Exactly(expected) => character == expected,
        }
    }
}

/// The tokens of a pattern, or of a part of one.
pub(super) fn tokens(pattern: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    for character in pattern.chars() {
        match character {
            '*' if tokens.last() == Some(&Token::WithinSegment) => {
                tokens.pop();
                tokens.push(Token::Anything);
            }
            '*' => tokens.push(Token::WithinSegment),
            '?' => tokens.push(Token::One),
            other => tokens.push(Token::Exactly(other)),
        }
    }
    tokens
}
