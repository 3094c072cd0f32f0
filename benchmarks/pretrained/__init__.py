"""What a pretrained model with a graph can do: completion, own graphs, edits, facts in the prompt, text, speed.

See README.md.
"""
