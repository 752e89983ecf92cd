"""The commands of `tonari`, a module each."""
