"""Pretrained causal language models: read from local files, converted once, run on the CPU with few bytes a weight.

sources     where a model comes from: the installed package, a Hugging Face directory, a GGUF file
gguf        tensors, sizes and tokenizer of a GGUF file, 4-bit weights as they are
convert     a model of any source -> a checked directory in the user's cache folder
matrices    products with weights of 4, 8, 16 or 32 bits
llama       the forward pass, with a cache of keys and values
subwords    text <-> subwords, and the chat format
base        `BaseModel`: probabilities of a text, features, next subwords

Nothing is downloaded, and no code of a model is run.

Letters of the arrays: B batch rows, T positions (subwords), L positions in the cache, V subwords of the vocabulary,
D hidden size, F size of the inner layer, H heads, K heads of keys and values, N outputs and I inputs of a matrix.
"""
