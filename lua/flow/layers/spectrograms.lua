-- spectrograms.lua: MelSpectrogram and STFTSpectrogram: signals as pictures of their frequencies. Names, defaults, results and files are
-- Keras' (keras.src.layers.preprocessing.mel_spectrogram, stft_spectrogram).

local errors = require "flow.errors"
local json = require "flow.json"
local object = require "flow.object"
local signature = require "flow.signature"
local tensor = require "flow.tensor"
local ops = require "flow.tensor.ops"
local Layer = require "flow.layers.layer"
local stft = require "flow.layers.kernels.stft_initializer"
local entries = require "flow.layers.entries"
local fourier = require "flow.tensor.composed.fourier"

local raise = errors.raise
local COMMON = ", { name?: string, trainable: boolean = true, dtype? }"

-- A class whose config is what it was given, by these names in Keras' order; prepare(self, given) checks and completes that.
local function define(name, text, prepare)
  local class, names = object.class(name, Layer), {}
  for parameter in text:gmatch "[^,]+" do names[#names + 1] = parameter:match "[%w_]+" end
  signature.takes(text .. COMMON)
  signature.constructor(class, "flow.layers." .. name, function(...)
    local values, given = { ... }, {}
    for i, parameter in ipairs(names) do given[parameter] = values[i] end
    local self = object.new(class):_prepare(name, values[#names + 1])
    rawset(self, "_given", given)
    prepare(self, given)
    for parameter, value in pairs(given) do rawset(self, parameter, value) end
    return self
  end)
  function class:get_config()
    local config = entries.base(self)
    for _, parameter in ipairs(names) do
      local value = self._given[parameter]
      if value == nil or value == false and (parameter == "window" or parameter == "scaling") then value = json.null end
      config[parameter] = type(value) == "table" and value ~= json.null and json.list { unpack(value) } or value
    end
    return config
  end
  function class._from_config(_, content)
    local options = entries.options(content)
    options.dtype = entries.dtype(content)
    for _, parameter in ipairs { "window", "scaling" } do
      if content[parameter] == json.null then options[parameter] = false end
    end
    return class(options)
  end
  return class
end

---- MelSpectrogram -------------------------------------------------------------------------------------------------------------------

local MelSpectrogram = define("MelSpectrogram", "fft_length: count = 2048, sequence_stride: count = 512, sequence_length: count = nil, "
  .. "window: string|list|boolean = 'hann', sampling_rate: positive = 16000, num_mel_bins: count = 128, min_freq: number = 20, "
  .. "max_freq: number = nil, power_to_db: boolean = true, top_db: number = 80, mag_exp: number = 2, min_power: number = 1e-10, "
  .. "ref_power: number = 1", function(self, given)
    given.sequence_length = given.sequence_length or given.fft_length
    given.max_freq = given.max_freq or math.floor(given.sampling_rate / 2)
    if given.fft_length < given.sequence_length then
      raise("%s: sequence_length is %d, expected at most fft_length, which is %d", object.title(self), given.sequence_length,
        given.fft_length)
    end
  end)

-- {..., samples}: {..., num_mel_bins, frames}.
function MelSpectrogram:call(x)
  entries.need_one(self, x)
  local given = self._given
  local real, imaginary = ops.stft(x:to "float32", given.sequence_length, given.sequence_stride, given.fft_length, given.window, true)
  local power = ops.pow(ops.sqrt(ops.square(real) + ops.square(imaginary)), given.mag_exp)
  local bins = tensor.raw_shape(power)
  local y = ops.matmul(power, fourier.mel_weights(given.num_mel_bins, bins[#bins], given.sampling_rate, given.min_freq, given.max_freq,
    "float32"))
  if given.power_to_db then
    local scale = 10 / math.log(10)
    y = ops.log(ops.maximum(y, given.min_power)) * scale - scale * math.log(math.max(math.abs(given.ref_power), given.min_power))
    y = ops.maximum(y, ops.max(y) - given.top_db)
  end
  return ops.swapaxes(y, -1, -2):to(self._policy.compute_dtype)
end

---- STFTSpectrogram ------------------------------------------------------------------------------------------------------------------

local MODES = { log = true, magnitude = true, psd = true, real = true, imag = true, angle = true, stft = true }
local STFTSpectrogram = define("STFTSpectrogram", "mode: string = 'log', frame_length: count = 256, frame_step: count = nil, "
  .. "fft_length: count = nil, window: string|list|boolean = 'hann', periodic: boolean = false, scaling: string|boolean = 'density', "
  .. "padding: 'valid'|'same' = 'valid', expand_dims: boolean = false, data_format: 'channels_last' = 'channels_last'",
  function(self, given)
    local title = object.title(self)
    if not MODES[given.mode] then
      raise("%s: mode is log, magnitude, psd, real, imag, angle or stft, got %s", title, errors.describe(given.mode))
    elseif given.frame_step and given.frame_step > given.frame_length then
      raise("%s: frame_step is %d, expected at most frame_length, which is %d", title, given.frame_step, given.frame_length)
    elseif given.fft_length and given.fft_length < given.frame_length then
      raise("%s: fft_length is %d, expected at least frame_length, which is %d", title, given.fft_length, given.frame_length)
    elseif given.scaling and given.scaling ~= "density" and given.scaling ~= "spectrum" then
      raise("%s: scaling is density, spectrum or false, got %s", title, errors.describe(given.scaling))
    end
    rawset(self, "_step", given.frame_step or math.max(math.floor(given.frame_length / 2), 1))
    rawset(self, "_length", given.fft_length or 2 ^ math.ceil(math.log(given.frame_length) / math.log(2)))
    rawset(self, "_frequencies", math.floor(self._length / 2) + 1)
  end)

-- What a frame is multiplied with, {frame_length, 1, frequencies}.
local function waves(self, wave)
  local given = self._given
  return stft.waves(object.title(self), given, wave, given.frame_length, self._frequencies, self._length)
end

-- The transform is a convolution whose kernels are the waves: cosines for the real part, sines for the imaginary one.
function STFTSpectrogram:build()
  local shape, mode = { self._given.frame_length, 1, self._frequencies }, self._given.mode
  local function add(name, wave)
    rawset(self, "_" .. name, self:add_weight { name = name .. "_kernel", shape = shape,
                                                initializer = function() return waves(self, wave) end })
  end
  if mode ~= "imag" then add("real", math.cos) end
  if mode ~= "real" then add("imag", math.sin) end
end

-- {batch, samples, channels}: {batch, frames, channels * frequencies}, or {batch, frames, frequencies, channels} with expand_dims.
function STFTSpectrogram:call(x)
  entries.need_one(self, x)
  local dims, given = tensor.raw_shape(x), self._given
  if #dims ~= 3 then
    raise("%s: input has %d dimensions, expected 3 {batch, samples, channels}", object.title(self), #dims)
  end
  local signals = ops.reshape_raw(ops.transpose(x, { 1, 3, 2 }), { dims[1] * dims[3], dims[2], 1 })
  local function part(kernel)      -- {batch, channels, frames, frequencies}
    local y = ops.conv(signals, kernel:value():to(x.dtype), { strides = self._step, padding = given.padding })
    local own = tensor.raw_shape(y)
    return ops.reshape_raw(y, { dims[1], dims[3], own[2], own[3] })
  end
  local function arranged(y)
    if given.expand_dims then return ops.transpose(y, { 1, 3, 4, 2 }) end
    local own = tensor.raw_shape(y)
    return ops.reshape_raw(ops.transpose(y, { 1, 3, 2, 4 }), { own[1], own[3], own[2] * own[4] })
  end
  local real, imaginary = given.mode ~= "imag" and part(self._real), given.mode ~= "real" and part(self._imag)
  if given.mode == "real" then return arranged(real) end
  if given.mode == "imag" then return arranged(imaginary) end
  if given.mode == "angle" then return arranged(ops.arctan2(imaginary, real)) end
  if given.mode == "stft" then return arranged(ops.concat({ real, imaginary }, 4)) end
  local power = ops.square(real) + ops.square(imaginary)
  if given.mode == "psd" then      -- all frequencies but the first and the last stand for their negatives, too
    local last = tensor.raw_shape(power)[4]
    return arranged(power + ops.pad(power[{ {}, {}, {}, { 2, last - 1 } }], { { 0, 0 }, { 0, 0 }, { 0, 0 }, { 1, 1 } }))
  end
  local magnitude = arranged(ops.sqrt(ops.maximum(power, 1e-7)))
  return given.mode == "magnitude" and magnitude or ops.log(ops.maximum(magnitude, 1e-7))
end

return { MelSpectrogram = MelSpectrogram, STFTSpectrogram = STFTSpectrogram }
