pub(crate) mod stage;

mod before;
mod cases;
mod compression;
mod files;
mod guard;
mod memory;
mod pages;
mod ranges;
mod rates;
mod roots;
mod routes;
mod signed;
mod sites;
mod traversal;
mod workers;
