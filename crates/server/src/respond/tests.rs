mod stage;

mod conditions;
mod errors;
mod fallback;
mod folders;
mod memory;
mod ranges;
mod roots;
mod sites;
mod traversal;
