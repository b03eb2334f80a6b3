"""An installed PyTorch without a GPU: official binaries over a simulated driver, with libraries in place of NVIDIA's."""
