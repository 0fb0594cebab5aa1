"""The cases of ops.py."""
import numpy as np


def lua(value):
    """A Python value as Lua."""
    if isinstance(value, (Axis, Position, Input)):
        return value.lua()
    if value is None:
        return "nil"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + value + '"'
    if isinstance(value, (list, tuple)):
        return "{ " + ", ".join(lua(entry) for entry in value) + " }" if value else "{}"
    return repr(value)


class Axis:
    """A number that counts axes, or positions, from 0 in Keras and from 1 in flow."""
    def __init__(self, value):
        self.value = value

    def keras(self):
        return self.value

    def lua(self):
        return lua([Axis(v) for v in self.value]) if isinstance(self.value, (list, tuple)) else repr(self.value + (self.value >= 0))


class Input:
    def __init__(self, index):
        self.index = index

    def keras(self):
        raise NotImplementedError

    def lua(self):
        return "abcdefgh"[self.index]


class Random:
    """Numbers from low to high: whole ones, or floats."""
    def __init__(self, shape, low=-2.0, high=2.0, dtype="float64"):
        self.shape, self.low, self.high, self.dtype = shape, low, high, dtype

    def make(self, generator):
        if self.dtype == "bool":
            return generator.integers(0, 2, self.shape).astype(bool)
        if self.dtype.startswith(("int", "uint")):
            return generator.integers(self.low, self.high, self.shape).astype(self.dtype)
        return np.asarray(generator.uniform(self.low, self.high, self.shape)).astype(self.dtype)


class Given:
    def __init__(self, values, dtype="float64"):
        self.values = np.array(values, dtype=dtype)

    def make(self, generator):
        return self.values


class Position(Given):
    """Positions from 0, which flow counts from 1."""
    def __init__(self, values, dtype="int32"):
        super().__init__(values, dtype)


class Made(Random):
    """What f makes of random numbers."""
    def __init__(self, shape, f, low=-2.0, high=2.0):
        super().__init__(shape, low, high)
        self.f = f

    def make(self, generator):
        return self.f(super().make(generator))


class Case:
    """name: of keras.ops; the arrays among the arguments, or in lists of them, are inputs. positions: numbers of the results that count."""
    def __init__(self, name, *args, gradient=True, traced=True, positions=(), tolerance=None, lua_options=None, lua_name=None, **options):
        self.name, self.arrays, self.gradient, self.traced, self.positions = name, [], gradient, traced, positions
        self.tolerance, self.lua_options, self.lua_name = tolerance, lua_options, lua_name
        self.args = [self.hold(value) for value in args]
        self.options = {key: self.hold(value) for key, value in options.items()}

    def hold(self, value):
        if isinstance(value, (Random, Given)):
            self.arrays.append(value)
            return Input(len(self.arrays) - 1)
        if isinstance(value, list):
            return [self.hold(entry) for entry in value]
        return value

    def inputs(self, generator):
        return [entry.make(generator) for entry in self.arrays]

    def call(self):
        options = self.options if self.lua_options is None else self.lua_options
        parts = [lua(value) for value in self.args]
        if options:
            parts.append("{ " + ", ".join(f"{key} = {lua(value)}" for key, value in options.items()) + " }")
        name = self.lua_name or self.name
        if name.startswith("tf."):
            return name + "(" + ", ".join(parts) + ")"
        return ("ops" if name.isidentifier() or "." in name else "") + "." + name + "(" + ", ".join(parts) + ")"


CASES = []


def case(name, *args, **options):
    CASES.append(Case(name, *args, **options))


SHAPES = [(), (5,), (3, 4), (2, 3, 4), (0, 3)]
IMAGE = (3, 5)
NAN, INF = float("nan"), float("inf")


def whole(shape, low=-9, high=10, dtype="int32"):
    return Random(shape, low, high, dtype)


# ---- elementwise ---------------------------------------------------------------------------------------------------------

for names, low, high in [
    ("exp2 sinh cosh arcsinh deg2rad rad2deg sinc erfc i0 log_sigmoid tanh_shrink hard_tanh sparse_sigmoid sparse_plus celu hard_shrink "
     "soft_shrink squareplus arctan angle real imag conj isreal signbit trunc fabs isinf isposinf isneginf nan_to_num", -3, 3),
    ("log2 log10", 0.1, 5), ("cbrt", 0.3, 4), ("arcsin arccos arctanh erfinv", -0.95, 0.95), ("arccosh", 1.1, 4),
]:
    for name in names.split():
        gradient = name not in "imag conj angle real isreal".split()
        for shape in SHAPES:
            case(name, Random(shape, low, high), gradient=gradient, tolerance=3e-7 if name in ("i0", "erfinv") else None)
SPECIAL = [NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 2.5]
for name in "isinf isposinf isneginf signbit nan_to_num arctan arcsin arccos cosh sinh arcsinh hard_tanh exp2 cbrt erfc trunc".split():
    case(name, Given(SPECIAL), gradient=False)
case("nan_to_num", Given(SPECIAL), 1.0, 2.0, 3.0, gradient=False)
for name in "logaddexp logaddexp2 hypot arctan2 fmax fmin heaviside isclose true_divide fmod floor_divide nextafter".split():
    gradient = name not in ("heaviside", "nextafter", "isclose", "floor_divide", "fmod")
    for a, b in [((3, 4), (3, 4)), ((3, 1), (4,)), ((), (5,)), ((0, 3), (3,))]:
        case(name, Random(a), Random(b, 0.4, 3), gradient=gradient, traced=name != "nextafter")
UNLIKE_NUMPY = ("hypot", "arctan2", "heaviside", "isclose")
PAIRS = np.array([(x, y) for x in SPECIAL for y in SPECIAL])
for name in "logaddexp hypot fmax fmin arctan2 heaviside isclose".split():
    # Keras with TensorFlow differs from NumPy in NaN and in pairs of infinities.
    kept = np.array([p for p in PAIRS if name not in UNLIKE_NUMPY or not np.isnan(p).any() and np.isinf(p).sum() < 1 + (name != "isclose")])
    case(name, Given(kept[:, 0]), Given(kept[:, 1]), gradient=False)
case("isclose", Given([1.0, 1.0, NAN]), Given([1.00001, 1.1, NAN]), lua_options={"equal_nan": True}, equal_nan=True, gradient=False)
case("allclose", Given([1.0, 2.0]), Given([1.0, 2.0000001]), gradient=False)
case("ldexp", Random((3, 4)), whole((4,), -3, 4), gradient=False)
case("celu", Random((4, 3)), 0.5)
case("hard_shrink", Random((4, 3)), 1.0)
case("soft_shrink", Random((4, 3)), 1.0)
case("squareplus", Random((4, 3)), 2.0)
case("threshold", Random((4, 3)), 0.5, -1.0)
for shape, axis in [((2, 4), -1), ((4, 3), 0), ((2, 6, 3), 1)]:
    case("glu", Random(shape), Axis(axis))
    case("sparsemax", Random(shape), Axis(axis))
for name in "bitwise_and bitwise_or bitwise_xor gcd lcm".split():
    for dtype in ("int8", "uint8", "int32", "int64"):
        low = 0 if dtype == "uint8" or name == "lcm" else -100      # with TensorFlow lcm may be negative
        case(name, whole((5, 4), low, 11 if name == "lcm" else 100, dtype), whole((4,), low, 11 if name == "lcm" else 100, dtype))
case("logical_xor", Random((6,), dtype="bool"), Random((6,), dtype="bool"))
case("bitwise_and", Given([-2**63, 2**63 - 1, -1, 5], "int64"), Given([-1, 2**62, -2**63, 3], "int64"))
case("bitwise_xor", Given([-2**63, 2**63 - 1, -1, 5], "int64"), Given([-1, 2**62, -2**63, 3], "int64"))
for dtype in ("int8", "uint8", "int32", "int64"):
    case("bitwise_not", whole((7,), 0, 100, dtype))
for name in ("bitwise_left_shift", "left_shift", "bitwise_right_shift", "right_shift"):
    for dtype in ("uint8", "int32", "int64"):
        case(name, whole((8,), 0 if dtype == "uint8" else -100, 100, dtype), whole((8,), 0, 7, dtype))
case("floor_divide", whole((5, 4), -20, 20), Given([3, -4, 7, -1], "int32"))
case("mod", whole((5, 4), -20, 20), Given([3, -4, 7, -1], "int32"))
case("saturate_cast", Given([-1e9, -300.0, -1.5, 0.0, 1.5, 127.4, 300.0, 1e9]), "int8", gradient=False)
case("saturate_cast", Given([-1000, 3, 255, 256], "int32"), "uint8")
case("view", Random((2, 3)), "int64", traced=False)
case("view", Random((2, 4), dtype="float32"), "int32", traced=False)
case("view", whole((2, 8), 0, 100, "uint8"), "int32", traced=False)

# ---- arrangement ----------------------------------------------------------------------------------------------------------

for axis in (None, Axis(0), Axis(1), Axis(-1)):
    case("append", Random((2, 3)), Random((2, 3)), axis)
for name in "hstack vstack dstack".split():
    for shape in [(3,), (2, 3), (2, 3, 4)][name == "vstack":]:
        case(name, [Random(shape), Random(shape)])
case("hsplit", Random((4, 6, 2)), 3)
case("vsplit", Random((4, 6, 2)), 2)
case("dsplit", Random((4, 6, 2)), 2)
for n, axis in [(2, 0), (3, 1), (5, -1), (4, 0)]:
    case("array_split", Random((3, 7)), n, Axis(axis))
for n, axis in [(1, -1), (2, 0), (0, 1), (1, 0)]:
    case("diff", Random((4, 5)), n, Axis(axis))
case("diff", Random((5,), dtype="bool"))
for name in ("fliplr", "flipud"):
    case(name, Random((3, 4)))
    case(name, Random((3, 4, 2)))
for source, to in [(0, -1), (2, 0), ([0, 1], [-1, -2]), ([2, 0], [0, 1])]:
    case("moveaxis", Random((2, 3, 4)), Axis(source), Axis(to))
for k in (-1, 0, 1, 3, 4):      # with TensorFlow Keras turns by 180 degrees otherwise than NumPy
    case("rot90", Random((2, 3, 4)), k)
    case("rot90", Random((2, 3, 4)), k, Axis((1, 2)))
    case("rot90", Random((2, 3, 4)), k, Axis((2, 0)))
for shift, axis in [(2, None), (-1, 0), (7, 1), (1, -1), ((1, 2), (0, 1)), (0, 0)]:
    case("roll", Random((3, 5)), shift, None if axis is None else Axis(axis))
for k in (-2, 0, 1, 2):
    for name in ("tril", "triu"):
        case(name, Random((3, 4)), k)
        case(name, Random((2, 4, 3)), k)
        case(name, whole((3, 3)), k)
    case("diag", Random((3,)), k)
    case("diag", Random((3, 5)), k)
    case("diag", Random((5, 3)), k)
    case("diagflat", Random((2, 2)), k)
    case("diagonal", Random((3, 4)), k)
    case("diagonal", Random((2, 3, 4)), k, Axis(1), Axis(2))
    case("diagonal", Random((3, 3, 4)), k, Axis(2), Axis(0))
    case("trace", Random((3, 4, 2)), k)
    case("trace", whole((3, 4)), k)
    case("tri", 3, 4, k, traced=False)
for start, stop, num in [(0.0, 2.0, 5), (1.0, -1.0, 4), (0.0, 3.0, 1)]:
    case("logspace", start, stop, num, traced=False, tolerance=1e-6)
    case("logspace", start, stop, num, traced=False, endpoint=False, base=2.0, tolerance=1e-6)
case("geomspace", 1.0, 256.0, 9, traced=False, tolerance=1e-6)
case("geomspace", -1.0, -1000.0, 4, traced=False, endpoint=False, tolerance=1e-6)
case("meshgrid", Random((3,)), Random((4,)))
case("meshgrid", Random((3,)), Random((4,)), Random((2,)), indexing="ij")
case("meshgrid", Random((3,)), Random((4,)), Random((2,)))
for name in "bartlett blackman hamming hanning".split():
    for n in (1, 2, 7, 8):
        case(name, n, traced=False, tolerance=1e-6)
case("kaiser", 7, 5.0, traced=False, tolerance=1e-6)
for pattern, sizes in [("b h w c -> b (h w) c", {}), ("b (h k) w c -> b h w (k c)", {"k": 2}), ("b h w c -> (b c) w h", {})]:
    case("rearrange", Random((2, 4, 3, 5)), pattern, lua_options=sizes, **sizes)

# ---- positions --------------------------------------------------------------------------------------------------------------

case("take_along_axis", Random((3, 4)), Position([[0, 3, -1], [1, 1, 0], [2, -4, 0]]), Axis(1))
case("take_along_axis", Random((3, 4)), Position([[0, 2, -1, 1]]), Axis(0))
case("take_along_axis", Random((3, 4)), Position([0, 11, -1]), None)
case("take_along_axis", Random((2, 3, 4)), Position(np.arange(2 * 3 * 2).reshape(2, 3, 2) % 4), Axis(-1))
case("take", Random((3, 4)), Position([[0, 2], [1, -1]]), Axis(0))
case("take", Random((3, 4)), Position([0, 3, -2]), Axis(1))
case("scatter", Position([[0], [2], [0]]), Random((3, 2)), (4, 2))
case("scatter", Position([[0, 1], [2, 1], [0, 1]]), Random((3,)), (3, 2))
case("scatter", Position([[0, 1], [2, 1], [0, 1]]), whole((3,)), (3, 2))
for reduction in (None, "add", "max", "min", "mul"):
    case("scatter_update", Random((4, 3)), Position([[0, 1], [3, 2], [2, 0]]), Random((3,)), reduction)
    case("scatter_update", Random((4, 3)), Position([[0], [2]]), Random((2, 3)), reduction)
    case("scatter_update", whole((5,)), Position([[1], [4]]), whole((2,)), reduction)
for reduction in ("add", "max", "min", "mul"):
    case("scatter_update", Random((4,)), Position([[1], [1], [3]]), Random((3,)), reduction)
case("slice", Random((4, 5)), Axis([1, 2]), (2, 3))
case("slice_update", Random((4, 5)), Axis([1, 2]), Random((2, 3)), gradient=False)
case("select", [Given([True, False, False], "bool"), Given([True, True, False], "bool")], [Random((3,)), Random((3,))], 7.0)
case("nonzero", Given([[0, 1, 2], [3, 0, 4]], "int32"), traced=False, positions=(0, 1))
case("nonzero", Given([0.0, 0.0]), traced=False, positions=(0,), gradient=False)
case("where", Given([[0, 1, 2], [3, 0, 4]], "bool"), traced=False, positions=(0, 1))
case("unravel_index", Position([0, 5, 11, -1]), (3, 4), positions=(0, 1))
for name in ("segment_sum", "segment_max", "segment_min", "segment_prod"):
    case(name, Random((6,)), Given([0, 2, 1, 2, 0, 4], "int32"), 5, gradient=name != "segment_prod")
    case(name, Random((6, 3)), Given([0, 2, 1, 2, 0, 0], "int32"), 3, gradient=name != "segment_prod")
    case(name, whole((6,), 0, 5), Given([0, 1, 1, 2, 0, 2], "int32"), 3)
case("segment_sum", Random((5, 2)), Given([0, -1, 2, 1, 1], "int32"), 3)

# ---- order and sums -----------------------------------------------------------------------------------------------------------

for shape, axis in [((7,), -1), ((3, 5), 0), ((3, 5), 1), ((2, 4, 3), 1), ((0, 3), 1)]:
    case("sort", Random(shape), Axis(axis))
    case("argsort", Random(shape), Axis(axis), positions=(0,), gradient=False)
    case("cumsum", Random(shape), Axis(axis))
    case("cumprod", Random(shape), Axis(axis), gradient=True)
    for dtype in ("int8", "uint8", "int32", "int64"):
        case("sort", whole(shape, 0, 20, dtype), Axis(axis))
        case("argsort", whole(shape, 0, 4, dtype), Axis(axis), positions=(0,))
case("sort", Given([3.0, INF, -INF, 0.0, -2.0]), gradient=False)
case("cumsum", Random((3, 4)), None)
case("cumprod", Given([1.0, 0.0, 2.0, 3.0]), Axis(0), gradient=False)
case("cumsum", whole((3, 4)), Axis(1))
case("cumsum", Random((5,), dtype="bool"), Axis(0))
for axis in (None, Axis(0), Axis(1), Axis((0, 2))):
    for keepdims in (False, True):
        for name in "amax amin ptp median nansum nanmean nanmax nanmin nanvar nanstd nanprod nanmedian".split():
            case(name, Random((3, 4, 5)), axis, keepdims)
for axis in (None, Axis(0), Axis(1)):
    holes = Made((4, 5), lambda x: np.where(x > 1, NAN, x))
    for name in "nansum nanmean nanmax nanmin nanvar nanstd nanprod nanmedian nancumsum nancumprod".split():
        case(name, holes, axis, gradient=False)
    if axis is not None:
        case("nanargmax", holes, axis, positions=(0,), gradient=False)
        case("nanargmin", holes, axis, positions=(0,), gradient=False)
    case("count_nonzero", whole((4, 5), -1, 2), axis)
    case("average", Random((4, 5)), axis)
    case("average", Random((4, 5)), axis, weights=Random((4, 5), 0.1, 1))
case("average", Random((4, 5)), Axis(1), weights=Random((5,), 0.1, 1))
for method in ("linear", "lower", "higher", "midpoint", "nearest"):
    for q in (0.0, 0.25, 0.375, 1.0):
        case("quantile", Random((4, 5)), q, Axis(1), method=method)
    case("percentile", Random((4, 5)), 37.5, Axis(0), method=method)
case("quantile", Random((4, 5)), (0.125, 0.75), Axis(0))
case("quantile", Random((4, 5)), 0.375, None, keepdims=True)
case("nanquantile", Made((4, 5), lambda x: np.where(x > 1, NAN, x)), 0.375, Axis(1), gradient=False)
case("nanpercentile", Made((4, 5), lambda x: np.where(x > 1, NAN, x)), 37.5, Axis(1), gradient=False)
EDGES = Given([-1.0, 0.0, 0.5, 2.0])
VALUES = Given([-3.0, -1.0, 0.0, 0.2, 0.5, 1.9, 2.0, 5.0])
for side in ("left", "right"):
    case("searchsorted", EDGES, VALUES, side, positions=(0,), gradient=False)
case("searchsorted", Given([1, 3, 5], "int32"), whole((12,), 0, 8), positions=(0,))
case("digitize", VALUES, EDGES, gradient=False)
case("histogram", Random((30,)), 5, traced=False, gradient=False)
case("histogram", Random((30,)), 4, (-1.0, 1.5), traced=False, gradient=False)
case("bincount", Given([1, 2, 2, 5], "int32"), traced=False)
case("bincount", Given([1, 2, 2, 5], "int32"), weights=Random((4,)), traced=False, gradient=False)
case("bincount", Given([1, 2, 2, 5], "int32"), minlength=8, traced=False)
case("bincount", whole((3, 4), 0, 5), minlength=5, traced=False)
case("isin", whole((3, 4), 0, 5), Given([1, 3], "int32"))
case("isin", whole((3, 4), 0, 5), Given([1, 3], "int32"), invert=True)
case("unique", whole((20,), 0, 6), traced=False)
case("unique", whole((20,), 0, 6), traced=False, return_inverse=True, return_counts=True, positions=(1,))
case("in_top_k", whole((6,), 0, 5), Random((6, 5), dtype="float32"), 2, gradient=False)
case("top_k", Random((3, 6)), 2, positions=(1,))
case("trapezoid", Random((3, 5)))
case("trapezoid", Random((3, 5)), dx=0.5, axis=Axis(0))
case("trapezoid", Random((3, 5)), Given([0.0, 1.0, 1.5, 2.0, 4.0]))
case("corrcoef", Random((3, 6)))
for mode in ("valid", "same", "full"):
    for n, m in [(7, 3), (6, 4), (5, 5)] + ([(3, 7), (4, 6)] if mode != "valid" else []):
        case("correlate", Random((n,)), Random((m,)), mode)

# ---- products --------------------------------------------------------------------------------------------------------------------

case("tensordot", Random((2, 3, 4)), Random((3, 4, 5)))
case("tensordot", Random((2, 3)), Random((3, 5)), 1)
case("tensordot", Random((2, 3, 4)), Random((4, 2, 5)), [Axis((0, 2)), Axis((1, 0))])
for a, b in [((3,), (3,)), ((2, 3), (4, 3)), ((2, 3), (3,))]:
    case("inner", Random(a), Random(b))
case("outer", Random((2, 3)), Random((4,)))
case("vdot", Random((2, 3)), Random((2, 3)))
for a, b in [((2, 3), (3, 2)), ((3,), (2,)), ((2, 1, 2), (1, 3, 2))]:
    case("kron", Random(a), Random(b))
for a, b in [((4, 3), (4, 3)), ((4, 2), (4, 2)), ((3,), (3,))]:
    case("cross", Random(a), Random(b))
case("vander", Random((4,), 0.3, 2))
case("vander", Random((4,), 0.3, 2), 3, True)
case("cdist", Random((2, 4, 3)), Random((2, 5, 3)))

# ---- networks ----------------------------------------------------------------------------------------------------------------------

for padding in ("valid", "same"):
    for strides in (1, 2):
        case("conv", Random((2, 7, 3)), Random((3, 3, 4)), strides=strides, padding=padding)
        case("conv", Random((2, 7, 6, 3)), Random((3, 2, 3, 4)), strides=strides, padding=padding)
        case("conv", Random((2, 5, 6, 5, 2)), Random((3, 2, 2, 2, 3)), strides=strides, padding=padding)
        case("depthwise_conv", Random((2, 7, 6, 3)), Random((3, 2, 3, 2)), strides=strides, padding=padding)
        case("conv_transpose", Random((2, 4, 3)), Random((3, 4, 3)), strides=strides, padding=padding)
        case("conv_transpose", Random((2, 4, 3, 3)), Random((3, 2, 4, 3)), strides=strides, padding=padding)
        for name in ("max_pool", "average_pool"):
            case(name, Random((2, 7, 3)), 3, strides=strides, padding=padding)
            case(name, Random((2, 7, 6, 3)), (3, 2), strides=strides, padding=padding)
            case(name, Random((2, 5, 6, 5, 2), dtype="float32"), 2, strides=strides, padding=padding, gradient=False, tolerance=1e-6)
case("conv", Random((2, 9, 8, 4)), Random((3, 2, 2, 6)), dilation_rate=2)
case("separable_conv", Random((2, 7, 6, 3)), Random((3, 2, 3, 2)), Random((1, 1, 6, 4)), padding="same")
for size in (2, 3):
    case("adaptive_average_pool", Random((2, 7, 5, 3)), size)
    case("adaptive_max_pool", Random((2, 7, 5, 3)), size)
case("unfold", Random((2, 3, 5, 6)), 2)
case("unfold", Random((2, 3, 5, 6)), (3, 2), padding=1, stride=2)
case("fold", Random((2, 12, 20)), (5, 6), 2)
case("fold", Random((2, 18, 12)), (5, 6), (3, 2), padding=1, stride=2)
case("depth_to_space", Random((2, 3, 2, 8)), 2)
case("space_to_depth", Random((2, 4, 6, 3)), 2)
case("moments", Random((3, 4, 5)), Axis((0, 2)))
case("moments", Random((3, 4, 5)), Axis(1), keepdims=True)
case("batch_normalization", Random((4, 3, 5)), Random((3,)), Random((3,), 0.5, 1), Axis(1), offset=Random((3,)), scale=Random((3,)),
     epsilon=0.01)
case("layer_normalization", Random((4, 5)), Random((5,)), Random((5,)), Axis(-1), 0.001)
case("layer_normalization", Random((4, 3, 5)))
case("rms_normalization", Random((4, 5)), Random((5,)), Axis(-1), 0.001)
for order in (1, 2, 3):
    case("normalize", Random((4, 5)), Axis(1), order)
for logits in (False, True):
    case("binary_crossentropy", Given([[1.0, 0.0], [0.3, 1.0]]), Random((2, 2), 0.1, 0.9), logits)
    case("categorical_crossentropy", Given([[1.0, 0.0, 0.0], [0.0, 0.3, 0.7]]), Random((2, 3), 0.1, 0.9), logits)
    case("sparse_categorical_crossentropy", Given([2, 0], "int32"), Random((2, 3), 0.1, 0.9), logits)
case("psnr", Random((2, 4, 4, 3), 0, 1), Random((2, 4, 4, 3), 0, 1), 1.0)
case("multi_hot", whole((3, 4), 0, 6), 6)
case("multi_hot", whole((4,), 0, 6), 6)
# Keras' scale is of float32.
case("dot_product_attention", Random((2, 5, 4, 3)), Random((2, 6, 4, 3)), Random((2, 6, 4, 3)), tolerance=1e-7)
case("dot_product_attention", Random((2, 5, 4, 3)), Random((2, 6, 4, 3)), Random((2, 6, 4, 3)), mask=Random((2, 4, 5, 6), dtype="bool"),
     scale=0.3, gradient=False, tolerance=1e-6)
case("dot_product_attention", Random((2, 5, 4, 3)), Random((2, 5, 4, 3)), Random((2, 5, 4, 3)), is_causal=True, tolerance=1e-7)
case("ctc_loss", Given([[1, 2, 2], [3, 1, 0]], "int32"), Random((2, 8, 4)), Given([3, 2], "int32"), Given([8, 6], "int32"), tolerance=1e-5)
case("ctc_decode", Random((2, 8, 4)), Given([8, 6], "int32"), gradient=False, traced=False, tolerance=1e-6)

# ---- linear algebra ------------------------------------------------------------------------------------------------------------------


def definite(x):
    return x @ np.swapaxes(x, -1, -2) + 3 * np.eye(x.shape[-1])


for shape in [(3, 3), (2, 4, 4), (1, 1)]:
    regular = Made(shape, lambda x: x + 3 * np.eye(x.shape[-1]))
    case("inv", regular)
    case("det", regular)
    case("slogdet", regular, gradient=False)
    case("logdet", Made(shape, definite))
    case("cholesky", Made(shape, definite), gradient=False)
    case("cholesky_inverse", Made(shape, lambda x: np.linalg.cholesky(definite(x))), gradient=False)
    case("solve", regular, Random(shape))
    case("solve", regular, Random(shape[:-1]))
    case("solve_triangular", Made(shape, lambda x: np.tril(x) + 3 * np.eye(x.shape[-1])), Random(shape), True)
    case("solve_triangular", Made(shape, lambda x: np.triu(x) + 3 * np.eye(x.shape[-1])), Random(shape), False)
    case("qr", regular)
    if len(shape) == 2:
        case("lu_factor", regular, positions=(1,), gradient=False)
for shape in [(4, 3), (3, 5), (2, 5, 2)]:
    case("svd", Random(shape), compute_uv=False, traced=False)
    case("pinv", Random(shape), traced=False, gradient=False)
    case("matrix_rank", Random(shape), traced=False, gradient=False)
    case("qr", Random(shape), gradient=shape != (3, 5))
    case("qr", Random(shape), "complete", gradient=False)
case("lstsq", Random((5, 3)), Random((5,)), traced=False, gradient=False)
case("lstsq", Random((5, 3)), Random((5, 2)), traced=False, gradient=False)
for order in (None, "fro", "nuc", 1, -1, 2, -2):
    case("norm", Random((3, 4)), order, Axis((0, 1)), traced=order not in ("nuc", 2, -2),
         gradient=order not in ("nuc",))
for order in (0, 1, 2, 3):
    case("norm", Random((3, 4)), order, Axis(1), True, gradient=order != 0)
case("norm", Random((3, 4)))

# ---- pictures ---------------------------------------------------------------------------------------------------------------------------

PICTURES = Random((2, 6, 7, 3), 0, 1)
for name in ("rgb_to_grayscale", "rgb_to_hsv", "hsv_to_rgb"):
    case("image." + name, PICTURES, gradient=name != "rgb_to_hsv", tolerance=1e-6)
    case("image." + name, Random((5, 4, 3), 0, 1), gradient=False, tolerance=1e-6)
case("image.pad_images", PICTURES, top_padding=1, left_padding=2, bottom_padding=3, right_padding=0)
case("image.pad_images", PICTURES, top_padding=1, left_padding=2, target_height=9, target_width=12)
case("image.crop_images", PICTURES, top_cropping=1, left_cropping=2, bottom_cropping=3, right_cropping=0)
case("image.crop_images", PICTURES, bottom_cropping=1, right_cropping=2, target_height=4, target_width=3)
SMALL = Random((2, 6, 7, 3), 0, 1, "float32")
for interpolation in ("nearest", "bilinear", "bicubic", "lanczos3"):
    case("image.resize", SMALL, (4, 9), interpolation=interpolation, gradient=False, tolerance=1e-5)
case("image.resize", SMALL, (4, 4), antialias=True, gradient=False, tolerance=1e-5)
case("image.resize", SMALL, (4, 4), crop_to_aspect_ratio=True, gradient=False, tolerance=1e-5)
case("image.resize", SMALL, (4, 4), pad_to_aspect_ratio=True, gradient=False, tolerance=1e-5)
MOVE = Given([1.1, 0.2, -0.5, -0.1, 0.9, 0.4, 0.0, 0.0], "float32")
for interpolation in ("nearest", "bilinear"):
    for fill in ("constant", "nearest", "wrap", "reflect"):
        case("image.affine_transform", SMALL, MOVE, interpolation=interpolation, fill_mode=fill, gradient=False, tolerance=1e-5)
case("image.perspective_transform", SMALL, Given([[0, 0], [0, 6], [6, 0], [6, 6]], "float32"),
     Given([[0, 1], [1, 5], [5, 0], [6, 6]], "float32"), gradient=False, tolerance=1e-3)
case("image.gaussian_blur", SMALL, kernel_size=(3, 3), sigma=(1.0, 2.0), gradient=False, tolerance=1e-5)
for padding in ("valid", "same"):
    case("image.extract_patches", PICTURES, (3, 2), padding=padding)
    case("image.extract_patches", PICTURES, 2, strides=1, padding=padding)
    case("image.extract_patches_3d", Random((2, 4, 5, 4, 2)), 2, strides=1, padding=padding)
for order in (0, 1):
    for fill in ("constant", "nearest", "wrap", "reflect"):
        # TensorFlow takes the magnitude of what is below 0 before it reflects, against Keras' documentation.
        low = 0 if fill == "reflect" else -1.9
        case("image.map_coordinates", Random((4, 5)), Random((2, 6), low, 5.7), order, fill_mode=fill, gradient=False, tolerance=1e-6)

# ---- Fourier transforms
for length in (1, 2, 9, 12, 67, 130):
    case("fft", [Random((2, length)), Random((2, length))])
    case("rfft", Random((3, length)))
case("fft2", [Random((2, 5, 6)), Random((2, 5, 6))])
case("ifft2", [Random((3, 70)), Random((3, 70))])
case("rfft", Random((2, 8)), fft_length=9)
for length in (None, 5, 8, 16):      # TensorFlow has no gradient where they cut off
    case("rfft", Random((2, 8)), fft_length=length, gradient=length != 5)
    case("irfft", [Random((2, 6)), Random((2, 6))], fft_length=length, gradient=length not in (5, 8))
case("extract_sequences", Random((2, 3, 11)), 4, 3)
case("extract_sequences", Given([1, 2, 3, 4, 5, 6], "int32"), 2, 4, gradient=False)
for center in (True, False):
    case("stft", Random((2, 40)), 8, 3, 10, center=center)
    case("stft", Random((50,)), 10, 4, 16, window="hamming", center=center)
    case("istft", [Random((2, 5, 6)), Random((2, 5, 6))], 8, 3, 10, window="hamming", center=center, tolerance=1e-6)
    case("istft", [Random((7, 9)), Random((7, 9))], 12, 5, 16, length=20, center=center, tolerance=1e-6)
case("stft", Random((30,)), 5, 4, 5, Given([0.5, 1.0, 2.0, 1.0, 0.5]))
case("image.sobel_edges", PICTURES)
case("image.sobel_edges", Random((1, 5, 4, 2), 0, 1))
case("image.ssim", Random((2, 12, 13, 3), 0, 1), Random((2, 12, 13, 3), 0, 1), tolerance=1e-6)
case("image.ssim", Random((6, 7, 2), 0, 1), Random((6, 7, 2), 0, 1), max_val=2.0, filter_size=5, k1=0.02, tolerance=1e-6)
