"""Cases of ConvLSTM1D, ConvLSTM2D and ConvLSTM3D, alone and in wrappers."""

FIRST_SEED = 95000

AXES = {"ConvLSTM1D": [7], "ConvLSTM2D": [5, 6], "ConvLSTM3D": [4, 5, 3]}
STEPS, CHANNELS, FILTERS = 4, 2, 3
MASK = [2, STEPS]


def conv_lstm(kind, name="", extra=(), named=None, masks=(), output=None, shape=None, **options):
    """A layer on steps. extra: shapes of what is given by name; masks: positions of those that are 0 or 1."""
    shapes = [shape or [2, STEPS] + AXES[kind] + [CHANNELS], *extra]
    case = {"name": (kind + " " + name).strip(), "layer": kind, "inputs": shapes,
            "options": {"filters": FILTERS, "kernel_size": 3, "padding": "same"} | options,
            "classes": [2 if i in masks else None for i in range(len(shapes))], "training": False,
            "call": {"arguments": [0], "named": named or {}, "options": {}}}
    return case if output is None else case | {"output": output}


CASES = []
for kind, axes in AXES.items():
    state = [2] + axes + [FILTERS]
    states, given = [state, state], {"initial_state": [1, 2]}
    CASES += [
        conv_lstm(kind),
        conv_lstm(kind, "sequences", return_sequences=True),
        conv_lstm(kind, "valid", padding="valid", return_sequences=True),
        conv_lstm(kind, "valid, an even kernel", padding="valid", kernel_size=2),
        conv_lstm(kind, "an even kernel", kernel_size=2, return_sequences=True),
        conv_lstm(kind, "sizes that differ", kernel_size=[1, 2, 3][:len(axes)], return_sequences=True),
        conv_lstm(kind, "strides", strides=2, return_sequences=True),
        conv_lstm(kind, "strides, valid", strides=2, padding="valid"),
        conv_lstm(kind, "dilation", dilation_rate=2, return_sequences=True),
        conv_lstm(kind, "dilation, valid", dilation_rate=2, padding="valid", kernel_size=2),
        conv_lstm(kind, "backwards", go_backwards=True),
        conv_lstm(kind, "backwards, sequences", go_backwards=True, return_sequences=True),
        conv_lstm(kind, "without bias", use_bias=False, return_sequences=True),
        conv_lstm(kind, "other activations", activation="relu", recurrent_activation="hard_sigmoid", return_sequences=True),
        conv_lstm(kind, "no activation", activation="linear"),
        conv_lstm(kind, "h of the last state", output=1, return_state=True),
        conv_lstm(kind, "c of the last state", output=2, return_state=True, return_sequences=True),
        conv_lstm(kind, "states are given", states, given, return_sequences=True),
        conv_lstm(kind, "states are given, last state, backwards", states, given, output=2, return_state=True, go_backwards=True),
        conv_lstm(kind, "mask", [MASK], {"mask": 1}, [1]),
        conv_lstm(kind, "mask, sequences", [MASK], {"mask": 1}, [1], return_sequences=True),
        conv_lstm(kind, "mask, backwards", [MASK], {"mask": 1}, [1], return_sequences=True, go_backwards=True),
        conv_lstm(kind, "mask, zero output", [MASK], {"mask": 1}, [1], return_sequences=True, zero_output_for_mask=True),
        conv_lstm(kind, "mask, states are given", states + [MASK], given | {"mask": 3}, [3], return_sequences=True),
        conv_lstm(kind, "unrolled", unroll=True, return_sequences=True),
        conv_lstm(kind, "one step", shape=[2, 1] + axes + [CHANNELS], return_sequences=True),
        conv_lstm(kind, "one channel, one filter", shape=[3, 2] + axes + [1], filters=1),
        conv_lstm(kind, "dropout in inference", dropout=0.5, recurrent_dropout=0.5),
    ]


def wrapper(name, kind, inner, shape, **options):
    return {"name": (kind + " " + name).strip(), "layer": kind, "inputs": [shape], "options": {"layer": inner} | options,
            "classes": [None], "training": False, "call": {"arguments": [0], "named": {}, "options": {}}}


def layer(kind, **options):
    return {"class": kind, "options": {"filters": FILTERS, "kernel_size": 3, "padding": "same"} | options}


CASES += [
    wrapper("of ConvLSTM1D, sequences", "Bidirectional", layer("ConvLSTM1D", return_sequences=True), [2, STEPS, 7, CHANNELS]),
    wrapper("of ConvLSTM2D, sum", "Bidirectional", layer("ConvLSTM2D"), [2, STEPS, 5, 6, CHANNELS], merge_mode="sum"),
    wrapper("of ConvLSTM2D", "TimeDistributed", layer("ConvLSTM2D"), [2, 3, 2, 5, 6, CHANNELS]),
]
