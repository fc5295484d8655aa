"""What can be shown of an output after a search.

replay     one teacher-forced pass over any tokens -> Trace; what an edit costs
gradients  on demand: connectivity, and norms through time
"""
