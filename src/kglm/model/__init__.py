"""Probability: one module for each formula.

Each module has its formula in two forms: batched over positions, for training (`…Head`), and incremental along one
text, for estimation and completion (`Text…`). `tests/model/test_two_forms.py` holds the two equal.

Names of arrays end in a letter for each axis. One letter has one meaning in `model`, `train`, `marginal` and `answer`:

    B  batch rows                          T  positions of a text or row; position t predicts word t + 1
    F  flat positions of a batch (B · T)   S  samples, particles or other mention histories of one text
    M  mention starts of a batch           I  words inside mentions
    Z  steps of a history: none, continue, start of each candidate
    P  candidate parents: entities mentioned so far
    W  paths: facts (parent, relation) that reach the entity of a mention
    G  distinct (mention start, parent) pairs of the paths
    R  relation indices, 2 K of them: each of the K relations has an index, and its reverse the next one
    E  real entities: nodes that are no dates or quantities
    N  nodes, or whatever else a caller lists     U  distinct nodes or mentions
    A  aliases of an entity, L words of an alias, J = A · L alias slots
    V  vocabulary   C  types   Q  features, or their weights
    D  entity vector   H  h_x, which is as long as a word embedding   X  rows of a table of vectors
    Y  entries of ragged lists, end to end

Modules of `encoders` have letters of their own, at their tops.
"""
