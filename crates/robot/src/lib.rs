//! The client side: robots, their connections and transactions, hit detection.
