"""The commands of `tonari`, each in a module of its own."""
