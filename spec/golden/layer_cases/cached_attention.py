"""Cases of CachedMultiHeadAttention, a class of KerasHub, and what it computes, written with Keras' MultiHeadAttention: keys and values
of earlier calls are in the cache {batch, 2, steps, heads, size}, those of this call take the places from cache_update_index on."""
import keras
from keras import ops

from .basics import CAUSAL, HEADS, SELF, attention

FIRST_SEED = 97800


class CachedMultiHeadAttention(keras.layers.MultiHeadAttention):
    """use_causal_mask: a step sees those of the cache up to its own place."""
    def call(self, query, value, key=None, attention_mask=None, cache=None, cache_update_index=None, use_causal_mask=False):
        if cache is None:
            return super().call(query, value, key=key, attention_mask=attention_mask, use_causal_mask=use_causal_mask)
        q, steps, room = self._query_dense(query), query.shape[1], cache.shape[2]
        places = ops.arange(steps, dtype="int32")[None]
        if cache_update_index is not None:
            places = cache_update_index + ops.arange(steps, dtype="int32")      # {batch, steps}
            new = ops.stack([self._key_dense(value if key is None else key), self._value_dense(value)], axis=1)
            put = ops.cast(ops.equal(ops.expand_dims(places, -1), ops.arange(room, dtype="int32")), cache.dtype)      # {batch, steps, room}
            kept = 1 - ops.sum(put, axis=1)
            cache = cache * kept[:, None, :, None, None] + ops.einsum("bsr,bcshd->bcrhd", put, new)
        if use_causal_mask or self._sliding_window:
            distance = ops.expand_dims(places, -1) - ops.arange(room, dtype="int32")
            seen = distance >= 0 if use_causal_mask else ops.ones_like(distance, "bool")
            if self._sliding_window:
                seen = ops.logical_and(seen, ops.abs(distance) < self._sliding_window)
            attention_mask = seen if attention_mask is None else ops.logical_and(seen, ops.cast(attention_mask, "bool"))
        found, _ = self._compute_attention(q, cache[:, 0], cache[:, 1], attention_mask)
        if self._use_gate:
            found = found * self._gate_dense(query)
        return self._output_dense(found), cache

    def compute_output_spec(self, query, value, key=None, attention_mask=None, cache=None, cache_update_index=None, use_causal_mask=False):
        output = super().compute_output_spec(query, value)
        return output if cache is None else (output, keras.KerasTensor(cache.shape, cache.dtype))


def cached(name, shapes, named, places, call=None, masks=(), output=0, **options):
    """named: positions in shapes, from 0; places: what is not reached by the places in the last of them, where there are any."""
    case = attention("CachedMultiHeadAttention", name, shapes, [0, 0], named, masks=masks, call=call, more={"output": output}, **options,
                     **HEADS)
    if places:
        case["classes"][named["cache_update_index"]] = places
    return case


STEP, STEPS, PLACE, CACHE = [2, 1, 8], [2, 3, 8], [2, 1], [2, 2, 6, 3, 4]
WHERE = {"cache": 1, "cache_update_index": 2}
CASES = [
    attention("CachedMultiHeadAttention", "without a cache", SELF[:1], [0, 0], call=CAUSAL, **HEADS),
    cached("a step", [STEP, CACHE, PLACE], WHERE, 6, CAUSAL),
    cached("a step, the cache", [STEP, CACHE, PLACE], WHERE, 6, CAUSAL, output=1),
    cached("steps, a window, a gate", [STEPS, CACHE, PLACE], WHERE, 4, CAUSAL, use_gate=True, sliding_window=3),
    cached("steps, the cache", [STEPS, CACHE, PLACE], WHERE, 4, output=1, use_bias=False),
    cached("steps, a mask", [STEPS, CACHE, PLACE, [2, 3, 6]], WHERE | {"attention_mask": 3}, 4, masks=[3], output_shape=[5]),
    cached("a cache that stays", [STEPS, CACHE], {"cache": 1}, None),
]
