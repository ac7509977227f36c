"""``python -m rankpolicy``, which ``torchrun -m rankpolicy train ...`` runs in each of its processes."""

from rankpolicy.cli.main import main

if __name__ == "__main__":
    main()
