"""The commands, one file for each panel of the help or for each large command."""
