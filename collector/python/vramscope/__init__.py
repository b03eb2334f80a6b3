"""Vramscope in a training job."""

from ._allocator import Allocator, use_allocator

__all__ = ["Allocator", "use_allocator"]
