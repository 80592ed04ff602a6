"""``python -m asterism``."""

from asterism.cli.app import main

main()
