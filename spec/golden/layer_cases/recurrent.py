"""Cases of recurrent layers."""

FIRST_SEED = 30000

X = [3, 6, 5]      # batch, steps, features


def recurrent(layer, name="", shapes=None, named=None, masks=(), output=None, training=False, **options):
    """A layer on sequences. named: positions in `shapes` of what is given by name; masks: those that are 0 or 1."""
    shapes = shapes or [X]
    case = {"name": (layer + " " + name).strip(), "layer": layer, "inputs": shapes, "options": {"units": 4} | options,
            "classes": [2 if i in masks else None for i in range(len(shapes))], "training": training,
            "call": {"arguments": [0], "named": named or {}, "options": {}}}
    return case if output is None else case | {"output": output}


MASK, STATE = [3, 6], [3, 4]
CASES = []
for layer, states in [("SimpleRNN", 1), ("LSTM", 2), ("GRU", 1)]:
    initial = {"initial_state": list(range(1, 1 + states))}
    given = [X] + [STATE] * states
    CASES += [
        recurrent(layer),
        recurrent(layer, "sequences", return_sequences=True),
        recurrent(layer, "backwards", go_backwards=True),
        recurrent(layer, "backwards, sequences", go_backwards=True, return_sequences=True),
        recurrent(layer, "without bias", use_bias=False, return_sequences=True),
        recurrent(layer, "last state", output=states, return_state=True),
        recurrent(layer, "sequences and state", output=0, return_state=True, return_sequences=True),
        recurrent(layer, "a state is given", given, initial),
        recurrent(layer, "a state is given, last state", given, initial, output=states, return_state=True, go_backwards=True),
        recurrent(layer, "mask", [X, MASK], {"mask": 1}, [1], return_sequences=True),
        recurrent(layer, "mask, last step", [X, MASK], {"mask": 1}, [1]),
        recurrent(layer, "mask, backwards", [X, MASK], {"mask": 1}, [1], return_sequences=True, go_backwards=True),
        recurrent(layer, "mask, zero output", [X, MASK], {"mask": 1}, [1], return_sequences=True, zero_output_for_mask=True),
        recurrent(layer, "mask, zero output, last step", [X, MASK], {"mask": 1}, [1], zero_output_for_mask=True),
        recurrent(layer, "mask, last state", [X, MASK], {"mask": 1}, [1], output=states, return_state=True),
        recurrent(layer, "mask and a state", given + [MASK], initial | {"mask": 1 + states}, [1 + states], return_sequences=True),
        recurrent(layer, "mask and a state, backwards", given + [MASK], initial | {"mask": 1 + states}, [1 + states],
                  return_sequences=True, go_backwards=True),
        recurrent(layer, "mask and a state, last step", given + [MASK], initial | {"mask": 1 + states}, [1 + states]),
        recurrent(layer, "other activation", activation="relu", return_sequences=True),
        recurrent(layer, "other activation, mask, backwards", [X, MASK], {"mask": 1}, [1], activation="softsign", go_backwards=True),
        recurrent(layer, "other activation, last state", given, initial, output=states, activation="gelu", return_state=True),
        recurrent(layer, "unrolled", unroll=True, return_sequences=True),
        recurrent(layer, "one step", [[3, 1, 5]], return_sequences=True),
        recurrent(layer, "37 units, 19 rows", [[19, 5, 7]], units=37, return_sequences=True),
        recurrent(layer, "64 units", [[2, 9, 8]], units=64),
        recurrent(layer, "dropout in inference", dropout=0.5, recurrent_dropout=0.5),
    ]
CASES += [
    recurrent("LSTM", "hard_sigmoid", recurrent_activation="hard_sigmoid", return_sequences=True),
    recurrent("LSTM", "linear gates", recurrent_activation="linear", activation="linear"),
    recurrent("LSTM", "h of the last state", output=1, return_state=True),
    recurrent("LSTM", "bias without the ones", unit_forget_bias=False),
    recurrent("GRU", "hard_sigmoid", recurrent_activation="hard_sigmoid", return_sequences=True),
]
BEFORE = {"reset_after": False}
CASES += [
    recurrent("GRU", "reset before", return_sequences=True, **BEFORE),
    recurrent("GRU", "reset before, without bias", use_bias=False, **BEFORE),
    recurrent("GRU", "reset before, backwards", go_backwards=True, return_sequences=True, **BEFORE),
    recurrent("GRU", "reset before, mask and a state", [X, STATE, MASK], {"initial_state": [1], "mask": 2}, [2],
              return_sequences=True, **BEFORE),
    recurrent("GRU", "reset before, mask, last state", [X, MASK], {"mask": 1}, [1], output=1, return_state=True, **BEFORE),
    recurrent("GRU", "reset before, other activation", activation="elu", return_sequences=True, **BEFORE),
    recurrent("GRU", "reset before, 37 units, 19 rows", [[19, 5, 7]], units=37, return_sequences=True, **BEFORE),
    recurrent("GRU", "reset before, hard_sigmoid", recurrent_activation="hard_sigmoid", **BEFORE),
]
