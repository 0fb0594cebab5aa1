-- elements.lua: texts of the operations that composed.lua lists, part one: element by element, arrangement, positions. The form: texts.lua.
return [==[
flow.exp2: 2 to the power of each element.
  print(flow.exp2(flow.tensor { 0, 3 }))
flow.log2: The logarithm of each element to base 2.
  print(flow.log2(flow.tensor { 1, 8 }))
flow.log10: The logarithm of each element to base 10.
  print(flow.log10(flow.tensor { 1, 1000 }))
flow.cbrt: The cube root of each element.
  print(flow.cbrt(flow.tensor { 8, -27 }))
flow.logaddexp: log(exp(a) + exp(b)), without overflow.
  print(flow.logaddexp(flow.tensor { 1000 }, flow.tensor { 1000 }))
flow.logaddexp2: log2(2^a + 2^b), without overflow.
  print(flow.logaddexp2(flow.tensor { 3 }, flow.tensor { 3 }))
flow.hypot: The length of the hypotenuse: sqrt(a^2 + b^2), without overflow.
  print(flow.hypot(flow.tensor { 3 }, flow.tensor { 4 }))
flow.ldexp: a times 2 to the power of b.
  print(flow.ldexp(flow.tensor { 3 }, flow.tensor({ 2 }, { dtype = "int32" })))
flow.arcsin: The angle whose sine each element is.
  print(flow.arcsin(flow.tensor { 0, 1 }))
flow.arccos: The angle whose cosine each element is.
  print(flow.arccos(flow.tensor { 0, 1 }))
flow.arctan2: The angle of the point (b, a), from -pi to pi.
  print(flow.arctan2(flow.tensor { 1 }, flow.tensor { -1 }))
flow.sinh: The hyperbolic sine.
  print(flow.sinh(flow.tensor { 0, 1 }))
flow.cosh: The hyperbolic cosine.
  print(flow.cosh(flow.tensor { 0, 1 }))
flow.arcsinh: The inverse of the hyperbolic sine.
  print(flow.arcsinh(flow.tensor { 0, 1 }))
flow.arccosh: The inverse of the hyperbolic cosine.
  print(flow.arccosh(flow.tensor { 1, 2 }))
flow.arctanh: The inverse of the hyperbolic tangent.
  print(flow.arctanh(flow.tensor { 0, 0.5 }))
flow.deg2rad: Degrees as radians.
  print(flow.deg2rad(flow.tensor { 180 }))
flow.rad2deg: Radians as degrees.
  print(flow.rad2deg(flow.tensor { math.pi }))
flow.sinc: sin(pi x) / (pi x), 1 at 0.
  print(flow.sinc(flow.tensor { 0, 0.5 }))
flow.erfc: 1 - erf(x), exact where erf is near 1.
  print(flow.erfc(flow.tensor { 0, 3 }))
flow.erfinv: The inverse of erf.
  print(flow.erfinv(flow.tensor { 0, 0.5 }))
flow.i0: The modified Bessel function of the first kind, of order 0.
  print(flow.i0(flow.tensor { 0, 1 }))
flow.true_divide: a / b, as a floating-point number for integers, too.
  print(flow.true_divide(flow.tensor { 1 }, flow.tensor { 2 }))
flow.fmod: The remainder of a / b with the sign of a.
  print(flow.fmod(flow.tensor { -7 }, flow.tensor { 3 }))
flow.trunc: The whole number next to each element in the direction of 0.
  print(flow.trunc(flow.tensor { -1.5, 1.5 }))
flow.fabs: The absolute value.
  print(flow.fabs(flow.tensor { -1.5 }))
flow.fmax: The larger of two elements; one that is NaN does not count.
  print(flow.fmax(flow.tensor { 0 / 0 }, flow.tensor { 1 }))
flow.fmin: The smaller of two elements; one that is NaN does not count.
  print(flow.fmin(flow.tensor { 0 / 0 }, flow.tensor { 1 }))
flow.heaviside: 0 for a negative a, 1 for a positive one, b where a is 0.
  print(flow.heaviside(flow.tensor { -1, 0, 1 }, flow.tensor { 0.5 }))
flow.isinf: Whether each element is infinite.
  print(flow.isinf(flow.tensor { 1, math.huge }))
flow.isposinf: Whether each element is positive infinity.
  print(flow.isposinf(flow.tensor { math.huge, -math.huge }))
flow.isneginf: Whether each element is negative infinity.
  print(flow.isneginf(flow.tensor { math.huge, -math.huge }))
flow.isreal: Whether each element is real: true, since no dtype is complex.
  print(flow.isreal(flow.tensor { 1 }))
flow.signbit: Whether the sign of each element is negative, that of -0 included.
  print(flow.signbit(flow.tensor { -0.0, 1 }))
flow.logical_xor: Whether one of two elements is true, and not both.
  print(flow.logical_xor(flow.tensor { true, true }, flow.tensor { true, false }))
flow.isclose: Whether a and b differ by at most atol + rtol * abs(b).
  print(flow.isclose(flow.tensor { 1, 2 }, flow.tensor { 1, 2.1 }))
flow.allclose: Whether isclose holds for all elements.
  print(flow.allclose(flow.tensor { 1, 2 }, flow.tensor { 1, 2 }, { atol = 1e-6 }))
flow.nan_to_num: NaN and infinities become these numbers: 0 and the limits of the dtype, unless others are given.
  print(flow.nan_to_num(flow.tensor { 0 / 0, 1 }))
flow.real: The real part: the tensor itself, since no dtype is complex.
  print(flow.real(flow.tensor { 1 }))
flow.imag: The imaginary part: zeros, since no dtype is complex.
  print(flow.imag(flow.tensor { 1 }))
flow.conj: The complex conjugate: the tensor itself, since no dtype is complex.
  print(flow.conj(flow.tensor { 1 }))
flow.conjugate: The complex conjugate: the tensor itself, since no dtype is complex.
  print(flow.conjugate(flow.tensor { 1 }))
flow.angle: The angle of each element in the complex plane: 0, or pi for a negative one.
  print(flow.angle(flow.tensor { 1, -1 }))
flow.saturate_cast: The elements in another dtype; those out of its range become its limits.
  print(flow.saturate_cast(flow.tensor { -5, 300 }, "uint8"))
flow.view: The same bytes read as another dtype.
  print(flow.view(flow.tensor { 1 }, "int32"))
flow.nextafter: The number next to a in the direction of b.
  print(flow.nextafter(flow.tensor { 1 }, flow.tensor { 2 }))
flow.bitwise_and: The bits that both integers have.
  print(flow.bitwise_and(flow.tensor({ 6 }, { dtype = "int32" }), flow.tensor({ 3 }, { dtype = "int32" })))
flow.bitwise_or: The bits that one of two integers has, or both.
  print(flow.bitwise_or(flow.tensor({ 6 }, { dtype = "int32" }), flow.tensor({ 3 }, { dtype = "int32" })))
flow.bitwise_xor: The bits that exactly one of two integers has.
  print(flow.bitwise_xor(flow.tensor({ 6 }, { dtype = "int32" }), flow.tensor({ 3 }, { dtype = "int32" })))
flow.bitwise_not: The bits that an integer does not have.
  print(flow.bitwise_not(flow.tensor({ 6 }, { dtype = "int32" })))
flow.bitwise_left_shift: The bits of a, moved up by b places.
  print(flow.bitwise_left_shift(flow.tensor({ 6 }, { dtype = "int32" }), flow.tensor({ 1 }, { dtype = "int32" })))
flow.bitwise_right_shift: The bits of a, moved down by b places; the sign stays.
  print(flow.bitwise_right_shift(flow.tensor({ 6 }, { dtype = "int32" }), flow.tensor({ 1 }, { dtype = "int32" })))
flow.gcd: The greatest common divisor of two integers.
  print(flow.gcd(flow.tensor({ 12 }, { dtype = "int32" }), flow.tensor({ 18 }, { dtype = "int32" })))
flow.lcm: The least common multiple of two integers.
  print(flow.lcm(flow.tensor({ 4 }, { dtype = "int32" }), flow.tensor({ 6 }, { dtype = "int32" })))
flow.log_sigmoid: log(sigmoid(x)), without overflow.
  print(flow.log_sigmoid(flow.tensor { -1000, 0 }))
flow.tanh_shrink: x - tanh(x).
  print(flow.tanh_shrink(flow.tensor { 1 }))
flow.hard_tanh: x between -1 and 1, else the limit next to it.
  print(flow.hard_tanh(flow.tensor { -2, 0.5 }))
flow.sparse_sigmoid: (x + 1) / 2 between -1 and 1, 0 below and 1 above.
  print(flow.sparse_sigmoid(flow.tensor { -2, 0, 2 }))
flow.sparse_plus: 0 below -1, (x + 1)^2 / 4 up to 1, x above.
  print(flow.sparse_plus(flow.tensor { -2, 0, 2 }))
flow.celu: x where it is positive, else alpha (exp(x / alpha) - 1).
  print(flow.celu(flow.tensor { -1, 1 }, 0.5))
flow.hard_shrink: x where its size is above the threshold, else 0.
  print(flow.hard_shrink(flow.tensor { -1, 0.2 }))
flow.soft_shrink: x moved by the threshold in the direction of 0; 0 where it is smaller.
  print(flow.soft_shrink(flow.tensor { -1, 0.2 }))
flow.threshold: x where it is above the threshold, else default_value.
  print(flow.threshold(flow.tensor { -1, 2 }, 0.5, 9))
flow.squareplus: (x + sqrt(x^2 + b)) / 2.
  print(flow.squareplus(flow.tensor { -1, 1 }))
flow.glu: The first half of an axis times the sigmoid of its second half.
  print(flow.glu(flow.tensor { { 1, 2, 0, 0 } }))
flow.sparsemax: Probabilities along an axis, of which small ones are 0.
  print(flow.sparsemax(flow.tensor { 1, 2, 3 }))
flow.array: A tensor of numbers or of another tensor.
  print(flow.array({ 1, 2 }, { dtype = "int32" }))
flow.convert_to_tensor: A tensor of a value; a tensor that has the dtype is returned unchanged.
  print(flow.convert_to_tensor { { 1, 2 }, { 3, 4 } })
flow.convert_to_numpy: A tensor on the host, which stands for Keras' array.
  print(flow.convert_to_numpy(flow.ones { 2 }))
flow.empty: A tensor in a shape, whose elements are zeros.
  print(flow.empty { 2, 3 })
flow.empty_like: A tensor of zeros in the shape and the dtype of another.
  print(flow.empty_like(flow.ones { 2 }))
flow.identity: The identity matrix of n rows.
  print(flow.identity(2))
flow.ndim: How many axes a tensor has.
  print(flow.ndim(flow.ones { 2, 3 }))      --> 2
flow.size: How many elements a tensor has.
  print(flow.size(flow.ones { 2, 3 }))      --> 6
flow.dtype: The dtype of a tensor.
  print(flow.dtype(flow.ones { 2 }))      --> float32
flow.get_item: x[key].
  print(flow.get_item(flow.tensor { 5, 6 }, 2))
flow.append: a, then b, along an axis; without one, as flat lists.
  print(flow.append(flow.tensor { 1 }, flow.tensor { 2, 3 }))
flow.hstack: Tensors joined along their second axis, those of one axis along it.
  print(flow.hstack { flow.ones { 2, 1 }, flow.zeros { 2, 2 } })
flow.vstack: Tensors joined along their first axis, those of one axis as rows.
  print(flow.vstack { flow.tensor { 1, 2 }, flow.tensor { 3, 4 } })
flow.dstack: Tensors joined along their third axis.
  print(flow.dstack { flow.ones { 2, 2 }, flow.zeros { 2, 2 } })
flow.hsplit: The parts of a tensor along its second axis.
  print(#flow.hsplit(flow.ones { 2, 4 }, 2))
flow.vsplit: The parts of a tensor along its first axis.
  print(#flow.vsplit(flow.ones { 4, 2 }, 2))
flow.dsplit: The parts of a tensor along its third axis.
  print(#flow.dsplit(flow.ones { 1, 2, 4 }, 2))
flow.array_split: Parts along an axis, of which the first ones are longer by one where the length is not a multiple.
  print(#flow.array_split(flow.arange(5), 2)[1])      --> 3
flow.diff: Each element minus the one before it along an axis, n times.
  print(flow.diff(flow.tensor { 1, 4, 9 }))
flow.flipud: The rows in reverse order.
  print(flow.flipud(flow.tensor { { 1, 2 }, { 3, 4 } }))
flow.fliplr: The columns in reverse order.
  print(flow.fliplr(flow.tensor { { 1, 2 }, { 3, 4 } }))
flow.moveaxis: Axes moved to other places; the others stay in their order.
  print(flow.moveaxis(flow.ones { 2, 3, 4 }, 1, -1).shape[3])      --> 2
flow.rot90: Turned by k right angles in the plane of two axes.
  print(flow.rot90(flow.tensor { { 1, 2 }, { 3, 4 } }))
flow.roll: Elements moved along an axis; those that leave it come in at its other end.
  print(flow.roll(flow.arange(4), 1))
flow.rearrange: Axes by name: moved, joined and split.
  print(flow.rearrange(flow.ones { 2, 6 }, "b (h w) -> b h w", { h = 2 }).shape[3])      --> 3
flow.tril: The matrix below diagonal k, zeros above it.
  print(flow.tril(flow.ones { 3, 3 }))
flow.triu: The matrix above diagonal k, zeros below it.
  print(flow.triu(flow.ones { 3, 3 }))
flow.tri: Ones on diagonal k and below it, zeros above.
  print(flow.tri(3))
flow.diagonal: The elements of a diagonal of two axes, which becomes the last axis.
  print(flow.diagonal(flow.tensor { { 1, 2 }, { 3, 4 } }))
flow.trace: The sum of a diagonal.
  print(flow.trace(flow.tensor { { 1, 2 }, { 3, 4 } }))
flow.diag: The diagonal of a matrix, or the matrix with these numbers on its diagonal.
  print(flow.diag(flow.tensor { 1, 2 }))
flow.diagflat: The matrix with all elements of x on its diagonal.
  print(flow.diagflat(flow.tensor { { 1 }, { 2 } }))
flow.logspace: Numbers from base^start to base^stop, each the same factor after the one before.
  print(flow.logspace(0, 2, 3))
flow.geomspace: Numbers from start to stop, each the same factor after the one before.
  print(flow.geomspace(1, 100, 3))
flow.meshgrid: For each vector a tensor that repeats it along the axes of the others.
  print(unpack(flow.meshgrid(flow.arange(2), flow.arange(3))))
flow.bartlett: A window of n numbers that rises to 1 and falls in straight lines.
  print(flow.bartlett(5))
flow.hanning: A window of n numbers: half a wave of cosine, from 0.
  print(flow.hanning(5))
flow.hamming: A window of n numbers: half a wave of cosine, from 0.08.
  print(flow.hamming(5))
flow.blackman: Blackman's window of n numbers.
  print(flow.blackman(5))
flow.kaiser: Kaiser's window of n numbers; beta says how narrow it is.
  print(flow.kaiser(5, 8))
flow.take_along_axis: For each place the element at its position along an axis; positions count from 1.
  print(flow.take_along_axis(flow.tensor { { 1, 2 }, { 3, 4 } }, flow.tensor({ { 2 }, { 1 } }, { dtype = "int32" }), 2))
flow.gather_nd: The elements, or slices, at rows of positions, which count from 1.
  print(flow.gather_nd(flow.tensor { { 1, 2 }, { 3, 4 } }, flow.tensor({ { 1, 2 }, { 2, 1 } }, { dtype = "int32" })))
flow.scatter: Zeros in a shape with values added at positions.
  print(flow.scatter(flow.tensor({ { 1 }, { 3 } }, { dtype = "int32" }), flow.tensor { 5, 6 }, { 4 }))
flow.segment_sum: The sum of the rows of each segment; ids count from 0.
  print(flow.segment_sum(flow.tensor { 1, 2, 3 }, flow.tensor({ 0, 0, 1 }, { dtype = "int32" }), 2))
flow.segment_max: The largest of the rows of each segment; ids count from 0.
  print(flow.segment_max(flow.tensor { 1, 2, 3 }, flow.tensor({ 0, 0, 1 }, { dtype = "int32" }), 2))
flow.segment_min: The smallest of the rows of each segment; ids count from 0.
  print(flow.segment_min(flow.tensor { 1, 2, 3 }, flow.tensor({ 0, 0, 1 }, { dtype = "int32" }), 2))
flow.segment_prod: The product of the rows of each segment; ids count from 0.
  print(flow.segment_prod(flow.tensor { 1, 2, 3 }, flow.tensor({ 0, 0, 1 }, { dtype = "int32" }), 2))
flow.scatter_update: x with other values at rows of positions, or combined with them: reduction is add, max, min or mul.
  print(flow.scatter_update(flow.zeros { 3 }, flow.tensor({ { 2 } }, { dtype = "int32" }), flow.tensor { 5 }))
flow.slice: The part of a shape that begins at these positions.
  print(flow.slice(flow.arange(9):reshape { 3, 3 }, { 2, 1 }, { 2, 2 }))
flow.slice_update: x with the part that begins at these positions replaced.
  print(flow.slice_update(flow.zeros { 4 }, { 2 }, flow.ones { 2 }))
flow.select: For each place the choice of the first condition that holds, else default.
  local x = flow.arange(4)
  print(flow.select({ x:lt(1), x:lt(3) }, { x + 10, x + 20 }, 0))
flow.nonzero: For each axis the positions of the elements that are not 0.
  print(unpack(flow.nonzero(flow.tensor { 0, 5, 6 })))
flow.boolean_mask: The rows, from an axis on, for which the mask is true.
  print(flow.boolean_mask(flow.tensor { 1, 2, 3 }, flow.tensor { true, false, true }))
flow.sequence_mask: Which of maxlen places each length has: a mask with one more axis.
  print(flow.sequence_mask(flow.tensor({ 1, 3 }, { dtype = "int32" }), 4))
flow.unravel_index: Positions in a flat tensor as positions along each axis of a shape.
  print(unpack(flow.unravel_index(flow.tensor({ 1, 4 }, { dtype = "int32" }), { 2, 3 })))
]==]
