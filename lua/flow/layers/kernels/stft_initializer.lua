-- stft_initializer.lua: flow.initializers.STFT: kernels {samples, 1, frequencies} of a convolution that gives the real or the imaginary
-- part of a Fourier transform of frames, under a window (keras.src.initializers.constant_initializers.STFT); layers.STFTSpectrogram has two
-- of them.

local errors = require "flow.errors"
local json = require "flow.json"
local object = require "flow.object"
local signature = require "flow.signature"
local tensor = require "flow.tensor"

local raise = errors.raise
local stft = {}

-- Cosine sums that windows are, by their coefficients.
local WINDOWS = { hann = { 0.5, -0.5 }, hamming = { 0.54, -0.46 }, blackman = { 0.42, -0.5, 0.08 }, boxcar = { 1 } }

-- The weights of a frame's samples as a list, the sum of cosines that WINDOWS has for the name; nil: no window.
local function window_of(what, given, n)
  local list = {}
  if not given.window then return nil end
  if type(given.window) == "table" then
    if #given.window ~= n then raise("%s: window has %d entries, expected %d, one for each sample of a frame", what, #given.window, n) end
    return given.window
  end
  local terms = WINDOWS[given.window]
  if not terms then
    raise("%s: window is hann, hamming, blackman, boxcar, a list or false, got %s", what, errors.describe(given.window))
  end
  for i = 1, n do
    local angle, sum = 2 * math.pi * (i - 1) / math.max(given.periodic and n or n - 1, 1), 0
    for k, term in ipairs(terms) do sum = sum + term * math.cos((k - 1) * angle) end
    list[i] = sum
  end
  return list
end

-- What frames of n samples are multiplied with, {n, 1, frequencies}: waves under the window. given: { window =, periodic =, scaling = };
-- wave: math.cos or math.sin; length: of the transform.
function stft.waves(what, given, wave, n, frequencies, length)
  local window, rows, sum = window_of(what, given, n), {}, 0
  for i = 1, n do
    local weight = window and window[i] or 1
    sum = sum + (given.scaling == "density" and weight * weight or math.abs(weight))
    local row = {}
    for k = 1, frequencies do row[k] = weight * wave(-2 * math.pi * (i - 1) * (k - 1) / length) end
    rows[i] = { row }
  end
  local scale = window and given.scaling and (given.scaling == "density" and math.sqrt(sum) or sum) or 1
  return tensor.tensor(rows) / scale
end

-- The class. Initializer: the one of all of them.
function stft.class(Initializer)
  local STFT = object.class("STFT", Initializer)
  signature.takes("side: 'real'|'imag' = 'real', window: string|list|boolean = 'hann', " ..
    "scaling: 'density'|'spectrum'|boolean = 'density', periodic: boolean = false")
  signature.constructor(STFT, "flow.initializers.STFT", function(side, window, scaling, periodic)
    local given = { side = side, window = window, scaling = scaling, periodic = periodic }
    if type(window) == "string" and not WINDOWS[window] or window == true then window_of("STFT", given, 1) end
    local self = object.new(STFT, { class_name = "STFT", options = given, _in_lua = true })
    for name, value in pairs(given) do rawset(self, name, value) end
    return self
  end)

  signature.takes "shape: list, dtype?"
  function STFT:call(shape, dtype)
    if type(dtype) == "table" then dtype = dtype.dtype end
    shape = require("flow.tensor.shapes").check_dims("STFT", shape)
    if #shape ~= 3 or shape[2] ~= 1 then
      raise("STFT: the shape is {samples, 1, frequencies}, got %s", tensor.shape_text(shape))
    end
    tensor.zeros(shape):close()      -- raises if there is no memory for it, before the lists grow
    local values = stft.waves("STFT", self.options, self.side == "real" and math.cos or math.sin, shape[1], shape[3], (shape[3] - 1) * 2)
    return dtype and values:to(dtype) or values
  end

  function STFT:get_config()
    local given = self.options
    return { side = given.side, window = given.window or json.null, scaling = given.scaling or json.null, periodic = given.periodic }
  end
  object.static(STFT, "from_config", function(class, config)
    object.check_config("STFT", config)
    local options = {}
    for name, value in pairs(config) do
      if value == json.null then value = false end
      options[name] = json.is_list(value) and { unpack(value) } or value
    end
    return class(options)
  end)
  return STFT
end

return stft
