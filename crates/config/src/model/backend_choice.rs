//! The backends that routes ask, where a map chooses them as well.

use std::collections::HashMap;

use super::{Config, Map, Route};

/// The backends that the maps of a configuration choose among: looked up once for all routes.
#[derive(Debug)]
pub struct BackendChoices<'c> {
    maps: HashMap<&'c str, Vec<&'c str>>,
}

impl<'c> BackendChoices<'c> {
    /// Those of a configuration's maps that choose for a route.
    #[must_use]
    pub fn of(config: &'c Config) -> Self {
        let routes = config.sites.iter().flat_map(|site| &site.routes);
        let mut maps: HashMap<&str, Vec<&str>> =
            routes.filter_map(|route| Some((route.backend_map()?, Vec::new()))).collect();
        for map in config.maps.iter().rev() {
            if let Some(said) = maps.get_mut(map.name.value.as_str()) {
                *said = said_by(map);
            }
        }
        Self { maps }
    }

    /// All backends that requests of a route may be passed to, each once.
    pub fn backends(&self, route: &'c Route) -> impl Iterator<Item = &'c str> + use<'_, 'c> {
        let chosen = route.backend_map().and_then(|map| self.maps.get(map));
        let named = route.backend.as_ref().filter(|_| route.backend_map().is_none());
        chosen.into_iter().flatten().copied().chain(named.map(|name| name.value.as_str()))
    }

    /// All backends that maps choose.
    pub fn chosen(&self) -> impl Iterator<Item = &'c str> {
        self.maps.values().flatten().copied()
    }
}

/// All texts without words that a map may say, each once.
fn said_by(map: &Map) -> Vec<&str> {
    let mut said: Vec<&str> = map.texts().filter_map(|text| text.plain()).collect();
    said.sort_unstable();
    said.dedup();
    said
}
