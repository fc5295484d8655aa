"""Hands on the model: questions about it beside searches and replays.

place      an output up to one of its places, where any next word can be asked for
rows       the next word under any attention row; how far a word depends on where the model looks
words      what a typed beginning may become at a place; words that must be said
wanted     what would make it say a word: bans, edits at earlier places
bending    the same inside the network: a bent attention row, a few held units
units      which unit matters for a word
strips     film strips: the dimmer of attention, the sizes of a beam, the precisions
tracking   the units that follow a place such as a quotation, held together; whether it still closes
gates      classic questions as clamps; when a gate closes
sample     a recorded sample of dev text, and what a network computes over it
lines      what the command line tells of them
influence  what an output depends on: gradients, gradients through time, erasure
"""
