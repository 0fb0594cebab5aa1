"""Cases of layers: what is compared. Names and options are Keras' own."""

FIRST_SEED = 1000

IMAGE = [2, 7, 9, 3]
SEQUENCE = [2, 11, 4]      # steps, channels


def conv(name, shape=IMAGE, **options):
    return {"name": "Conv2D " + name, "layer": "Conv2D", "options": options, "inputs": [shape]}


def pool(name, shape=IMAGE, layer="MaxPooling2D", **options):
    return {"name": layer + " " + name, "layer": layer, "options": options, "inputs": [shape]}


def depthwise(name, shape=IMAGE, **options):
    return {"name": "DepthwiseConv2D " + name, "layer": "DepthwiseConv2D", "options": options, "inputs": [shape]}


def plain(layer, name="", shapes=None, float32=False, **options):
    return {"name": (layer + " " + name).strip(), "layer": layer, "options": options, "inputs": shapes or [[3, 5, 4]], "float32": float32}


def resizing(name, shape=IMAGE, **options):
    return {"name": "Resizing " + name, "layer": "Resizing", "options": options, "inputs": [shape], "float32": True}


ACTIVATIONS = ["linear", "relu", "sigmoid", "tanh", "softmax", "elu", "selu", "gelu", "softplus", "softsign", "silu", "exponential",
               "hard_sigmoid", "leaky_relu", "relu6", "mish", "log_softmax"]

CASES = [
    conv("valid", filters=4, kernel_size=3),
    conv("same", filters=4, kernel_size=3, padding="same"),
    conv("same, relu", filters=16, kernel_size=3, padding="same", activation="relu"),
    conv("stride 2 valid", filters=5, kernel_size=3, strides=2),
    conv("stride 2 same", filters=5, kernel_size=3, strides=2, padding="same"),
    conv("stride 2 same, even size", shape=[2, 8, 6, 3], filters=5, kernel_size=3, strides=2, padding="same"),
    conv("dilation 2 valid", filters=4, kernel_size=3, dilation_rate=2),
    conv("dilation 2 same", filters=4, kernel_size=3, dilation_rate=2, padding="same"),
    conv("groups 2", shape=[2, 6, 5, 4], filters=6, kernel_size=3, groups=2, padding="same"),
    conv("groups as many as channels", shape=[2, 6, 5, 4], filters=4, kernel_size=3, groups=4),
    conv("3 to 17 channels", shape=[3, 9, 11, 3], filters=17, kernel_size=3, padding="same", activation="relu"),
    conv("17 to 33 channels", shape=[2, 6, 7, 17], filters=33, kernel_size=3, padding="same"),
    conv("32 to 64 channels", shape=[2, 9, 8, 32], filters=64, kernel_size=3, padding="same", activation="relu"),
    conv("5 x 5, stride 2, same", shape=[2, 13, 10, 3], filters=8, kernel_size=5, strides=2, padding="same"),
    conv("1 x 1", shape=[2, 5, 5, 8], filters=3, kernel_size=1),
    conv("1 x 1, stride 2", shape=[2, 5, 6, 8], filters=16, kernel_size=1, strides=2),
    conv("2 x 3 kernel, strides 2 x 1", filters=4, kernel_size=[2, 3], strides=[2, 1], padding="same"),
    conv("without bias", filters=4, kernel_size=3, use_bias=False),
    conv("one image, one channel", shape=[1, 28, 28, 1], filters=32, kernel_size=3, activation="relu"),
    conv("kernel as large as the image", shape=[2, 4, 4, 3], filters=6, kernel_size=4),
    pool("valid"),
    pool("same", padding="same"),
    pool("even size", shape=[2, 8, 6, 16]),
    pool("3 x 3, stride 2", pool_size=3, strides=2),
    pool("3 x 3, stride 2, same", pool_size=3, strides=2, padding="same"),
    pool("2 x 3 window, strides 1", pool_size=[2, 3], strides=1),
    depthwise("valid", kernel_size=3),
    depthwise("same, relu", shape=[2, 6, 5, 17], kernel_size=3, padding="same", activation="relu"),
    depthwise("stride 2, same", shape=[2, 8, 7, 16], kernel_size=3, strides=2, padding="same"),
    depthwise("multiplier 2", shape=[2, 6, 5, 4], kernel_size=3, depth_multiplier=2, padding="same"),
    depthwise("multiplier 3, stride 2", shape=[2, 9, 7, 5], kernel_size=[3, 2], strides=2, depth_multiplier=3),
    depthwise("dilation 2 x 1", kernel_size=3, dilation_rate=[2, 1], padding="same"),
    depthwise("one channel, without bias", shape=[2, 6, 6, 1], kernel_size=2, depth_multiplier=4, use_bias=False),
    pool("valid", layer="AveragePooling2D", pool_size=2),
    pool("same", layer="AveragePooling2D", pool_size=2, padding="same"),
    pool("even size", shape=[2, 8, 6, 16], layer="AveragePooling2D", pool_size=2),
    pool("3 x 3, stride 2, same", shape=[2, 8, 9, 17], layer="AveragePooling2D", pool_size=3, strides=2, padding="same"),
    pool("3 x 3, stride 1, same", layer="AveragePooling2D", pool_size=3, strides=1, padding="same"),
    pool("2 x 3 window, strides 3 x 1", layer="AveragePooling2D", pool_size=[2, 3], strides=[3, 1]),
    plain("GlobalMaxPooling2D", shapes=[[3, 4, 5, 6]]),
    plain("GlobalMaxPooling2D", "keepdims", shapes=[[3, 4, 5, 6]], keepdims=True),
    plain("Dense", shapes=[[5, 7]], units=4),
    plain("Dense", "relu", shapes=[[3, 33]], units=17, activation="relu"),
    plain("Dense", "without bias", shapes=[[5, 7]], units=4, use_bias=False),
    plain("Dense", "on the last of three axes", shapes=[[2, 3, 6]], units=5),
    plain("Dense", "softmax", shapes=[[4, 12]], units=10, activation="softmax"),
    plain("BatchNormalization", "training", shapes=[[4, 5, 3, 6]], momentum=0.9) | {"training": True},
    plain("BatchNormalization", "inference", shapes=[[4, 5, 3, 6]]),
    plain("BatchNormalization", "training, rank 2", shapes=[[8, 5]], epsilon=0.01) | {"training": True},
    plain("BatchNormalization", "training, neither scale nor center", shapes=[[6, 3, 3, 4]], scale=False, center=False)
    | {"training": True},
    plain("GlobalAveragePooling2D", shapes=[[3, 4, 5, 6]]),
    plain("GlobalAveragePooling2D", "keepdims", shapes=[[3, 4, 5, 6]], keepdims=True),
    plain("Flatten", shapes=[[3, 4, 5, 2]]),
    plain("Reshape", shapes=[[3, 4, 5]], target_shape=[10, 2]),
    plain("Reshape", "inferred", shapes=[[3, 4, 5]], target_shape=[2, -1]),
    plain("Rescaling", shapes=[[3, 4, 5]], scale=1 / 127.5, offset=-1.0) | {"range": (0.0, 255.0)},
    plain("Softmax", shapes=[[4, 3, 6]]) | {"range": (-4.0, 4.0)},
    plain("ReLU", shapes=[[6, 9]]) | {"range": (-8.0, 8.0)},
    plain("ReLU", "max_value", shapes=[[6, 9]], max_value=3.0) | {"range": (-8.0, 8.0)},
    plain("ReLU", "negative_slope", shapes=[[6, 9]], negative_slope=0.2) | {"range": (-8.0, 8.0)},
    plain("ReLU", "threshold", shapes=[[6, 9]], threshold=1.5) | {"range": (-8.0, 8.0)},
    plain("ReLU", "all three", shapes=[[6, 9]], max_value=4.0, negative_slope=0.1, threshold=1.0) | {"range": (-8.0, 8.0)},
    plain("Add", shapes=[[3, 4, 5], [3, 4, 5]]),
    plain("Add", "three inputs", shapes=[[3, 4], [3, 4], [3, 4]]),
    plain("Concatenate", shapes=[[3, 4, 5], [3, 4, 2]]),
    plain("Concatenate", "channels of images", shapes=[[2, 3, 3, 4], [2, 3, 3, 17], [2, 3, 3, 1]]),
] + [plain("Activation", name, shapes=[[5, 11]], activation=name) | {"range": (-4.0, 4.0)} for name in ACTIVATIONS]


CASES += [
    resizing("smaller", height=5, width=4),
    resizing("larger", height=13, width=20),
    resizing("nearest", height=4, width=14, interpolation="nearest"),
    resizing("bicubic", height=11, width=6, interpolation="bicubic"),
    resizing("lanczos3, antialias", height=5, width=7, interpolation="lanczos3", antialias=True),
    resizing("lanczos5", height=16, width=5, interpolation="lanczos5"),
    resizing("bilinear, antialias", height=3, width=4, antialias=True),
    resizing("bicubic, antialias", height=3, width=12, interpolation="bicubic", antialias=True),
    resizing("crop_to_aspect_ratio", height=6, width=3, crop_to_aspect_ratio=True),
    resizing("pad_to_aspect_ratio", height=6, width=3, pad_to_aspect_ratio=True, fill_value=0.5),
    resizing("17 channels", shape=[2, 6, 5, 17], height=9, width=3),
    plain("CenterCrop", shapes=[IMAGE], height=4, width=6),
    plain("CenterCrop", "of a smaller image", shapes=[IMAGE], height=9, width=5, float32=True),
    plain("Normalization", shapes=[IMAGE], mean=[0.1, -0.2, 0.3], variance=[0.5, 2.0, 0.0]),
    plain("Normalization", "inverted", shapes=[IMAGE], mean=0.25, variance=4.0, invert=True),
    plain("RandomFlip", "in inference", shapes=[IMAGE]),
    plain("RandomRotation", "in inference", shapes=[IMAGE], factor=0.3),
    plain("RandomZoom", "in inference", shapes=[IMAGE], height_factor=[-0.3, 0.2], width_factor=0.1),
    plain("RandomContrast", "in inference", shapes=[IMAGE], factor=0.3),
    plain("LayerNormalization", shapes=[[4, 7, 10]]),
    plain("LayerNormalization", "of images", shapes=[[3, 4, 5, 6]], axis=[-3, -2, -1], epsilon=0.01),
    plain("LayerNormalization", "of a middle axis", shapes=[[3, 5, 4]], axis=-2),
    plain("LayerNormalization", "neither scale nor center", shapes=[[5, 9]], scale=False, center=False),
    plain("Embedding", shapes=[[6, 3]], input_dim=11, output_dim=5) | {"classes": 11},
    plain("Embedding", "one index a row", shapes=[[9, 1]], input_dim=4, output_dim=17) | {"classes": 4},
    plain("UpSampling2D", shapes=[IMAGE]),
    plain("UpSampling2D", "2 x 3", shapes=[IMAGE], size=[2, 3]),
    plain("UpSampling2D", "bilinear", shapes=[IMAGE], size=[3, 2], interpolation="bilinear", float32=True),
    plain("ZeroPadding2D", shapes=[IMAGE]),
    plain("ZeroPadding2D", "2 x 3", shapes=[IMAGE], padding=[2, 3]),
    plain("ZeroPadding2D", "each side", shapes=[IMAGE], padding=[[0, 1], [2, 3]]),
    plain("Cropping2D", shapes=[IMAGE], cropping=1),
    plain("Cropping2D", "each side", shapes=[IMAGE], cropping=[[0, 2], [3, 1]]),
    plain("Multiply", shapes=[[3, 4, 5], [3, 4, 5]]),
    plain("Multiply", "broadcast", shapes=[[3, 4, 5], [3, 1, 5]]),
    plain("Subtract", shapes=[[3, 4], [3, 4]]),
    plain("Average", shapes=[[3, 4], [3, 4], [3, 4]]),
    plain("Maximum", shapes=[[3, 4], [3, 4], [3, 4]]),
    plain("Minimum", shapes=[[3, 4], [3, 4]]),
    plain("Permute", shapes=[[2, 3, 4, 5]], dims=[3, 1, 2]),
    plain("RepeatVector", shapes=[[3, 4]], n=5),
    plain("UnitNormalization", shapes=[[3, 4, 5]]),
    plain("UnitNormalization", "axes", shapes=[[3, 4, 5]], axis=[-2, -1]),
    plain("LeakyReLU", shapes=[[6, 9]]),
    plain("LeakyReLU", "slope", shapes=[[6, 9]], negative_slope=0.1),
    plain("ELU", shapes=[[6, 9]], alpha=0.7),
    plain("PReLU", shapes=[[3, 4, 5]]),
    plain("PReLU", "shared axes", shapes=[[2, 4, 5, 3]], shared_axes=[1, 2]),
    plain("SpatialDropout2D", "in inference", shapes=[IMAGE], rate=0.5),
    plain("GaussianNoise", "in inference", shapes=[[4, 5]], stddev=0.5),
    plain("GaussianDropout", "in inference", shapes=[[4, 5]], rate=0.5),
    plain("AlphaDropout", "in inference", shapes=[[4, 5]], rate=0.5),
    plain("Conv2DTranspose", shapes=[[2, 4, 5, 3]], filters=6, kernel_size=3),
    plain("Conv2DTranspose", "stride 2, same", shapes=[[2, 4, 5, 3]], filters=6, kernel_size=3, strides=2, padding="same"),
    plain("Conv2DTranspose", "stride 2, valid", shapes=[[2, 4, 5, 3]], filters=6, kernel_size=[3, 4], strides=2, activation="relu"),
    plain("Conv2DTranspose", "stride 3 beyond the kernel", shapes=[[2, 4, 3, 16]], filters=8, kernel_size=2, strides=3, use_bias=False),
    plain("SeparableConv2D", shapes=[IMAGE], filters=5, kernel_size=3),
    plain("SeparableConv2D", "same, relu, multiplier 2", shapes=[[2, 6, 5, 4]], filters=17, kernel_size=3, padding="same",
          depth_multiplier=2, activation="relu"),
    plain("SeparableConv2D", "stride 2", shapes=[[2, 8, 7, 4]], filters=6, kernel_size=[3, 2], strides=2, use_bias=False),
    plain("Conv1D", shapes=[SEQUENCE], filters=6, kernel_size=3),
    plain("Conv1D", "same, relu", shapes=[SEQUENCE], filters=17, kernel_size=4, padding="same", activation="relu"),
    plain("Conv1D", "causal", shapes=[SEQUENCE], filters=5, kernel_size=3, padding="causal"),
    plain("Conv1D", "causal, dilation 4", shapes=[SEQUENCE], filters=8, kernel_size=2, padding="causal", dilation_rate=4),
    plain("Conv1D", "causal, stride 2", shapes=[SEQUENCE], filters=8, kernel_size=3, padding="causal", strides=2),
    plain("Conv1D", "stride 2, same, groups 2", shapes=[SEQUENCE], filters=6, kernel_size=[3], padding="same", strides=2, groups=2),
    plain("Conv1D", "kernel as long as the sequence", shapes=[[2, 5, 3]], filters=4, kernel_size=5, use_bias=False),
    plain("DepthwiseConv1D", shapes=[SEQUENCE], kernel_size=3),
    plain("DepthwiseConv1D", "same, stride 2, multiplier 2", shapes=[SEQUENCE], kernel_size=4, strides=2, padding="same",
          depth_multiplier=2, activation="tanh"),
    plain("SeparableConv1D", shapes=[SEQUENCE], filters=5, kernel_size=3),
    plain("SeparableConv1D", "same, multiplier 3", shapes=[SEQUENCE], filters=7, kernel_size=4, padding="same", depth_multiplier=3,
          activation="relu"),
    plain("Conv1DTranspose", shapes=[SEQUENCE], filters=6, kernel_size=3),
    plain("Conv1DTranspose", "stride 2, same", shapes=[SEQUENCE], filters=5, kernel_size=3, strides=2, padding="same"),
    plain("Conv1DTranspose", "stride 3, valid", shapes=[SEQUENCE], filters=5, kernel_size=4, strides=3, use_bias=False),
    plain("MaxPooling1D", shapes=[SEQUENCE]),
    plain("MaxPooling1D", "3, stride 2, same", shapes=[SEQUENCE], pool_size=3, strides=2, padding="same"),
    plain("AveragePooling1D", shapes=[SEQUENCE], pool_size=[2]),
    plain("AveragePooling1D", "4, stride 1, same", shapes=[SEQUENCE], pool_size=4, strides=1, padding="same"),
    plain("UpSampling1D", shapes=[SEQUENCE]),
    plain("UpSampling1D", "3 times", shapes=[SEQUENCE], size=3),
    plain("ZeroPadding1D", shapes=[SEQUENCE]),
    plain("ZeroPadding1D", "2 and 0", shapes=[SEQUENCE], padding=[2, 0]),
    plain("Cropping1D", shapes=[SEQUENCE]),
    plain("Cropping1D", "0 and 3", shapes=[SEQUENCE], cropping=[0, 3]),
    plain("SpatialDropout1D", "in inference", shapes=[SEQUENCE], rate=0.5),
]


def attention(layer, name, shapes, arguments, named=None, masks=(), call=None, more=None, **options):
    """A layer called on several tensors: `arguments` and `named` are positions in `shapes`, from 0, or lists of them. masks: those that are
    0 or 1. call: what else the call is given."""
    return plain(layer, name, shapes=shapes, **options) | {
        "classes": [2 if i in masks else None for i in range(len(shapes))],
        "call": {"arguments": arguments, "named": named or {}, "options": call or {}}} | (more or {})


QKV = [[2, 5, 6], [2, 4, 7], [2, 4, 3]]
SELF = [[3, 6, 8], [3, 6, 6], [3, 6]]
HEADS = {"num_heads": 3, "key_dim": 4}
GROUPS = {"head_dim": 4, "num_query_heads": 6, "num_key_value_heads": 2}
CAUSAL, SCORES = {"use_causal_mask": True}, {"return_attention_scores": True}
CASES += [
    attention("MultiHeadAttention", "", QKV[:2], [0, 1], **HEADS),
    attention("MultiHeadAttention", "with a key", QKV, [0, 1], {"key": 2}, value_dim=5, **HEADS),
    attention("MultiHeadAttention", "causal, of itself", SELF[:1], [0, 0], call=CAUSAL, **HEADS),
    attention("MultiHeadAttention", "a mask, without biases", SELF[:2], [0, 0, 0], {"attention_mask": 1}, masks=[1], use_bias=False,
              **HEADS),
    attention("MultiHeadAttention", "a mask, causal, a window", SELF[:2], [0, 0], {"attention_mask": 1}, masks=[1], call=CAUSAL,
              sliding_window=3, **HEADS),
    attention("MultiHeadAttention", "masks of value and key", [[3, 6, 8], [3, 6], [3, 6]], [0, 0], {"value_mask": 1, "key_mask": 2},
              masks=[1, 2], **HEADS),
    attention("MultiHeadAttention", "another output", QKV[:2], [0, 1], output_shape=[3, 2], use_gate=True, **HEADS),
    attention("MultiHeadAttention", "the scores", SELF[:2], [0, 0], {"attention_mask": 1}, masks=[1], call=SCORES, more={"output": 1},
              **HEADS),
    attention("MultiHeadAttention", "dropout in inference", SELF[:2], [0, 0], {"attention_mask": 1}, masks=[1], dropout=0.5, **HEADS),
    attention("MultiHeadAttention", "over both axes", [[2, 3, 4, 5], [2, 2, 3, 5]], [0, 1], **HEADS),
    attention("MultiHeadAttention", "over both axes, a mask", [[2, 3, 2, 5], [2, 3, 2, 3, 2]], [0, 0], {"attention_mask": 1}, masks=[1],
              **HEADS),
    attention("MultiHeadAttention", "over the second of three", [[2, 3, 4, 5], [2, 3, 6, 5]], [0, 1], attention_axes=[2], **HEADS),
    attention("GroupQueryAttention", "", SELF[:1], [0, 0], **GROUPS),
    attention("GroupQueryAttention", "a key, causal", [[2, 5, 6], [2, 4, 6], [2, 4, 6]], [0, 1, 2], call=CAUSAL, use_bias=False, **GROUPS),
    attention("GroupQueryAttention", "all masks, the scores", [[2, 5, 6], [2, 4, 6], [2, 5, 4], [2, 5], [2, 4]], [0, 1],
              {"attention_mask": 2, "query_mask": 3, "value_mask": 4}, masks=[2, 3, 4], call=SCORES, more={"output": 1}, **GROUPS),
    attention("GroupQueryAttention", "a gate and a window", SELF[:1], [0, 0], use_gate=True, sliding_window=2, **GROUPS),
    attention("Attention", "", [[2, 5, 6], [2, 4, 6]], [[0, 1]]),
    attention("Attention", "with a key, scaled, causal", [[2, 5, 6], [2, 4, 7], [2, 4, 6]], [[0, 1, 2]], call=CAUSAL, use_scale=True),
    attention("Attention", "masks", [[2, 5, 6], [2, 4, 6], [2, 5], [2, 4]], [[0, 1]], {"mask": [2, 3]}, masks=[2, 3], call=CAUSAL),
    attention("Attention", "concat, scaled", [[2, 5, 6], [2, 4, 6]], [[0, 1]], use_scale=True, score_mode="concat"),
    attention("Attention", "the scores", [[2, 5, 6], [2, 4, 6]], [[0, 1]], call=SCORES, more={"output": 1}),
    attention("AdditiveAttention", "", [[2, 5, 6], [2, 4, 6]], [[0, 1]]),
    attention("AdditiveAttention", "with a key, causal, not scaled", [[2, 5, 6], [2, 4, 7], [2, 4, 6]], [[0, 1, 2]], call=CAUSAL,
              use_scale=False),
]
