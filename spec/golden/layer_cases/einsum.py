"""Cases of layers: products that an equation names, and transposed convolutions of volumes."""
from .basics import plain

FIRST_SEED = 90000

STEPS, GRID, VOLUME = [2, 5, 4], [2, 3, 5, 4], [2, 3, 4, 5, 2]


def einsum(name, equation, output_shape, shape=STEPS, **options):
    return plain("EinsumDense", name, shapes=[shape], equation=equation, output_shape=output_shape, **options)


def volume(name, **options):
    return plain("Conv3DTranspose", name, shapes=[VOLUME], filters=3, **options)


CASES = [
    einsum("of features", "abc,cd->abd", [5, 6], bias_axes="d"),
    einsum("of features, relu", "abc,cd->abd", [5, 6], bias_axes="d", activation="relu"),
    einsum("of one size", "ab,bc->ac", 3, shape=[3, 4]),
    einsum("into heads", "abc,cde->abde", [5, 2, 3], bias_axes="de"),
    einsum("of heads", "abcd,cde->abe", [3, 6], shape=GRID, bias_axes="e"),
    einsum("of steps", "abc,bd->acd", [4, 3], bias_axes="c"),
    einsum("arranged otherwise", "abc,cde->aebd", [7, 5, 2], bias_axes="ed"),
    einsum("of an axis that stays", "abc,bcd->abd", [5, 3], bias_axes="bd", activation="tanh"),
    einsum("of two axes that stay", "abcd,dbce->aceb", [5, 2, 3], shape=GRID),
    einsum("after further axes", "...x,xy->...y", [6], shape=GRID, bias_axes="y"),
    einsum("after one further axis", "...bc,cd->...bd", [5, 6], bias_axes="bd"),
    einsum("before further axes", "ab...,bc->ac...", [6], shape=GRID, bias_axes="c"),
    einsum("without sums", "ab,c->abc", [4, 3], shape=[2, 4]),
    volume("valid", kernel_size=2),
    volume("same", kernel_size=3, padding="same", activation="relu"),
    volume("strides", kernel_size=3, strides=2),
    volume("strides, same", kernel_size=[3, 2, 3], strides=[2, 1, 3], padding="same"),
    volume("strides larger than the kernel", kernel_size=2, strides=3, use_bias=False),
    volume("strides larger than the kernel, same", kernel_size=1, strides=2, padding="same"),
    volume("an even kernel, same", kernel_size=4, strides=[2, 2, 2], padding="same"),
]
