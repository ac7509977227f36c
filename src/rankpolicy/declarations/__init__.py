"""How settings, members of a kind and arguments of public functions are declared, and checked against their declarations."""
