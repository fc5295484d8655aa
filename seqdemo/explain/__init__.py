"""What can be shown of an output after a search.

replay     one teacher-forced pass over any tokens -> Trace; what an edit costs
step       one step of a replay in full; worked: a cell's equations with its numbers
gradients  connectivity, and norms through time
erasure    how much the output's probability drops without one source position
"""
