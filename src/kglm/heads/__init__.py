"""KGLM on a frozen pretrained language model: the base says the words, small trained heads choose facts and names.

    features     states of the base at each subword of a text, stored on disk
    feature_jobs the same for many documents, by several processes or machines
    passage      a text as subwords, with its words and mentions as spans of subwords
    names        the subword sequences of an entity's names, and the tries that they form
    local        the entities linked so far in a passage, their places and their facts
    links        from which position on each entity that a text names is linked
    options      `HeadsConfig`
    all_names    the names of all entities as one trie, for names that the base begins
    prepared     a passage with all that does not depend on the weights of the heads
    keys         fixed vectors of relations, from the base's reading of their labels
    model        the trained heads: type, parent, relation, name
    tails        which of several values of a relation the text means
    tail_names   what the base says of the labels of a few tails, at the end of a prompt
    objective    the training loss of a passage
    store        trained heads on disk
    scoring      exact p(text), by a forward pass over the states of a mention

Letters of the arrays: T positions (subword t is predicted from those before it), P entities linked in a passage
(slots), R relations (both directions), D size of a feature, G size of the recurrent state, K size of a relation vector,
M annotated mentions, Y entries of ragged lists.
"""
