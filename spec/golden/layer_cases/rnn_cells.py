"""Cases of RNN over cells, and of cells called by themselves."""

from layer_cases.recurrent import MASK, STATE, X
from layer_cases.rnn_wrappers import layer, wrapper

FIRST_SEED = 82000


def rnn(name, cell, shapes=None, named=None, masks=(), output=None, **options):
    case = wrapper(name, "RNN", None, shapes, named, masks, output)
    return case | {"options": {"cell": cell} | options}


def alone(kind, name, states, output, **options):
    return {"name": kind + " " + name, "layer": kind, "inputs": [[3, 5]] + [STATE] * states, "options": {"units": 4} | options,
            "classes": None, "call": {"arguments": [0, list(range(1, 1 + states))], "named": {}, "options": {}}, "output": output}


CASES = []
for kind, states in [("SimpleRNNCell", 1), ("LSTMCell", 2), ("GRUCell", 1)]:
    cell, initial = layer(kind, units=4), {"initial_state": list(range(1, 1 + states))}
    given = [X] + [STATE] * states
    CASES += [alone(kind, "output", states, 0), alone(kind, "last state", states, states),
              alone(kind, "other activation", states, 0, activation="relu"),
              alone(kind, "without bias", states, states, use_bias=False)]
    CASES += [
        rnn(kind, cell),
        rnn(kind + ", sequences", cell, return_sequences=True),
        rnn(kind + ", backwards", cell, return_sequences=True, go_backwards=True),
        rnn(kind + ", last state", cell, output=states, return_state=True),
        rnn(kind + ", a state is given", cell, given, initial, return_sequences=True),
        rnn(kind + ", mask", cell, [X, MASK], {"mask": 1}, [1], return_sequences=True),
        rnn(kind + ", mask, last step", cell, [X, MASK], {"mask": 1}, [1]),
        rnn(kind + ", mask, backwards", cell, [X, MASK], {"mask": 1}, [1], return_sequences=True, go_backwards=True),
        rnn(kind + ", mask, zero output", cell, [X, MASK], {"mask": 1}, [1], return_sequences=True, zero_output_for_mask=True),
        rnn(kind + ", mask and a state", cell, given + [MASK], initial | {"mask": 1 + states}, [1 + states], output=states,
            return_state=True),
    ]
STACKED = [layer("LSTMCell", units=4), layer("GRUCell", units=3), layer("SimpleRNNCell", units=5)]
CASES += [
    alone("GRUCell", "reset before", 1, 0, reset_after=False),
    alone("LSTMCell", "hard_sigmoid", 2, 2, recurrent_activation="hard_sigmoid"),
    rnn("three cells", STACKED),
    rnn("three cells, sequences", STACKED, return_sequences=True),
    rnn("three cells, a state of the first", STACKED, output=2, return_state=True),
    rnn("three cells, a state of the last", STACKED, output=4, return_state=True),
    rnn("three cells, mask, backwards", STACKED, [X, MASK], {"mask": 1}, [1], return_sequences=True, go_backwards=True),
    rnn("stacked", layer("StackedRNNCells", cells=STACKED[:2]), return_sequences=True),
    wrapper("RNN", "Bidirectional", layer("RNN", cell=layer("GRUCell", units=4), return_sequences=True)),
    wrapper("RNN, mask", "Bidirectional", layer("RNN", cell=STACKED), [X, MASK], {"mask": 1}, [1], merge_mode="sum"),
]
