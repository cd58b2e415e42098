#!/usr/bin/env python3
"""Attacks a kettle of its own on loopback. Each attack says what was seen and whether that is as it should be.

attacks.py KETTLE [NAME...]     needs python3-cryptography, curl, openssl and slowhttptest

Python, and Python's own TLS, so that attacker and server share neither code nor assumptions.
"""

import resource
import sys
import time

# Leaves no folder of compiled files in the checkout.
sys.dont_write_bytecode = True

import connections
import files
import operations
import protocol


def main():
    kettle, wanted = sys.argv[1], sys.argv[2:]
    # The machine's soft limit is the shell's; 5,000 connections are the attack.
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    attacks = [attack for module in (connections, protocol, files, operations) for attack in module.ATTACKS]
    unknown = set(wanted) - {attack.__name__ for attack in attacks}
    if unknown:
        sys.exit(f"no such attack: {', '.join(sorted(unknown))}")
    fallen = 0
    for attack in attacks:
        if wanted and attack.__name__ not in wanted:
            continue
        began = time.monotonic()
        seen, held = attack(kettle)
        fallen += not held
        verdict = "held" if held else "FELL"
        print(f"{verdict}  {attack.__name__}: {attack.__doc__}\n      {seen}  [{time.monotonic() - began:.0f} s]", flush=True)
    return 1 if fallen else 0


if __name__ == "__main__":
    sys.exit(main())
