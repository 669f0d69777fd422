"""Starts a server: python -m gannet.server [FLAG...]. The flags are kvserver's; --help lists them."""

from gannet.programs import kvserver

if __name__ == "__main__":
    kvserver()
