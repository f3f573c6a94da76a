//! From options or a workload to a plan: phases, goals, predictions.

pub mod predict;
