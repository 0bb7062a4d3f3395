"""Compares two .npy files element by element; exits 1 if they differ by more than allowed."""

import argparse
import sys

import numpy as np


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("actual")
    parser.add_argument("expected")
    parser.add_argument("--atol", type=float, required=True, help="largest absolute difference")
    arguments = parser.parse_args()
    actual = np.load(arguments.actual)
    expected = np.load(arguments.expected)
    if actual.shape != expected.shape:
        print(f"shapes differ: {actual.shape} and {expected.shape}")
        return 1
    difference = np.abs(actual.astype(np.float64) - expected.astype(np.float64))
    worst = difference.max(initial=0.0)
    print(f"worst absolute difference {worst:.3g}, allowed {arguments.atol:.3g}")
    # NaN compares false, and is a difference.
    return 0 if worst <= arguments.atol else 1


if __name__ == "__main__":
    sys.exit(main())
