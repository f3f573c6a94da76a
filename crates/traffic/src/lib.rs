//! What both sides of a test must agree on: identities, seeded draws, object properties, working sets.
