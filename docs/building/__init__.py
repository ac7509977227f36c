"""How the site is built: code blocks are run, formulas become MathML, the reference is made from docstrings and options."""
