"""Work in a child process with a deadline: parsing strangers' tokenizers and talking to the Hub.

parent.py    run_child: start the process, follow it, end it
process.py   what that process runs
limits.py    what the process may use
"""
