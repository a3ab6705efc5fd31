"""The page of the site that needs no installation: `srwm.demo.static_page` with the models that come with srwm."""

import os

import browser_runtime

MODEL, STREAM, TRACKING = "omniglot-1shot", "strokes-stream", ("parity-srwm", "parity-deltanet")
LEFT_OUT = """\
<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Left out</title></head>
<body><p>This build of the site left the page out (SRWM_DOCS_TRY_PAGE=0). `make docs` builds it.</p></body>
</html>
"""


def try_page() -> dict[str, bytes]:
    """The files of the page by their names in the site; with SRWM_DOCS_TRY_PAGE=0 one that says that it was left out.

    Raises:
        browser_runtime.NotFetched: if the runtime for browsers was not fetched.
    """
    if os.environ.get("SRWM_DOCS_TRY_PAGE", "1") == "0":
        return {"try/index.html": LEFT_OUT.encode()}
    runtime = browser_runtime.read()
    from srwm.demo.static_page import static_page
    from srwm.fewshot import load_model
    from srwm.languages import load_tracker
    from srwm.sequential import load_stream_model

    stream = load_stream_model(STREAM), STREAM
    tracking = [(load_tracker(name), name) for name in TRACKING]
    files = static_page(load_model(MODEL), MODEL, runtime, stream=stream, tracking=tracking, home="../try.html")
    return {f"try/{name}": content for name, content in files.items()}
