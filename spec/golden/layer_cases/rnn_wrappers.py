"""Cases of Bidirectional and TimeDistributed: layers as options stand as {"class": ..., "options": ...}."""

from layer_cases.recurrent import MASK, STATE, X

FIRST_SEED = 81000


def layer(name, **options):
    return {"class": name, "options": options}


def wrapper(name, kind, inner, shapes=None, named=None, masks=(), output=None, training=False, **options):
    shapes = shapes or [X]
    case = {"name": (kind + " " + name).strip(), "layer": kind, "inputs": shapes, "options": {"layer": inner} | options,
            "classes": [2 if i in masks else None for i in range(len(shapes))], "training": training,
            "call": {"arguments": [0], "named": named or {}, "options": {}}}
    return case if output is None else case | {"output": output}


CASES = []
for kind, states in [("SimpleRNN", 1), ("LSTM", 2), ("GRU", 1)]:
    given, initial = [X] + [STATE] * (2 * states), {"initial_state": list(range(1, 1 + 2 * states))}

    def both(name, shapes=None, named=None, masks=(), output=None, merge_mode="concat", **options):
        return wrapper(kind + (", " + name if name else ""), "Bidirectional", layer(kind, units=4, **options), shapes, named, masks, output,
                       merge_mode=merge_mode)

    CASES += [both("")] + [both("sequences, " + mode, merge_mode=mode, return_sequences=True) for mode in ("concat", "sum", "mul", "ave")]
    CASES += [
        both("two outputs, the second", output=1, merge_mode=False, return_sequences=True),
        both("two outputs, the first, last step", output=0, merge_mode=False),
        both("sum, last step", merge_mode="sum"),
        both("a state of the backward layer", output=2 * states, return_state=True),
        both("a state of the backward layer, two outputs", output=1 + 2 * states, return_state=True, merge_mode=False),
        both("states are given", given, initial, return_sequences=True),
        both("states are given, mask", given + [MASK], initial | {"mask": 1 + 2 * states}, [1 + 2 * states], return_sequences=True),
        both("mask", [X, MASK], {"mask": 1}, [1]),
        both("mask, sequences", [X, MASK], {"mask": 1}, [1], return_sequences=True),
        both("mask, sequences, two outputs", [X, MASK], {"mask": 1}, [1], output=1, return_sequences=True, merge_mode=False),
        both("zero_output_for_mask is the wrapper's choice", [X, MASK], {"mask": 1}, [1], zero_output_for_mask=True),
        both("other activation", return_sequences=True, activation="relu"),
    ]
CASES += [
    wrapper("another backward layer", "Bidirectional", layer("LSTM", units=4, return_sequences=True),
            backward_layer=layer("GRU", units=3, return_sequences=True, go_backwards=True)),
    wrapper("one step", "Bidirectional", layer("LSTM", units=4, return_sequences=True), [[3, 1, 5]]),
]

IMAGES = [2, 3, 5, 6, 2]
CASES += [
    wrapper("Dense", "TimeDistributed", layer("Dense", units=4, activation="tanh")),
    wrapper("Dense over more axes", "TimeDistributed", layer("Dense", units=4), [[2, 3, 2, 5]]),
    wrapper("Conv2D", "TimeDistributed", layer("Conv2D", filters=3, kernel_size=3, activation="relu"), [IMAGES]),
    wrapper("Flatten", "TimeDistributed", layer("Flatten"), [IMAGES]),
    wrapper("LSTM", "TimeDistributed", layer("LSTM", units=4), [[2, 3, 4, 5]]),
    wrapper("LSTM, sequences", "TimeDistributed", layer("LSTM", units=4, return_sequences=True), [[2, 3, 4, 5]]),
    wrapper("LSTM, mask", "TimeDistributed", layer("LSTM", units=4), [[2, 3, 4, 5], [2, 3, 4]], {"mask": 1}, [1]),
    wrapper("Dense, mask", "TimeDistributed", layer("Dense", units=4), [X, MASK], {"mask": 1}, [1]),
    wrapper("BatchNormalization in training", "TimeDistributed", layer("BatchNormalization"), [[4, 3, 5]], training=True),
    wrapper("BatchNormalization in inference", "TimeDistributed", layer("BatchNormalization"), [[4, 3, 5]]),
    wrapper("Bidirectional", "TimeDistributed", layer("Bidirectional", layer=layer("LSTM", units=3)), [[2, 3, 4, 5]]),
    wrapper("one step", "TimeDistributed", layer("Dense", units=4), [[3, 1, 5]]),
    wrapper("BatchNormalization in training, mask", "TimeDistributed", layer("BatchNormalization"), [[9, 3, 5], [9, 3]], {"mask": 1}, [1],
            training=True),
]
