"""Plays every vector of ``sdk/vectors`` against the machine."""

from __future__ import annotations

import unittest

from . import vectors

#: A missing or truncated folder of vectors fails the test.
VECTORS_MIN = 255


class Vectors(unittest.TestCase):
    def test_the_machine_plays_every_vector(self) -> None:
        names = []
        for file, entries in vectors.files():
            for entry in entries:
                names.append(entry["name"])
                with self.subTest(file=file, vector=entry["name"]):
                    if file == "storm.json":
                        vectors.play_fleet(entry)
                    else:
                        vectors.Player(entry).play(entry["steps"])
        self.assertGreaterEqual(len(names), VECTORS_MIN)
        self.assertEqual(len(names), len(set(names)), "no two vectors share a name")


if __name__ == "__main__":
    unittest.main()
