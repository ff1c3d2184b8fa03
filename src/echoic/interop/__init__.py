"""Edge: touches sockets. How do OTHER tools see channels: AsyncAPI documents, Prometheus, Foxglove.

`asyncapi` and `json_schema` are pure; `metrics` and `foxglove` serve. Each is imported by its own name, so that nobody
needs the packages of the others.
"""
