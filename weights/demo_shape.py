"""Sizes of the demo model."""

VOCABULARY = 4096
HIDDEN, LAYERS, HEADS, KV_HEADS, HEAD_DIM, INTERMEDIATE = 384, 6, 6, 2, 64, 1024
MAX_POSITIONS = 16384
# A large base leaves many rotary dimensions almost still over 12,000 tokens, and those find text by
# meaning rather than by distance.
ROPE_THETA = 500000.0
NORM_EPSILON = 1e-5
