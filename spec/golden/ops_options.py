"""More cases of ops.py: options that few programs give, several axes, no axis, no elements."""
import numpy as np

from ops_cases import INF, NAN, Axis, Given, Made, Random, case, whole

for name, number in (("max", 0.5), ("min", -0.5)):
    case(name, Random((3, 4)), Axis(1), initial=number, gradient=False)
    case(name, whole((3, 4)), initial=2, gradient=False)
    case(name, Random((0, 3)), Axis(0), initial=1.5, gradient=False)
case("round", whole((5,)), 1, gradient=False)
for axes in ((0, 2), (1,)):
    case("flip", Random((2, 3, 4)), Axis(axes))
    case("softmax", Random((2, 3, 4)), Axis(axes))
    case("log_softmax", Random((2, 3, 4)), Axis(axes))
for name in ("sort", "argsort"):
    case(name, Random((2, 3)), axis=None, lua_options={"axis": False}, gradient=False, positions=(0,) if name == "argsort" else ())

for endpoint in (True, False):
    case("linspace", Random((2, 3)), Random((2, 3)), 4, endpoint=endpoint, axis=Axis(1))
    case("linspace", Random((3,)), Random((2, 3)), 5, endpoint=endpoint)
    case("logspace", Random((2,)), Random((2,)), 3, endpoint=endpoint, base=2.5, axis=Axis(-1))
    case("geomspace", Random((2, 2), 0.5, 3), Random((2, 2), 0.5, 3), 4, endpoint=endpoint, gradient=False, traced=False)

WITH_NAN = Made((4, 6), lambda x: np.where(x > 0.8, NAN, x))
for method in ("lower", "higher", "midpoint", "nearest"):
    for q in (0.375, 0.7):
        case("nanquantile", WITH_NAN, q, Axis(1), method=method, gradient=False)
for name in ("nanvar", "nanstd"):
    case(name, Given([[NAN, 1.0, INF, 2.0], [NAN, 1.0, 3.0, 7.0]]), Axis(1), gradient=False)
for name in ("nancumsum", "nancumprod"):
    case(name, whole((3, 4)), Axis(1), gradient=False)

PICTURE = Random((5, 6, 2))
for method in ("linear", "bilinear", "cubic", "lanczos3", "lanczos5"):
    for antialias in (True, False):
        case("image.scale_and_translate", PICTURE, (4, 9, 2), Given([0.6, 1.7], "float32"), Given([0.3, -0.8], "float32"), Axis([0, 1]),
             method, antialias=antialias, tolerance=3e-6)

case("multi_hot", whole((2, 3, 4), 0, 6), 6)
case("multi_hot", whole((2, 3), 0, 6), 6, axis=Axis(1))
case("multi_hot", whole((4,), 0, 6), 6, axis=Axis(0))
case("saturate_cast", Given([-3.0, 0.5, 0.0, 2.0]), "bool", gradient=False)
case("sparsemax", Given([[1.0, -INF, 1.2], [-INF, 0.3, -INF]]), gradient=False)
case("unique", whole((3, 4), 0, 6), traced=False, return_inverse=True, positions=(1,))
