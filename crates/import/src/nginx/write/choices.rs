//! Maps by whose texts a place asks one server or another, or looks for one file or another: each text is a route.

use kettle_config::quoted;

use super::Writer;
use super::fastcgi;
use super::phase::Way;
use super::place::Spot;
use crate::nginx::location::Shut;
use crate::nginx::map::Map;
use crate::nginx::syntax::Directive;
use crate::nginx::variables::{Part, Said, parts, with_said};

impl Writer<'_> {
    /// Returns the values of variables at the end of a way, once for each text of the maps that choose a server or a file.
    pub(super) fn chosen<'t>(
        &self,
        way: &Way<'t>,
        spot: &Spot<'t>,
    ) -> Result<Vec<(Vec<String>, Said)>, Shut<'t>> {
        let mut all = vec![(Vec::new(), way.said.clone())];
        for (directive, map) in self.choosing(way, spot) {
            let texts = map.constants().filter(|it| it.len() * all.len() <= CHOICES_MAX);
            let texts = texts.ok_or(Shut { directive, why: CHOICES })?;
            let last = texts.len().saturating_sub(1);
            let mut longer = Vec::new();
            for (when, said) in all {
                for (number, text) in texts.iter().enumerate() {
                    let mut when = when.clone();
                    let mut said = said.clone();
                    // All else is said by default.
                    if number < last {
                        let name = &map.name;
                        when.push(format!(
                            "{{ of = \"{{map:{name}}}\", text = {} }}",
                            quoted(text)
                        ));
                    }
                    said.insert(format!("map:{}", map.name), Some((*text).to_owned()));
                    longer.push((when, said));
                }
            }
            all = longer;
        }
        Ok(all)
    }

    /// Returns the maps by which a way ends at one server or another, or looks for one file or another.
    fn choosing<'t>(&self, way: &Way<'t>, spot: &Spot<'t>) -> Vec<(&'t Directive, &Map)> {
        let find = |is_it: &dyn Fn(&Directive) -> bool| {
            way.scope.own().iter().chain(spot.scope.own()).find(|it| is_it(it))
        };
        let maps = |word: &String| {
            let target = with_said(word, &way.said).unwrap_or_default();
            let names = parts(&target).into_iter().filter_map(|part| match part {
                Part::Variable(name) => Some(name.strip_prefix("map:")?.to_owned()),
                Part::Text(_) => None,
            });
            names.filter_map(|name| self.maps.iter().find(|it| it.name == name)).collect::<Vec<_>>()
        };
        let pass = find(&|it| it.name == "proxy_pass" || fastcgi::is_pass(it));
        let of_pass = pass.and_then(|it| Some((it, *it.words.first().map(maps)?.first()?)));
        let mut found: Vec<(&Directive, &Map)> = of_pass.into_iter().collect();
        let tries = find(&|it| it.name == "try_files");
        let looked_for = tries.and_then(|it| Some((it, it.words.split_last()?.1)));
        if let Some((directive, words)) = looked_for {
            for map in words.iter().flat_map(maps) {
                if !found.iter().any(|(_, other)| other.name == map.name) {
                    found.push((directive, map));
                }
            }
        }
        found
    }
}

const CHOICES: &str =
    "maps that choose a server or a file have 16 texts at most, the same for all requests";
const CHOICES_MAX: usize = 16;
