"""Pure. WHEN tools act: T-scripts read, checked, compiled to graphs, run, and explored."""
