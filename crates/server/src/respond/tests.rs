pub(crate) mod stage;

mod compression;
mod conditions;
mod cors;
mod denied;
mod errors;
mod fallback;
mod folders;
mod guard;
mod memory;
mod ranges;
mod rates;
mod redirects;
mod roots;
mod signed;
mod sites;
mod traversal;
mod workers;
