"""Cases of layers whose axes are given in another order than the tensor's: Keras sorts them, negative ones first."""
from .basics import plain

FIRST_SEED = 96100

CASES = [
    plain("LayerNormalization", "last axis first", shapes=[[3, 5, 4]], axis=[2, 1]),
    plain("LayerNormalization", "an axis from the end and one from the beginning", shapes=[[3, 5, 4]], axis=[1, -1]),
    plain("LayerNormalization", "three axes of volumes", shapes=[[2, 3, 4, 5]], axis=[-1, 2, 1], epsilon=0.01),
]
