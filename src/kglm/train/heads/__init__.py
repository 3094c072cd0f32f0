"""Training of the heads of KGLM on a frozen pretrained model.

settings     `HeadsRunConfig`: options of heads and training
data         documents -> prepared passages, with stored features and clauses
loop         optimisation, validation, checkpoints
start        `kglm train kglm --base …`: from files to a run
"""
