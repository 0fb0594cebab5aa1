--- Layers that are written in Lua, for spec/support/random_files.lua: by class, the shape and dtype of what they are called on, and
--- options(draw, shape, record, dtype), random ones. record(class, shape) gives a layer of that record. class: under which it is made;
--- policies: it computes in other dtypes, too; in_c: models without Lua have it.
local flow = require "flow"

local layers = flow.layers

local SEQUENCE, VECTOR, IMAGE, VOLUME = { 5, 4 }, { 6 }, { 6, 7, 3 }, { 5, 6, 5, 3 }
local WORDS = { "", "one", "two", "three", "four", "Größe", "one two", "Two, one!" }

--- What TimeDistributed is given, by the shape of a step.
local STEPS = {
  { shape = VECTOR, "Dense", "Rescaling", "UnitNormalization", "BatchNormalization", "Dropout", "RepeatVector", "PReLU" },
  { shape = SEQUENCE, "Conv1D", "LSTM", "MaxPooling1D", "GlobalMaxPooling1D", "LayerNormalization" },
  { shape = IMAGE, "Conv2D", "AveragePooling2D", "Flatten", "GroupNormalization", "Cropping2D", "SeparableConv2D" },
}
local RECURRENT, CELLS = { "SimpleRNN", "LSTM", "GRU" }, { "SimpleRNNCell", "LSTMCell", "GRUCell" }

local function maybe(draw, value)
  if draw.chance(0.5) then return value end
end

--- Each of the options with a chance of a half; they are functions of draw.
local function some(draw, options)
  local names, given = {}, {}
  for name in pairs(options) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do
    if draw.chance(0.5) then given[name] = options[name](draw) end
  end
  return given
end

local function boolean(draw) return draw.chance(0.5) end
local function mode(...)
  local list = { ... }
  return function(draw) return draw.pick(list) end
end
local function few(draw) return draw.integer(1, 3) end
local function integer_to(most) return function(draw) return draw.integer(0, most) end end
local ENCODINGS = mode("int", "one_hot", "multi_hot", "count")
local function salt(draw) return { draw.integer(0, 2 ^ 31), draw.integer(0, 2 ^ 31) } end

local function cells(draw, shape, record)
  local list = {}
  for i = 1, draw.integer(1, 3) do list[i] = record(draw.pick(CELLS), shape) end
  return list
end

local function rnn(draw, cell)
  local options = some(draw, { return_sequences = boolean, return_state = boolean, go_backwards = boolean, unroll = boolean,
    zero_output_for_mask = boolean })
  options.cell = cell
  return options
end

local function words(draw, least, most)
  local list = {}
  for i = 2, 1 + draw.integer(least, most) do list[#list + 1] = WORDS[i] end
  return list
end

local entries = {
  Bidirectional = { in_c = true, shape = SEQUENCE, policies = true, options = function(draw, shape, record)
    return { layer = record(draw.pick(RECURRENT), shape),
      merge_mode = maybe(draw, draw.pick { "concat", "sum", "mul", "ave", false }) }
  end },
  TimeDistributed = { in_c = true, policies = true,
    shape = function(draw) return { draw.integer(1, 4), unpack(draw.pick(STEPS).shape) } end,
    options = function(draw, shape, record)
      for _, kind in ipairs(STEPS) do
        if #kind.shape == #shape - 1 then return { layer = record(draw.pick(kind), kind.shape) } end
      end
    end },
  RNN = { in_c = true, shape = SEQUENCE, policies = true, options = function(draw, shape, record)
    local list = cells(draw, shape, record)
    return rnn(draw, #list == 1 and list[1] or list)
  end },
  StackedRNNCells = { in_c = true, shape = SEQUENCE, class = "RNN", options = function(draw, shape, record)
    return rnn(draw, layers.StackedRNNCells(cells(draw, shape, record)))
  end },
  CategoryEncoding = { shape = { 4 }, dtype = "int32", options = function(draw)
    return { num_tokens = draw.integer(7, 9), output_mode = maybe(draw, draw.pick { "multi_hot", "one_hot", "count" }) }
  end },
  Discretization = { shape = { 4 }, options = function(draw)
    local bounds, last = {}, 0
    for i = 1, draw.integer(1, 5) do
      last = last + draw.number(0.05, 0.4)
      bounds[i] = last
    end
    return { bin_boundaries = bounds, output_mode = maybe(draw, ENCODINGS(draw)) }
  end },
  IntegerLookup = { shape = { 3 }, dtype = "int64", options = function(draw)
    local list = {}
    for i = 1, draw.integer(1, 5) do list[i] = 7 - i end
    local options = some(draw, { num_oov_indices = few, mask_token = mode(0), output_mode = ENCODINGS,
      oov_method = mode("floormod", "farmhash") })
    options.vocabulary, options.invert = list, draw.chance(0.2) and not options.output_mode or nil
    return options
  end },
  StringLookup = { shape = { 3 }, dtype = "string", options = function(draw)
    local options = some(draw, { num_oov_indices = few, mask_token = mode "", output_mode = ENCODINGS, salt = salt })
    options.vocabulary = words(draw, 1, 5)
    return options
  end },
  TextVectorization = { shape = { 1 }, dtype = "string", options = function(draw)
    local options = some(draw, { standardize = mode("lower", "strip_punctuation", false), split = mode("whitespace", "character"),
      ngrams = few })
    options.output_mode = draw.pick { "int", "multi_hot", "count" }
    options.output_sequence_length = options.output_mode == "int" and draw.integer(1, 6) or nil
    options.vocabulary = words(draw, 1, 4)
    return options
  end },
  Hashing = { shape = { 3 }, dtype = { "string", "int64" }, options = function(draw, _, _, dtype)
    local options = some(draw, { salt = salt, output_mode = ENCODINGS, mask_value = mode(dtype == "string" and "one" or 3) })
    options.num_bins = draw.integer(1, 9)
    return options
  end },
  HashedCrossing = { shape = { 1 }, dtype = { "string", "int64" }, options = function(draw)
    return { num_bins = draw.integer(1, 9), output_mode = maybe(draw, draw.pick { "int", "one_hot" }) }
  end },
  Lambda = { why_not = "a file cannot hold its function" },
  Wrapper = { why_not = "only classes that extend it compute something" },
}

for axes, shape in ipairs { SEQUENCE, IMAGE, VOLUME } do
  for _, kind in ipairs { "Average", "Max" } do
    local class = ("Adaptive%sPooling%dD"):format(kind, axes)
    entries[class] = { shape = shape, policies = true, options = function(draw)
      local sizes = {}
      for i = 1, axes do sizes[i] = draw.integer(1, 6) end
      return { output_size = draw.chance(0.5) and sizes or sizes[1] }
    end }
  end
end

--- Layers that change pictures: options that each has with a chance of a half, but for those that it needs.
local function share(least)
  return function(draw)
    if draw.chance(0.5) then return draw.number(0, 0.9) end
    return { draw.number(least, 0.4), draw.number(0.4, 0.9) }
  end
end
local SHARE, EITHER, RANGE = share(0), share(-0.9), function(draw) return { 0, draw.pick { 1, 255 } } end
local FILL, NEAREST, SEED = mode("reflect", "wrap", "constant", "nearest"), mode("nearest", "bilinear"), integer_to(1000)
local PICTURES = {
  RandomBrightness = { needed = { factor = EITHER }, value_range = RANGE, seed = SEED },
  RandomColorDegeneration = { needed = { factor = EITHER }, value_range = RANGE, seed = SEED },
  RandomColorJitter = { brightness_factor = EITHER, contrast_factor = SHARE, saturation_factor = EITHER, hue_factor = SHARE, seed = SEED },
  RandomGaussianBlur = { factor = SHARE, kernel_size = mode(1, 3, 5), sigma = SHARE, value_range = RANGE, seed = SEED },
  RandomGrayscale = { factor = function(draw) return draw.number(0, 1) end, seed = SEED },
  RandomHue = { needed = { factor = SHARE }, value_range = RANGE, seed = SEED },
  RandomInvert = { factor = SHARE, value_range = RANGE, seed = SEED },
  RandomPosterization = { needed = { factor = mode(1, 5, { 2, 7 }) }, value_range = RANGE, seed = SEED },
  RandomSaturation = { needed = { factor = EITHER }, value_range = RANGE, seed = SEED },
  RandomSharpness = { needed = { factor = SHARE }, value_range = RANGE, seed = SEED },
  Solarization = { addition_factor = SHARE, threshold_factor = SHARE, value_range = RANGE, seed = SEED },
  AutoContrast = { value_range = RANGE },
  RandomTranslation = { needed = { height_factor = EITHER, width_factor = EITHER }, fill_mode = FILL, interpolation = NEAREST,
    seed = SEED },
  RandomShear = { x_factor = SHARE, y_factor = SHARE, fill_mode = FILL, interpolation = NEAREST, seed = SEED },
  RandomPerspective = { factor = SHARE, scale = function(draw) return draw.number(0, 1) end, interpolation = NEAREST, seed = SEED },
  RandomElasticTransform = { factor = SHARE, scale = SHARE, fill_mode = FILL, interpolation = NEAREST, value_range = RANGE, seed = SEED },
  RandomErasing = { factor = SHARE, scale = SHARE, fill_value = mode(3, { 1, 2, 3 }), value_range = RANGE, seed = SEED },
  RandomCrop = { needed = { height = few, width = few }, seed = SEED },
  Equalization = { value_range = RANGE, bins = mode(16, 256) },
  ContrastLimitedAdaptiveHistogramEqualization = { value_range = RANGE, clip_limit = mode(0, 3),
    tile_grid_size = mode({ 2, 3 }, { 1, 1 }) },
  MixUp = { alpha = function(draw) return draw.number(0.1, 1) end, seed = SEED },
  CutMix = { factor = SHARE, seed = SEED },
  RandAugment = { num_ops = few, factor = SHARE, interpolation = NEAREST, value_range = RANGE, seed = SEED },
  AugMix = { num_chains = few, chain_depth = few, factor = SHARE, all_ops = boolean, value_range = RANGE, seed = SEED },
  MaxNumBoundingBoxes = { needed = { max_number = few } },
}
local ALWAYS = { AutoContrast = true, ContrastLimitedAdaptiveHistogramEqualization = true, MaxNumBoundingBoxes = true }
for class, options in pairs(PICTURES) do
  local needed = options.needed or {}
  options.needed = nil
  entries[class] = { shape = IMAGE, in_c = not ALWAYS[class], options = function(draw)
    local given, names = some(draw, options), {}
    for name in pairs(needed) do names[#names + 1] = name end
    table.sort(names)
    for _, name in ipairs(names) do given[name] = needed[name](draw) end
    return given
  end }
end

entries.Pipeline = { shape = IMAGE, options = function(draw, shape, record)
  local list = { record("RandomFlip", shape), layers.RandomHue(0.1), record("Rescaling", shape) }
  return { layers = { unpack(list, 1, draw.integer(1, 3)) } }
end }
entries.SpectralNormalization = { shape = function(draw) return draw.pick { SEQUENCE, IMAGE } end, options = function(draw, shape, record)
  return { layer = record(#shape == 3 and draw.pick { "Conv2D", "Dense" } or draw.pick { "Conv1D", "Dense", "EinsumDense" }, shape),
           power_iterations = maybe(draw, few(draw)) }
end }
entries.MelSpectrogram = { shape = { 80 }, options = function(draw)
  local options = some(draw, { sequence_stride = mode(8, 16), sequence_length = mode(24, 32), window = mode("hann", "hamming", false),
    power_to_db = boolean, mag_exp = few, top_db = mode(20, 80), min_freq = mode(10, 50) })
  options.fft_length, options.num_mel_bins, options.sampling_rate = 32, draw.integer(1, 6), 1000
  return options
end }
entries.STFTSpectrogram = { shape = { 40, 2 }, options = function(draw)
  local options = some(draw, { mode = mode("log", "magnitude", "psd", "real", "imag", "stft"), frame_step = mode(3, 8), periodic = boolean,
    fft_length = mode(16, 32), window = mode("hann", "hamming", "blackman", false), scaling = mode("density", "spectrum", false),
    padding = mode("valid", "same"), expand_dims = boolean })
  options.frame_length = draw.integer(9, 16)
  return options
end }

--- Strings for an input of that shape.
local function strings(shape, draw, axis)
  if axis > #shape then return draw.pick(WORDS) end
  local list = {}
  for i = 1, shape[axis] do list[i] = strings(shape, draw, axis + 1) end
  return list
end

return { entries = entries, strings = function(shape, draw) return flow.tensor(strings(shape, draw, 1)) end }
