"""The documentation as a site: `make docs` builds it into `build/docs`, and a warning is an error.

Its pages are the Markdown files of the whole project, where they are.
"""

project = "Millstream"
extensions = ["myst_parser"]
root_doc = "docs/index"
include_patterns = [
    "docs/**",
    "*/README.md",
    "connect/**/*.md",
    "broker/log/format.md",
    "spark_analytics/jobs/README.md",
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
]
exclude_patterns = ["build", "tests", ".*"]
source_suffix = {".md": "markdown"}
myst_heading_anchors = 4
html_theme = "furo"
html_title = "Millstream"
html_show_copyright = False
html_show_sphinx = False
html_copy_source = False
