mod stage;

mod conditions;
mod errors;
mod folders;
mod memory;
mod ranges;
mod sites;
mod traversal;
