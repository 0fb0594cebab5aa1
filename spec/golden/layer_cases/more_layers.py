"""Cases of layers: normalizations over groups, products, and layers over volumes {batch, depth, height, width, channels}."""
from .basics import plain

FIRST_SEED = 21000

VOLUME = [2, 5, 6, 7, 3]


CASES = [
    plain("GroupNormalization", shapes=[[3, 5, 6]], groups=2),
    plain("GroupNormalization", "of images, without scale", shapes=[[2, 4, 3, 6]], groups=3, scale=False, epsilon=0.01),
    plain("GroupNormalization", "as many as channels", shapes=[[2, 4, 3, 5]], groups=-1, center=False),
    plain("GroupNormalization", "another axis", shapes=[[2, 6, 3, 5]], groups=3, axis=-3),
    plain("RMSNormalization"),
    plain("RMSNormalization", "two axes", shapes=[[2, 4, 3, 5]], axis=[-2, -1], epsilon=0.01),
    plain("Dot", shapes=[[3, 5], [3, 5]], axes=-1),
    plain("Dot", "of sequences", shapes=[[3, 5, 4], [3, 6, 4]], axes=-1),
    plain("Dot", "two axes", shapes=[[3, 5, 4], [3, 4, 2]], axes=[-1, -2]),
    plain("Dot", "normalized", shapes=[[3, 5, 4], [3, 5, 2]], axes=-2, normalize=True),
    plain("Dot", "of different ranks", shapes=[[3, 5], [3, 2, 5]], axes=-1),
    plain("GlobalAveragePooling3D", shapes=[VOLUME]),
    plain("GlobalAveragePooling3D", "keepdims", shapes=[VOLUME], keepdims=True),
    plain("GlobalMaxPooling3D", shapes=[VOLUME]),
    plain("SpatialDropout3D", "in inference", shapes=[VOLUME], rate=0.5),
    plain("Conv3D", shapes=[VOLUME], filters=4, kernel_size=3),
    plain("Conv3D", "same, relu", shapes=[VOLUME], filters=4, kernel_size=[2, 3, 2], padding="same", activation="relu"),
    plain("Conv3D", "stride 2, same, without bias", shapes=[VOLUME], filters=4, kernel_size=3, strides=2, padding="same", use_bias=False),
    plain("Conv3D", "several strides", shapes=[VOLUME], filters=2, kernel_size=[3, 2, 1], strides=[2, 1, 3]),
    plain("MaxPooling3D", shapes=[VOLUME], float32=True),
    plain("MaxPooling3D", "same", shapes=[VOLUME], float32=True, pool_size=[3, 2, 3], strides=[2, 2, 1], padding="same"),
    plain("AveragePooling3D", float32=True, shapes=[VOLUME], pool_size=2),
    plain("AveragePooling3D", "same", float32=True, shapes=[VOLUME], pool_size=[3, 2, 3], strides=[2, 2, 1], padding="same"),
    plain("UpSampling3D", shapes=[[2, 2, 3, 2, 2]]),
    plain("UpSampling3D", "of three sizes", shapes=[[2, 2, 3, 2, 2]], size=[1, 2, 3]),
    plain("ZeroPadding3D", shapes=[[2, 2, 3, 2, 2]]),
    plain("ZeroPadding3D", "of three sizes", shapes=[[2, 2, 3, 2, 2]], padding=[[0, 1], [2, 0], [1, 3]]),
    plain("Cropping3D", shapes=[VOLUME]),
    plain("Cropping3D", "of three sizes", shapes=[VOLUME], cropping=[[0, 1], [2, 0], [1, 3]]),
]
