"""`python -m sheaf_archive`, which is `sheaf`."""

from sheaf_archive import main

if __name__ == "__main__":
    raise SystemExit(main())
