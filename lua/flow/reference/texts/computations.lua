-- computations.lua: texts of the operations that composed.lua lists, part two: statistics, windows, networks, matrices, loops. The form:
-- texts.lua.
return [==[
flow.amax: The largest element, or the largest along axes.
  print(flow.amax(flow.tensor { { 1, 2 }, { 3, 4 } }, 1))
flow.ptp: The largest element minus the smallest one.
  print(flow.ptp(flow.tensor { 1, 5, 3 }))
flow.average: The mean, in which each element counts by its weight.
  print(flow.average(flow.tensor { 1, 4 }, 1, flow.tensor { 3, 1 }))
flow.count_nonzero: How many elements are not 0.
  print(flow.count_nonzero(flow.tensor { 0, 5, 6 }))
flow.sort: The elements in order along an axis.
  print(flow.sort(flow.tensor { 3, 1, 2 }, -1, { descending = true }))
flow.argsort: The positions, from 1, of the elements in order.
  print(flow.argsort(flow.tensor { 3, 1, 2 }))
flow.argpartition: Positions of the elements such that the one at kth is where it is in order, smaller ones before it.
  print(flow.argpartition(flow.tensor { 3, 1, 2 }, 2))
flow.median: The middle of the elements in order.
  print(flow.median(flow.tensor { 3, 1, 2 }))
flow.quantile: The value that a part q, from 0 to 1, of the elements does not exceed.
  print(flow.quantile(flow.tensor { 1, 2, 3, 4 }, 0.5))
flow.percentile: The value that q percent of the elements do not exceed.
  print(flow.percentile(flow.tensor { 1, 2, 3, 4 }, 50))
flow.nansum: The sum of the elements that are not NaN.
  print(flow.nansum(flow.tensor { 1, 0 / 0, 3 }))
flow.nanprod: The product of the elements that are not NaN.
  print(flow.nanprod(flow.tensor { 2, 0 / 0, 3 }))
flow.nanmax: The largest of the elements that are not NaN.
  print(flow.nanmax(flow.tensor { 1, 0 / 0, 3 }))
flow.nanmin: The smallest of the elements that are not NaN.
  print(flow.nanmin(flow.tensor { 1, 0 / 0, 3 }))
flow.nanmean: The mean of the elements that are not NaN.
  print(flow.nanmean(flow.tensor { 1, 0 / 0, 3 }))
flow.nanvar: The variance of the elements that are not NaN.
  print(flow.nanvar(flow.tensor { 1, 0 / 0, 3 }))
flow.nanstd: The standard deviation of the elements that are not NaN.
  print(flow.nanstd(flow.tensor { 1, 0 / 0, 3 }))
flow.nanargmax: The position, from 1, of the largest element that is not NaN.
  print(flow.nanargmax(flow.tensor { 1, 0 / 0, 3 }))
flow.nanargmin: The position, from 1, of the smallest element that is not NaN.
  print(flow.nanargmin(flow.tensor { 1, 0 / 0, 3 }))
flow.nanmedian: The median of the elements that are not NaN.
  print(flow.nanmedian(flow.tensor { 1, 0 / 0, 3 }))
flow.nanquantile: The quantile of the elements that are not NaN.
  print(flow.nanquantile(flow.tensor { 1, 0 / 0, 3 }, 0.5))
flow.nanpercentile: The percentile of the elements that are not NaN.
  print(flow.nanpercentile(flow.tensor { 1, 0 / 0, 3 }, 50))
flow.nancumsum: The sums up to each element, in which NaN counts as 0.
  print(flow.nancumsum(flow.tensor { 1, 0 / 0, 3 }))
flow.nancumprod: The products up to each element, in which NaN counts as 1.
  print(flow.nancumprod(flow.tensor { 2, 0 / 0, 3 }))
flow.cumsum: The sums up to each element along an axis.
  print(flow.cumsum(flow.tensor { 1, 2, 3 }, 1))
flow.cumprod: The products up to each element along an axis.
  print(flow.cumprod(flow.tensor { 1, 2, 3 }, 1))
flow.searchsorted: Where values would stand in a sorted sequence.
  print(flow.searchsorted(flow.tensor { 1, 3, 5 }, flow.tensor { 2, 5 }))
flow.digitize: In which interval between the bins each element is.
  print(flow.digitize(flow.tensor { 0.5, 2.5 }, flow.tensor { 1, 2 }))
flow.histogram: How many elements are in each of some intervals of equal length, and the ends of the intervals.
  print(flow.histogram(flow.tensor { 1, 2, 2, 3 }, 2))
flow.bincount: How often each whole number from 0 occurs.
  print(flow.bincount(flow.tensor({ 0, 2, 2 }, { dtype = "int32" })))
flow.unique: The elements that differ from each other, in order.
  print(flow.unique(flow.tensor { 3, 1, 3 }))
flow.isin: Whether each element of a is one of those of b.
  print(flow.isin(flow.tensor { 1, 2 }, flow.tensor { 2, 3 }))
flow.in_top_k: Whether the label of each row, from 0, is among its k largest predictions.
  print(flow.in_top_k(flow.tensor({ 1 }, { dtype = "int32" }), flow.tensor { { 0.1, 0.7, 0.2 } }, 1))
flow.corrcoef: The correlations of the rows with each other.
  print(flow.corrcoef(flow.tensor { { 1, 2, 3 }, { 3, 2, 1 } }))
flow.correlate: The sums of products of two sequences, one of which is moved along the other.
  print(flow.correlate(flow.tensor { 1, 2, 3 }, flow.tensor { 0, 1 }))
flow.trapezoid: The integral along an axis by the rule of trapezoids.
  print(flow.trapezoid(flow.tensor { 1, 2, 3 }))
flow.conv: A convolution over one, two or three dimensions.
  print(flow.conv(flow.ones { 1, 5, 3 }, flow.ones { 2, 3, 4 }).shape[3])      --> 4
flow.depthwise_conv: A convolution of each channel by itself.
  print(flow.depthwise_conv(flow.ones { 1, 5, 5, 3 }, flow.ones { 2, 2, 3, 1 }).shape[4])      --> 3
flow.separable_conv: A convolution of each channel by itself, then one of 1 x 1 that mixes them.
  print(flow.separable_conv(flow.ones { 1, 5, 5, 3 }, flow.ones { 2, 2, 3, 1 }, flow.ones { 1, 1, 3, 4 }).shape[4])      --> 4
flow.conv_transpose: The convolution the other way: what a convolution would make its input from.
  print(flow.conv_transpose(flow.ones { 1, 5, 3 }, flow.ones { 2, 4, 3 }, { strides = 2 }).shape[2])      --> 10
flow.max_pool: The largest elements of windows.
  print(flow.max_pool(flow.arange(4):reshape { 1, 4, 1 }, 2))
flow.average_pool: The means of windows.
  print(flow.average_pool(flow.arange(4, { dtype = "float32" }):reshape { 1, 4, 1 }, 2))
flow.adaptive_average_pool: The means of windows, which are as large as this many outputs need.
  print(flow.adaptive_average_pool(flow.ones { 1, 6, 1 }, 3).shape[2])      --> 3
flow.adaptive_max_pool: The largest elements of windows, which are as large as this many outputs need.
  print(flow.adaptive_max_pool(flow.ones { 1, 6, 1 }, 3).shape[2])      --> 3
flow.unfold: The windows of images {n, channels, height, width} as columns, as in PyTorch.
  print(flow.unfold(flow.ones { 1, 2, 4, 4 }, 2).shape[3])      --> 9
flow.fold: Columns added up at the places of their windows: what unfold took apart.
  print(flow.fold(flow.ones { 1, 8, 9 }, { 4, 4 }, 2).shape[3])      --> 4
flow.space_to_depth: Squares of pixels become channels.
  print(flow.space_to_depth(flow.ones { 1, 4, 4, 1 }, 2).shape[4])      --> 4
flow.depth_to_space: Channels become squares of pixels.
  print(flow.depth_to_space(flow.ones { 1, 2, 2, 4 }, 2).shape[3])      --> 4
flow.moments: The mean and the variance along axes.
  print(flow.moments(flow.tensor { 1, 2, 3 }, 1))
flow.batch_normalization: (x - mean) / sqrt(variance + epsilon) along an axis, times scale, plus offset.
  print(flow.batch_normalization(flow.ones { 2, 3 }, flow.zeros { 3 }, flow.ones { 3 }, -1))
flow.layer_normalization: Each row with mean 0 and variance 1, times gamma, plus beta.
  print(flow.layer_normalization(flow.tensor { { 1, 2, 3 } }))
flow.clip_by_norm: A tensor, scaled to a norm if its own is larger, along axes or of all elements.
  print(flow.clip_by_norm(flow.tensor { 3, 4 }, 1))
flow.global_norm: The root of the sum of the squares of all elements of several tensors.
  print(flow.global_norm({ flow.tensor { 3 }, flow.tensor { 4 } }):item())      --> 5
flow.add_n: The sum of a list of tensors of one shape.
  print(flow.add_n({ flow.ones { 2 }, flow.ones { 2 } }):totable()[1])      --> 2
flow.clip_by_global_norm: Several tensors, scaled by one factor to a norm of all of them if it is larger, and the norm that they had.
  local clipped, norm = flow.clip_by_global_norm({ flow.tensor { 3 }, flow.tensor { 4 } }, 1)
  print(norm:item())      --> 5
flow.l2_normalize: A tensor divided by the root of the sum of its squares, along an axis or of all elements.
  print(flow.l2_normalize(flow.tensor { 3, 4 }))
flow.rms_normalization: Each row divided by the root of the mean of its squares, times scale.
  print(flow.rms_normalization(flow.tensor { { 1, 2, 3 } }))
flow.normalize: Each row divided by its norm of this order.
  print(flow.normalize(flow.tensor { { 3, 4 } }))
flow.binary_crossentropy: The cross entropy of each element, of probabilities or of logits.
  print(flow.binary_crossentropy(flow.tensor { 1 }, flow.tensor { 0.5 }))
flow.categorical_crossentropy: The cross entropy of each row, of probabilities or of logits.
  print(flow.categorical_crossentropy(flow.tensor { { 0, 1 } }, flow.tensor { { 0.5, 0.5 } }))
flow.sparse_categorical_crossentropy: The cross entropy of each row and its label, which counts from 0.
  print(flow.sparse_categorical_crossentropy(flow.tensor({ 1 }, { dtype = "int32" }), flow.tensor { { 0.5, 0.5 } }))
flow.psnr: The ratio of signal to noise of two images, in decibels.
  print(flow.psnr(flow.ones { 1, 2, 2, 1 }, flow.zeros { 1, 2, 2, 1 }, 1))
flow.multi_hot: A row with 1 at each of its labels, which count from 0.
  print(flow.multi_hot(flow.tensor({ { 0, 2 } }, { dtype = "int32" }), 3))
flow.dot_product_attention: Attention of queries {batch, steps, heads, features} to keys and values.
  print(flow.dot_product_attention(flow.ones { 1, 2, 1, 4 }, flow.ones { 1, 3, 1, 4 }, flow.ones { 1, 3, 1, 4 }).shape[2])      --> 2
flow.ctc_loss: The loss of connectionist temporal classification, one number for each sequence.
  local labels, lengths = flow.tensor({ { 1, 2 } }, { dtype = "int32" }), flow.tensor({ 2 }, { dtype = "int32" })
  print(flow.ctc_loss(labels, flow.zeros { 1, 4, 3 }, lengths, flow.tensor({ 4 }, { dtype = "int32" })))
flow.ctc_decode: The sequences of labels that are most probable, and their scores.
  print(flow.ctc_decode(flow.zeros { 1, 4, 3 }, flow.tensor({ 4 }, { dtype = "int32" })))
flow.solve_triangular: The x for which a x = b, where a is triangular.
  print(flow.solve_triangular(flow.tensor { { 2, 0 }, { 1, 1 } }, flow.tensor { { 2 }, { 3 } }, true))
flow.cholesky: The triangular matrix whose product with its transpose is x.
  print(flow.cholesky(flow.tensor { { 4, 2 }, { 2, 3 } }))
flow.cholesky_inverse: The inverse of the matrix whose Cholesky factor is x.
  print(flow.cholesky_inverse(flow.tensor { { 2, 0 }, { 1, 1 } }))
flow.solve: The x for which a x = b.
  print(flow.solve(flow.tensor { { 2, 0 }, { 0, 4 } }, flow.tensor { { 2 }, { 4 } }))
flow.inv: The inverse of a matrix.
  print(flow.inv(flow.tensor { { 2, 0 }, { 0, 4 } }))
flow.det: The determinant of a matrix.
  print(flow.det(flow.tensor { { 2, 0 }, { 0, 4 } }))
flow.slogdet: The sign of the determinant and the logarithm of its size.
  print(flow.slogdet(flow.tensor { { 2, 0 }, { 0, 4 } }))
flow.logdet: The logarithm of the determinant.
  print(flow.logdet(flow.tensor { { 2, 0 }, { 0, 4 } }))
flow.lu_factor: The triangular factors of a matrix in one, and the rows that were swapped.
  print(flow.lu_factor(flow.tensor { { 1, 2 }, { 3, 4 } }))
flow.qr: An orthogonal and an upper triangular matrix, whose product is x.
  print(flow.qr(flow.tensor { { 1, 2 }, { 3, 4 } }))
flow.norm: The norm of vectors or matrices: ord is a number, "fro" or "nuc".
  print(flow.norm(flow.tensor { 3, 4 }))
flow.eigh: The eigenvalues of a symmetric matrix, in order, and its eigenvectors.
  print(flow.eigh(flow.tensor { { 2, 1 }, { 1, 2 } }))
flow.svd: The singular value decomposition: u, s and the transpose of v.
  print(flow.svd(flow.tensor { { 3, 0 }, { 0, 4 } }))
flow.pinv: The pseudo-inverse of a matrix.
  print(flow.pinv(flow.tensor { { 1, 2 }, { 3, 4 }, { 5, 6 } }))
flow.matrix_rank: How many rows of a matrix are independent.
  print(flow.matrix_rank(flow.tensor { { 1, 2 }, { 2, 4 } }))
flow.lstsq: The x for which a x is nearest to b.
  print(flow.lstsq(flow.tensor { { 1, 0 }, { 0, 1 }, { 0, 0 } }, flow.tensor { { 1 }, { 2 }, { 3 } }))
flow.fft: The discrete Fourier transform of { real, imaginary }, along the last axis.
  print(flow.fft { flow.tensor { 1, 2, 3, 4 }, flow.zeros { 4 } })
flow.fft2: The discrete Fourier transform of { real, imaginary }, along the last two axes.
  print(flow.fft2 { flow.ones { 2, 2 }, flow.zeros { 2, 2 } })
flow.ifft2: The inverse of fft2.
  print(flow.ifft2 { flow.ones { 2, 2 }, flow.zeros { 2, 2 } })
flow.rfft: The Fourier transform of real numbers: the real and the imaginary part of the frequencies from 0.
  print(flow.rfft(flow.tensor { 1, 2, 3, 4 }))
flow.irfft: The inverse of rfft.
  print(flow.irfft { flow.tensor { 10, -2, -2 }, flow.tensor { 0, 2, 0 } })
flow.extract_sequences: Windows of a sequence, which may overlap.
  print(flow.extract_sequences(flow.arange(6, { dtype = "float32" }), 4, 2))
flow.stft: The Fourier transforms of windows of a sequence, real and imaginary part.
  print((flow.stft(flow.ones { 16 }, 8, 4, 8)).shape[2])      --> 5
flow.istft: The inverse of stft.
  print(flow.istft({ flow.stft(flow.ones { 16 }, 8, 4, 8) }, 8, 4, 8).shape[1])      --> 16
flow.linear_to_mel_weight_matrix: How much each frequency of a spectrum counts for each mel band.
  print(flow.linear_to_mel_weight_matrix(4, 6).shape)
flow.dot: The product of two vectors, or of matrices along the last axis of a and the last but one of b.
  print(flow.dot(flow.tensor { 1, 2 }, flow.tensor { 3, 4 }))
flow.tensordot: The sum of products along this many axes, or along a list of axes of each.
  print(flow.tensordot(flow.ones { 2, 3 }, flow.ones { 3, 2 }, 1))
flow.inner: The sums of products along the last axes of both.
  print(flow.inner(flow.tensor { 1, 2 }, flow.tensor { 3, 4 }))
flow.outer: The product of each element of a with each one of b.
  print(flow.outer(flow.tensor { 1, 2 }, flow.tensor { 3, 4 }))
flow.vdot: The product of two tensors as flat vectors.
  print(flow.vdot(flow.tensor { 1, 2 }, flow.tensor { 3, 4 }))
flow.kron: For each element of a its product with the whole of b.
  print(flow.kron(flow.tensor { { 1, 2 } }, flow.ones { 2, 2 }))
flow.cross: The vector that is orthogonal to a and b.
  print(flow.cross(flow.tensor { 1, 0, 0 }, flow.tensor { 0, 1, 0 }))
flow.vander: For each element a row of its powers.
  print(flow.vander(flow.tensor { 2, 3 }, 3))
flow.cdist: The distances between the rows of a and those of b.
  print(flow.cdist(flow.tensor { { 0, 0 } }, flow.tensor { { 3, 4 } }))
flow.cond: What true_fn returns if the condition holds, else what false_fn returns; in a traced function both are traced.
  print(flow.cond(flow.tensor(true), function() return flow.ones { 2 } end, function() return flow.zeros { 2 } end))
flow.switch: What the branch at a position, from 1, returns for the operands.
  print(flow.switch(2, { function(x) return x end, function(x) return x * 2 end }, flow.ones { 2 }))
flow.while_loop: The variables after body was called for as long as the condition held.
  print(unpack(flow.while_loop(function(i) return i:lt(5) end, function(i) return { i + 1 } end, { flow.tensor(0) })))
flow.fori_loop: The state after body(i, state) for each i from lower to before upper.
  print(flow.fori_loop(0, 3, function(_, x) return x * 2 end, flow.tensor(1)))
flow.map: f of each row, the results stacked.
  print(flow.map(function(x) return x * 2 end, flow.tensor { 1, 2 }))
flow.vectorized_map: f of each row, the results stacked; f sees all rows at once.
  print(flow.vectorized_map(function(x) return x * 2 end, flow.tensor { 1, 2 }))
flow.vectorize: A function that applies f to each element.
  print(flow.vectorize(function(x) return x * 2 end)(flow.tensor { 1, 2 }))
flow.scan: The results of f(state, row) for each row, stacked, and the last state; f returns the next state and a result.
  print(flow.scan(function(sum, x) return sum + x, sum end, flow.tensor(0), flow.tensor { 1, 2, 3 }))
flow.associative_scan: All partial results of f along an axis: x1, f(x1, x2), f(f(x1, x2), x3).
  print(flow.associative_scan(function(a, b) return a + b end, flow.tensor { 1, 2, 3 }))
flow.jvp: What f returns, and how it changes when the primals move along the tangents.
  print(flow.jvp(function(x) return x * x end, { flow.tensor(3) }, { flow.tensor(1) }))
]==]
