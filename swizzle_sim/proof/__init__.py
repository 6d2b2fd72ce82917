"""Proofs that a remapping is a bijection of every launch of a domain; see `theorem.prove`."""

from swizzle_sim.proof.theorem import Proof, prove

__all__ = ["Proof", "prove"]
