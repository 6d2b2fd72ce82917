"""Proofs that a remapping is a bijection of every launch of a domain; see `theorem.prove`."""

from swizzle_sim.proof.theorem import Proof, certificates, prove

__all__ = ["Proof", "certificates", "prove"]
