"""Edge: touches sockets, files and daemons. Orders the messages of groups: embedded, Corosync, within a process."""
