//! Names on the wire: messages, the server, the resolver, and both over real sockets.

mod exchange;
mod fuzzing;
mod messages;
mod mutate;
mod sockets;
