"""What becomes of a random model (random_nets.py): it agrees with Keras, float32 does not settle it, Keras cannot run it for a reason that
is known, another backend of Keras does as flowlua does, or they differ. A table of these over any number of logs."""
import re

AGREES, UNSETTLED, DIFFERS = "agrees", "float32 does not settle it", "differs"
CANNOT, BACKENDS = "Keras cannot: ", "backends of Keras disagree, ours is as with "

# By backend, or None for all of them; what the problem says; what the model's config.json has; the reason, with its place in Keras 3.15.
REASONS = [
    ("torch", "Lanczos interpolation is not supported", "",
     "Torch has no Lanczos filter (backend/torch/image.py)"),
    ("torch", "Invalid dtype: object|Unsupported dtype.*str|can't convert np.ndarray of type numpy.(str|object)", "",
     "Torch has no strings (backend/torch/core.py)"),
    ("torch", "not implemented for '(Long|Int)'", "Lookup|AugMix", "Torch has no such function of whole numbers, which Keras gives it"),
    (None, "^Keras: None$", '"ReversibleEmbedding"',
     "ReversibleEmbedding with lora_rank and a second table locks its variables before it makes that (reversible_embedding.py, build)"),
    ("torch", "'tuple' object has no attribute 'shape'", '"unroll": true',
     "Torch's loop of steps cannot be unrolled with a mask (backend/torch/rnn.py)"),
    ("jax", "dtype=int64|Invalid dtype: object|data type 'string' not understood|Unable to automatically build",
     "HashedCrossing|Lookup|TextVectorization|Hashing",
     "JAX has neither strings nor int64 (backend/jax/core.py)"),
    (None, "'equalization.*is part of a cycle", "Equalization",
     "Equalization is lost from a graph that is copied (layers/preprocessing/image_preprocessing/equalization.py)"),
    (None, "incompatible with the layer|shapes? |size would be zero", '"RandomCrop"',
     "RandomCrop tells the shape of training and gives pictures as they are (random_crop.py)"),
    (None, "[Kk]eras: .*(incompatible|shape)", '"TextVectorization"',
     "TextVectorization tells another shape than it gives (text_vectorization.py, compute_output_shape)"),
    (None, "incompatible with the layer|shapes?|out of bounds", '"Hashing".{0,300}"output_mode": "one_hot"',
     "Hashing to one_hot tells a row for each sample and gives one for each value (hashing.py, compute_output_spec)"),
    (None, "incompatible with the layer|zero or negative", '"EinsumDense"',
     "EinsumDense tells the axes of an ellipsis in the reverse order (einsum_dense.py, compute_output_shape)"),
    (None, "object of type 'int' has no len", '"EinsumDense"',
     "EinsumDense with an ellipsis cannot be quantized (einsum_dense.py, _analyze_quantization_info)"),
    (None, "^y ", r'"go_backwards": true[^{}]*(\{[^{}]*(\{[^{}]*\}[^{}]*)*\}[^{}]*)*"unroll": true[^{}]*"zero_output_for_mask": true',
     "unrolled loops that go backwards lay the mask over outputs in the other order (backend/*/rnn.py, zero_output_for_mask)"),
    (None, "list index out of range|arity mismatch|Substructure|pytree|same structure", '"StackedRNNCells"',
     "StackedRNNCells of unlike cells has states of another structure than a masked loop can hold (backend/*/rnn.py)"),
    ("tensorflow", "not yet support dilation rates", "Conv[123]DTranspose",
     "TensorFlow's CPU has no dilated transposed convolution"),
    ("tensorflow", "attr 'T' of int(32|64) is not in the list of allowed values", '"Activation"',
     "TensorFlow has no such function of whole numbers, which Keras gives it"),
    (None, "keras_hub", '"CachedMultiHeadAttention"', "CachedMultiHeadAttention is a class of KerasHub, which is not installed"),
    (None, "exactly 2 tensors|list/tuple of 2 tensors", '"HashedCrossing"',
     "HashedCrossing takes two tensors only (hashed_crossing.py, compute_output_shape)"),
    (None, "^loss ", r'(?s)(?=.*"TextVectorization")(?=.*"output_mode": "(count|multi_hot)")(?=.*"activity_regularizer": \{)',
     "TextVectorization tells floats and gives whole numbers, by which TensorFlow cuts the factors of regularizers to whole numbers, too"),
    (None, "Cannot convert '.*' to a shape", r'"TimeDistributed".*"return_state": true',
     "TimeDistributed takes the shape of several results for one (layers/rnn/time_distributed.py, compute_output_shape)"),
    (None, r"Incompatible shapes: \[.*\] vs\. \[|must match the size of tensor|incompatible shapes for broadcasting",
     r'(?s)(?=.*"mask_zero": true|.*"Masking")(?=.*"MultiHeadAttention").*"output_shape": \[\s*\d+,',
     "Losses multiply values by a mask that has more than one axis less (losses/loss.py, reduce_weighted_values)"),
    (None, "loss is NaN or infinite, ours is not", '"OrthogonalRegularizer"',
     "OrthogonalRegularizer of one row or column divides 0 by 0 (regularizers.py, num_pairs)"),
    (None, "loss is NaN or infinite, ours is not", '"AutoContrast"',
     "AutoContrast gives a channel of equal values NaN as gradient (layers/preprocessing/image_preprocessing/auto_contrast.py)"),
]


def verdict(problems, config, backend):
    """One of the words above, with a reason where there is one."""
    if not problems:
        return AGREES
    if any(UNSETTLED in problem for problem in problems):
        return UNSETTLED
    for where, said, has, reason in REASONS:
        if where in (None, backend) and re.search(has, config) and re.search(said, "\n".join(problems)):
            return CANNOT + reason
    return DIFFERS


def line(seed, backend, what, result, problems):
    text = "; ".join(problems).replace("\n", " ").strip()
    return "\t".join(filter(None, [f"seed {seed}", backend, what.replace("\t", " | "), result, text]))


def results(lines):
    """By (seed, backend): the verdict of the last line about it, and that line."""
    found = {}
    for text in lines:
        parts = text.rstrip("\n").split("\t")
        if parts[0].startswith("seed ") and len(parts) >= 4:
            found[int(parts[0][5:]), parts[1]] = parts[3], text
    return found


def table(lines, version=""):
    """The table as text, and whether nothing differs."""
    found = results(lines)
    counts = {}
    for (_, backend), (result, _) in found.items():
        counts.setdefault(result, {}).setdefault(backend, 0)
        counts[result][backend] += 1
    backends = sorted({backend for _, backend in found})
    rows = [["", *backends, "all"]]
    for result in sorted(counts, key=lambda text: ([AGREES, UNSETTLED].index(text) if text in (AGREES, UNSETTLED) else 3, text)):
        rows.append([result, *(str(counts[result].get(backend, 0)) for backend in backends), str(sum(counts[result].values()))])
    rows.append(["models", *(str(sum(1 for _, b in found if b == backend)) for backend in backends), str(len(found))])
    text = "\n".join("  ".join([*(n.rjust(10) for n in row[1:]), row[0]]) for row in rows)
    return f"Random models beside Keras {version}:\n{text}", DIFFERS not in counts
