//! The seam between the simulated parties and the world: clock, timers, connections, tasks.
