"""Pure. Does the whole keep its promises together? The parts of `testing.simulated_world`, on one clock and network."""
