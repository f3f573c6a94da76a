//! Statistics of the models with stated sample sizes and tolerances, and properties that hold for any input.
//! Seeds are fixed, so a test either always passes or never does.

mod bodies;
mod catalog;
mod choices;
mod golden;
mod lives;
mod robust;
mod sizes;
mod standard;
mod stat;
