//! `kettle bench`: comparisons that leave results, can be stopped and gone on with; loads on a running server.

mod load;
mod run;
