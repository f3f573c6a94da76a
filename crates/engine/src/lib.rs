//! One event loop per core: sockets, timers, pacing, statistics hand-over.
