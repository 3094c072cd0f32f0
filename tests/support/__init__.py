"""Toy worlds, brute force, strategies: what several tests share."""
