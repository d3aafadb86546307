"""What `python -m joj fleet` can do: a file for each of its commands.

line        the command line as a whole
report      all answers of a fleet's tables;  results: what was measured;  export: tables of many traces
arguments   what the words of a command line may be
fetching    how far the objects below a URL are
output      files and messages;  streams: standard output and error;  stopping: Ctrl-C, and what ends a process
"""
