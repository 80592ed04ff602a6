"""How Sphinx builds these pages. Nothing is fetched: neither inventories nor scripts."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

from asterism import __version__  # noqa: E402

project = "asterism"
author = "The asterism developers"
project_copyright = "The asterism developers"
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "asterism_pages",
    "mathml",
]
exclude_patterns = ["_build"]
templates_path = ["_templates"]
highlight_language = "python"

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "fieldlist"]
myst_heading_anchors = 3

autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_default_options = {"member-order": "bysource"}
autodoc_typehints = "none"  # the docstrings name the types in words
maximum_signature_line_length = 80
numpydoc_show_class_members = False
toc_object_entries_show_parents = "hide"

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"make_",
    "within_subsection_order": "asterism_pages.gallery_order",
    "doc_module": ("asterism",),
    "reference_url": {"asterism": None},
    "backreferences_dir": "api/generated/backreferences",
    "write_computation_times": False,
    "download_all_examples": False,
    "show_signature": False,
    "ignore_repr_types": r"matplotlib",
    "image_srcset": ["2x"],
    "remove_config_comments": True,
}
suppress_warnings = ["config.cache"]  # sphinx-gallery's settings cannot be pickled

html_theme = "furo"
html_title = f"asterism {release}"
html_static_path = ["_static"]
html_css_files = ["asterism.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sphinx = False
