-- composed.lua: in which file of composed/ each op is that is made of others and that few programs use. A file is loaded when the first of
-- its ops is asked for: flow.name, flow.keras.ops.name, tensor:name, symbolic:name.

local native = require "flow.ffi"
local ops = require "flow.tensor.ops"

local FILES = {
  elementwise = [[exp2 log2 log10 cbrt logaddexp logaddexp2 hypot ldexp arcsin arccos arctan2 sinh cosh arcsinh arccosh arctanh deg2rad
    rad2deg sinc erfinv i0 true_divide fmod trunc fix fabs fmax fmin heaviside isinf isposinf isneginf isreal
    signbit logical_xor isclose allclose nan_to_num real imag conj conjugate angle saturate_cast view nextafter]],
  integers = [[bitwise_and bitwise_or bitwise_xor bitwise_not bitwise_invert bitwise_left_shift left_shift bitwise_right_shift
    right_shift gcd lcm]],
  activations = [[log_sigmoid tanh_shrink hard_tanh sparse_sigmoid sparse_plus celu hard_shrink soft_shrink threshold squareplus glu
    sparsemax]],
  arrays = [[array convert_to_tensor convert_to_numpy empty empty_like identity ndim size dtype get_item append hstack vstack
    dstack slice slice_update hsplit vsplit dsplit array_split diff flipud fliplr moveaxis rot90 roll repeat rearrange tril triu tri
    diagonal trace diag diagflat meshgrid bartlett hanning hamming blackman kaiser]],
  indices = [[take_along_axis gather_nd scatter segment_sum segment_max segment_min segment_prod scatter_update select nonzero
    boolean_mask unravel_index sequence_mask]],
  statistics = [[amax amin ptp average count_nonzero sort argsort argpartition median quantile percentile nansum nanprod nanmax nanmin
    nanmean nanvar nanstd nanargmax nanargmin nanmedian nanquantile nanpercentile nancumsum nancumprod cumsum cumprod
    searchsorted digitize histogram bincount unique isin in_top_k corrcoef correlate trapezoid]],
}

FILES.convolutions = [[conv depthwise_conv separable_conv conv_transpose max_pool average_pool adaptive_average_pool adaptive_max_pool
  unfold fold space_to_depth depth_to_space]]
FILES.network = [[moments batch_normalization layer_normalization rms_normalization normalize l2_normalize binary_crossentropy
  categorical_crossentropy sparse_categorical_crossentropy psnr multi_hot dot_product_attention ctc_loss ctc_decode]]
FILES.linalg = [[solve_triangular cholesky cholesky_inverse solve inv det slogdet logdet lu_factor qr norm eigh svd pinv matrix_rank
  lstsq]]
FILES.clipping = "add_n clip_by_norm clip_by_global_norm global_norm"
FILES.spaces = "logspace geomspace"
FILES.fourier = "fft fft2 ifft2 rfft irfft extract_sequences stft istft linear_to_mel_weight_matrix"
FILES.products = "dot tensordot inner outer vdot kron cross vander cdist"
FILES.control = "cond switch while_loop fori_loop map vectorized_map vectorize scan associative_scan jvp"

local file_of = {}
for file, names in pairs(FILES) do
  for name in names:gmatch "%S+" do file_of[name] = file end
end

local composed = {}

-- The names of all, and of the elementwise ops that nobody has asked for; none is loaded by that.
function composed.names()
  local names = {}
  for _, list in ipairs { file_of, native.late_methods } do
    for name in pairs(list) do names[name] = true end
  end
  return require("flow.names").sorted(names)
end

-- The op of this name, nil if no file has it.
function composed.find(name)
  if not file_of[name] then return nil end
  require("flow.tensor.composed." .. file_of[name])
  return rawget(ops, name)
end

return composed
