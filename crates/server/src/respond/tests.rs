mod stage;

mod conditions;
mod errors;
mod fallback;
mod folders;
mod guard;
mod memory;
mod ranges;
mod redirects;
mod roots;
mod sites;
mod traversal;
