-- fourier.lua: Fourier transforms along the last axis, of real and imaginary parts as two tensors, and what is built of them: spectra of
-- overlapping parts of a signal. The transforms are the op fourier.

local errors = require "flow.errors"
local tensor = require "flow.tensor"
local tools = require "flow.tensor.composed.tools"
local takes = require("flow.signature").takes

local raise = errors.raise
local ops, define, floats = tools.ops, tools.define, tools.floats
local fourier = {}

local function last_length(x, what) return tools.length(x, #tools.dims(x), what) end

-- The first `count` entries of the transforms of `size` elements along the last axis, real and imaginary parts: of sums of x[j]
-- e^(-2 pi i j k / size), with + if `inverse`. x may have fewer elements; im may be nil.
local function transform(re, im, size, count, what, inverse)
  if size == 0 then raise("flow.%s: the last axis is empty", what) end
  local is_vector = #tools.dims(re) == 1
  local function lines(x) return is_vector and ops.expand_dims(x, 1) or x end
  local made = tools.apply("fourier", { lines(re), im and lines(im) }, function(a)
    a.fourier.size, a.fourier.count, a.fourier.inverse = size, count, inverse and 1 or 0
  end, 2)
  if is_vector then return ops.squeeze(made[1], 1), ops.squeeze(made[2], 1) end
  return made[1], made[2]
end

-- The real and the imaginary part of a list of both, as floats.
local function parts_of(x, what)
  if type(x) ~= "table" or getmetatable(x) or #x ~= 2 then
    raise("flow.%s takes a list of the real and the imaginary part, got %s", what, errors.describe(x))
  end
  local re, im = floats(x[1], what), floats(x[2], what)
  local a, b = tensor.shape_text(tools.dims(re)), tensor.shape_text(tools.dims(im))
  if a ~= b or re.rank == 0 then raise("flow.%s: the real part has the shape %s, the imaginary one %s: expected one shape", what, a, b) end
  return re, im:to(re.dtype)
end

-- The first `length` entries of x {..., n} along its last axis, or all of them, where there are fewer.
local function cut(x, length, what)
  local rank, n = #tools.dims(x), last_length(x, what)
  return n > length and tools.part(x, rank, 1, length) or x
end

-- x {..., n} with `length` entries along its last axis: cut off, or followed by zeros.
local function fitted(x, length, what)
  local rank, n = #tools.dims(x), last_length(x, what)
  if n >= length then return cut(x, length, what) end
  local dims = tools.dims(x)
  dims[rank] = length - n
  return ops.concat({ x, tools.filled(x, dims, 0) }, -1)
end

-- The sum over j of x[j] e^(-2 pi i j k / n) for each k, of { real, imaginary }: two tensors, the real and the imaginary part.
takes "x"
define(function(x)
  local re, im = parts_of(x, "fft")
  local n = last_length(re, "fft")
  return transform(re, im, n, n, "fft")
end, "fft")

-- The transform along the last axis, then along the one before it; x: a pair of real and imaginary parts.
local function over_two_axes(x, what, inverse)
  local re, im = parts_of(x, what)
  local rank = #tools.dims(re)
  if rank < 2 then raise("flow.%s: expected two axes or more, got shape %s", what, tensor.shape_text(tools.dims(re))) end
  local m, n = tools.length(re, rank - 1, what), last_length(re, what)
  re, im = transform(re, im, n, n, what, inverse)
  re, im = transform(ops.swapaxes(re, -1, -2), ops.swapaxes(im, -1, -2), m, m, what, inverse)
  return ops.swapaxes(re, -1, -2), ops.swapaxes(im, -1, -2), m * n
end

-- The same over the last two axes.
takes "x"
define(function(x)
  local re, im = over_two_axes(x, "fft2")
  return re, im
end, "fft2")

takes "x"
define(function(x)
  local re, im, count = over_two_axes(x, "ifft2", true)
  return re / count, im / count
end, "ifft2")

---- of real signals --------------------------------------------------------------------------------

local function real_transform(x, length, what)
  return transform(cut(x, length, what), nil, length, math.floor(length / 2) + 1, what)
end

-- Entries 0 to n/2 of the transform of a real signal {..., n}; fft_length: the signal is cut off there, or filled up with zeros.
takes "x, fft_length: count = nil"
define(function(x, length)
  x = floats(x, "rfft")
  return real_transform(x, length or last_length(x, "rfft"), "rfft")
end, "rfft")

-- The real signal that has this transform, of which the entries above n/2 follow from those below: those that do count twice.
local function real_inverse(re, im, length, what)
  local half = math.floor(length / 2) + 1
  re, im = cut(re, half, what), cut(im, half, what)
  local place = tensor.arange(last_length(re, what))
  local once = ops.logical_or(ops.eq(place, 0), ops.eq(place * 2, length)):to("float64")
  local weight = ((2 - once) / length):to(re.dtype)
  return (transform(re * weight, im * weight, length, length, what, true))
end

takes "x, fft_length: count = nil"
define(function(x, length)
  local re, im = parts_of(x, "irfft")
  return real_inverse(re, im, length or math.max(2 * (last_length(re, "irfft") - 1), 1), "irfft")
end, "irfft")

---- parts of a signal ------------------------------------------------------------------------------

-- The parts of sequence_length entries that begin every sequence_stride entries: {..., parts, sequence_length}. They are made of pieces of
-- as many entries as divide both numbers, since a long piece is taken as fast as a single entry.
local function frames_of(x, length, stride, what)
  local dims, n = tools.dims(x), last_length(x, what)
  local rank = #dims
  local count = n < length and 0 or math.floor((n - length) / stride) + 1
  if count == 0 then raise("flow.%s: the signal has %d entries, a part %d", what, n, length) end
  local piece, rest = length, stride
  while rest > 0 do piece, rest = rest, piece % rest end
  dims[rank], dims[rank + 1] = math.floor(n / piece), piece
  local pieces = ops.reshape_raw(cut(x, dims[rank] * piece, what), dims)
  local positions = tensor.arange(count):reshape { count, 1 } * (stride / piece) + tensor.arange(length / piece):reshape { 1, -1 } + 1
  dims[rank], dims[rank + 1] = count, length
  return ops.reshape_raw(ops.take(pieces, positions:to("int32"), rank), dims)
end

takes "x, sequence_length: count, sequence_stride: count"
define(function(x, length, stride)
  return frames_of(tools.operand(x, "extract_sequences"), length, stride, "extract_sequences")
end, "extract_sequences")

-- The window of a transform, in the middle of fft_length entries; nil: none.
local function window_of(window, length, fft_length, dtype, what)
  if fft_length < length then
    raise("flow.%s: fft_length is %d, expected at least sequence_length, which is %d", what, fft_length, length)
  end
  if window == false then return nil end
  local made
  if type(window) == "string" then
    if window ~= "hann" and window ~= "hamming" then
      raise("flow.%s: window is hann, hamming, a tensor or false, got %s", what, errors.describe(window))
    end
    local high = window == "hann" and 0.5 or 0.54
    made = (high - ops.cos(tensor.arange(length, { dtype = "float64" }) * (2 * math.pi / length)) * (1 - high)):to(dtype)
  else
    made = tools.operand(window, what):to(dtype)
    if made.rank ~= 1 or made.shape[1] ~= length then
      raise("flow.%s: window has the shape %s, expected {%d}, as sequence_length says", what, tensor.shape_text(made.shape), length)
    end
  end
  local before = math.floor((fft_length - length) / 2)
  return ops.pad(made, { { before, fft_length - length - before } })
end

takes "x, sequence_length: count, sequence_stride: count, fft_length: count, window = 'hann', center: boolean = true"
tools.define_long(function(x, length, stride, fft_length, window, center)
  x = floats(x, "stft")
  local made = window_of(window, length, fft_length, x.dtype, "stft")
  if center then
    local pads, half = {}, math.floor(fft_length / 2)
    for axis = 1, #tools.dims(x) do pads[axis] = { 0, 0 } end
    pads[#pads] = { half, half }
    if half >= last_length(x, "stft") then
      raise("flow.stft: the signal has %d entries, expected more than half of fft_length, by which center = true mirrors it; use false",
        last_length(x, "stft"))
    end
    x = ops.pad(x, pads, "reflect")
  end
  local frames = frames_of(x, fft_length, stride, "stft")
  return real_transform(made and frames * made or frames, fft_length, "stft")
end, "stft")

-- Frames {..., count, length} added up where each begins stride entries after the one before.
local function overlapped(frames, stride, what)
  local dims = tools.dims(frames)
  local rank = #dims
  local count, length = tools.length(frames, rank - 1, what), dims[rank]
  local turns = math.ceil(length / stride)
  local sum
  for turn = 0, turns - 1 do
    local piece = fitted(tools.part(frames, rank, turn * stride + 1, math.min(length, (turn + 1) * stride)), stride, what)
    local flat = { unpack(dims, 1, rank - 2) }
    flat[rank - 1] = count * stride
    piece = ops.reshape_raw(piece, flat)
    local pads = {}
    for axis = 1, rank - 2 do pads[axis] = { 0, 0 } end
    pads[rank - 1] = { turn * stride, (turns - 1 - turn) * stride }
    piece = turns > 1 and ops.pad(piece, pads) or piece
    sum = sum and sum + piece or piece
  end
  return tools.part(sum, rank - 1, 1, (count - 1) * stride + length)
end

-- What undoes a window: divided by the sum of its squares over the overlapping frames.
local function inverse_window(window, stride, length)
  local turns = math.ceil(length / stride)
  local squares = ops.pad(ops.square(window), { { 0, turns * stride - length } }):reshape { turns, stride }:sum(1, true)
  return window / tools.part(ops.tile(squares, { turns, 1 }):reshape { -1 }, 1, 1, length)
end

takes "x, sequence_length: count, sequence_stride: count, fft_length: count, length: count = nil, window = 'hann', center: boolean = true"
tools.define_long(function(x, sequence_length, stride, fft_length, length, window, center)
  local re, im = parts_of(x, "istft")
  if re.rank < 2 then raise("flow.istft: expected {..., frames, entries}, got shape %s", tensor.shape_text(tools.dims(re))) end
  local made = window_of(window, sequence_length, fft_length, re.dtype, "istft")
  local frames = real_inverse(re, im, fft_length, "istft")
  if made then frames = frames * inverse_window(made, stride, fft_length) end
  local signal = overlapped(frames, stride, "istft")
  local half, total = math.floor(fft_length / 2), last_length(signal, "istft")
  local first = center and half or 0
  local last = length and math.min(first + length, total) or center and total - half or total
  return tools.part(signal, #tools.dims(signal), first + 1, last)
end, "istft")

---- bands -------------------------------------------------------------------------------------------------------------------------

local function mel(hertz) return 1127 * math.log(1 + hertz / 700) end

-- How much each of the `bins` frequencies of a spectrum, up to half of `rate`, counts for each of the `bands` mel bands between two edges
-- in hertz, {bins, bands}: triangles that overlap by half, even in mel.
function fourier.mel_weights(bands, bins, rate, lower, upper, dtype)
  local rows, low, high = {}, mel(lower), mel(upper)
  local function edge(i) return low + (high - low) * i / (bands + 1) end
  for bin = 1, bins do
    local at, row = mel((bin - 1) * rate / 2 / (bins - 1)), {}
    for band = 1, bands do
      local up = (at - edge(band - 1)) / (edge(band) - edge(band - 1))
      local down = (edge(band + 1) - at) / (edge(band + 1) - edge(band))
      row[band] = bin == 1 and 0 or math.max(0, math.min(up, down))
    end
    rows[bin] = row
  end
  return tools.constant(rows, dtype)
end

tools.create("linear_to_mel_weight_matrix", "num_mel_bins: count = 20, num_spectrogram_bins: count = 129, sample_rate: positive = 8000, "
  .. "lower_edge_hertz: number = 125, upper_edge_hertz: number = 3800, dtype: string = 'float32'",
  function(bands, bins, rate, lower, upper, dtype)
    if lower < 0 or lower >= upper or upper > rate / 2 then
      raise("flow.linear_to_mel_weight_matrix: the edges are %g and %g hertz; expected 0 or more, the upper one above the lower one, and "
        .. "at most %g, half of sample_rate", lower, upper, rate / 2)
    end
    return fourier.mel_weights(bands, bins, rate, lower, upper, dtype)
  end)

return fourier
