"""The grammar that writes the training text of the demo model; see ../demo_corpus.py."""
