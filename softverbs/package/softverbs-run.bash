# bash completion for softverbs-run: what follows is a command line of its own.
complete -F _command softverbs-run
