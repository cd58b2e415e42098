//! The decoder beside a table that is a plain list, as RFC 7541 §4 describes it.

use super::*;

/// The representations of an encoder. An index counts through both tables, as far as they reach.
#[derive(Clone, Debug)]
enum Representation {
    Indexed(prop::sample::Index),
    Inserting(String, String),
    InsertingNamed(prop::sample::Index, String),
    Plain(String, String),
}

/// A block: the sizes the table gets before it, and its representations.
type Block = (Vec<usize>, Vec<Representation>);

struct Model {
    entries: Lines,
    bytes_max: usize,
}

impl Model {
    fn evict_down_to(&mut self, bytes: usize) {
        while size(&self.entries) > bytes {
            self.entries.pop();
        }
    }

    fn insert(&mut self, line: (Vec<u8>, Vec<u8>)) {
        let bytes = line.0.len() + line.1.len() + 32;
        if bytes > self.bytes_max {
            return self.entries.clear();
        }
        self.evict_down_to(self.bytes_max - bytes);
        self.entries.insert(0, line);
    }

    /// An index, and the line there.
    fn choose(&self, index: prop::sample::Index) -> (usize, (Vec<u8>, Vec<u8>)) {
        // The dynamic table's entries as often as the static one's.
        let dynamic = self.entries.iter().cloned().cycle().take(61 * self.entries.len().min(1));
        let place = index.index(61 + dynamic.clone().count());
        if place < 61 {
            let (name, value) = static_table::field_line(place + 1).unwrap();
            return (place + 1, (name.to_vec(), value.to_vec()));
        }
        let place = (place - 61) % self.entries.len();
        (62 + place, self.entries[place].clone())
    }

    /// Writes a representation and says which line it stands for.
    fn write(&mut self, representation: Representation, block: &mut Vec<u8>) -> (Vec<u8>, Vec<u8>) {
        match representation {
            Representation::Indexed(index) => {
                let (index, line) = self.choose(index);
                integer(index, 7, 0x80, block);
                line
            }
            Representation::Inserting(name, value) => {
                block.extend(inserting(&name, &value));
                self.insert(line(&name, &value));
                line(&name, &value)
            }
            Representation::InsertingNamed(index, value) => {
                let (index, (name, _)) = self.choose(index);
                integer(index, 6, 0x40, block);
                block.push(value.len() as u8);
                block.extend_from_slice(value.as_bytes());
                let line = (name, value.into_bytes());
                self.insert(line.clone());
                line
            }
            Representation::Plain(name, value) => {
                block.extend(
                    inserting(&name, &value)
                        .into_iter()
                        .enumerate()
                        .map(|(place, byte)| if place == 0 { 0x10 } else { byte }),
                );
                line(&name, &value)
            }
        }
    }
}

/// An integer below 2^14 (§5.1).
fn integer(value: usize, prefix_bits: u32, representation: u8, block: &mut Vec<u8>) {
    let prefix_max = (1 << prefix_bits) - 1;
    if value < prefix_max {
        return block.push(representation | value as u8);
    }
    let rest = value - prefix_max;
    let low = (rest % 128) as u8;
    let high = (rest / 128) as u8;
    block.extend_from_slice(&[representation | prefix_max as u8, 0x80 | low, high]);
}

fn representation() -> impl Strategy<Value = Representation> {
    let text = "[a-z]{0,40}";
    prop_oneof![
        any::<prop::sample::Index>().prop_map(Representation::Indexed),
        (text, text).prop_map(|(name, value)| Representation::Inserting(name, value)),
        (any::<prop::sample::Index>(), text)
            .prop_map(|(index, value)| Representation::InsertingNamed(index, value)),
        (text, text).prop_map(|(name, value)| Representation::Plain(name, value)),
    ]
}

fn connection() -> impl Strategy<Value = Vec<Block>> {
    let sizes = prop_oneof![3 => Just(vec![]), 1 => prop::collection::vec(0_usize..=300, 1..3)];
    prop::collection::vec((sizes, prop::collection::vec(representation(), 0..10)), 1..12)
}

proptest! {
    #[test]
    fn blocks_of_a_connection_read_as_the_model_says(blocks in connection()) {
        let mut decoder = Decoder::new(300);
        let mut model = Model { entries: Vec::new(), bytes_max: 300 };
        for (sizes, representations) in blocks {
            let mut block = Vec::new();
            for bytes_max in sizes {
                integer(bytes_max, 5, 0x20, &mut block);
                model.bytes_max = bytes_max;
                model.evict_down_to(bytes_max);
            }
            let said: Lines = representations
                .into_iter()
                .map(|representation| model.write(representation, &mut block))
                .collect();
            prop_assert_eq!(decode(&mut decoder, &block), Ok(said));
            prop_assert_eq!(&table(&mut decoder), &model.entries);
        }
    }
}
