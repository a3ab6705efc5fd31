"""The local page: teach a self-modifying network one's own drawings, and watch its matrices rewrite themselves.

A request goes `protocol -> guard -> app -> requests -> drawing -> session -> learner` and back; `bounds` says how many
go at once. What a session shows is a pure function of the examples it was taught, so going back in time and forgetting
are exact.

The second tab shows a network that learns on an unbounded stream, `stream_routes -> stream_session -> stream_learner`
with `tasks` that follow from a seed; what is remembered of a life (`stream_history`) has a bound. In the third,
networks of a language read what one types, side by side, `tracking_routes -> tracking_session -> tracking_learner`.
What both have in common is in `session_routes` and `matrix_steps`.

`static_page` makes the same page as files that any web server can hand out: there, `in_browser/` stands in the place of
the server, file for file, and the networks run as ONNX.
"""

from .app import create_app
from .serve import listen, serve

__all__ = ["create_app", "listen", "serve"]
