"""The playground: a page in the browser that shows a network at work, on this machine only (`tigra playground`).

changes.py  networks with another pooling rule, boundary, order of statistics or filter
tracing.py  maps and features of one picture
answers.py  from a request of the page to its answer, and what is allowed in a request
server.py   the HTTP server on loopback
static/     the page: HTML, CSS and JavaScript without a build step
"""

from tigra.playground.server import PlaygroundServer

__all__ = ["PlaygroundServer"]
