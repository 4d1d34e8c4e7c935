"""Inference: what reports give away about the person who sent them."""
