"""Edge: touches threads and notebooks. Answers what a channel looks like WHILE one works: `Channel.live`.

Needs anywidget (`pip install 'echoic[jupyter]'`), which is imported when the first widget is made.
"""

from echoic.notebook.opening import live

__all__ = ["live"]
