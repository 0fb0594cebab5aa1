-- composed_files_spec.lua: ops on symbolic tensors that are made of others are in files as Keras writes them, and come back; what has no
-- form there is refused by its name.
local support = require "spec.support.init"
local flow = require "flow"
local model_files = require "spec.support.model_files"
local json = require "flow.json"

local input = flow.Input { 6, 6 }
local noise = flow.random.normal({ 2, 6, 6 }, { seed = 1 })
local x = noise:matmul(noise:transpose { 1, 3, 2 }) + flow.eye(6)      -- positive definite

local CALLS = {
  fft = function(a) return flow.fft { a, a } end, irfft = function(a) return flow.irfft { a, a } end,
  stft = function(a) return flow.stft(a, 4, 2, 4) end, cumsum = function(a) return flow.cumsum(a, 3) end,
  solve = function(a) return flow.solve(a, a) end, threshold = function(a) return flow.threshold(a, 0.5, 0.1) end,
  moveaxis = function(a) return flow.moveaxis(a, 2, 3) end, tril = function(a) return flow.tril(a, 1) end,
  sort = function(a) return flow.sort(a, 2) end, isinf = function(a) return flow.isinf(a):to "float32" end,
}
for name in ("arctan2 hypot fmod fmax fmin logaddexp heaviside"):gmatch "%S+" do
  CALLS[name] = function(a) return flow[name](a, a * 0.5) end
end
for name in ("exp2 cbrt cosh sinh fliplr triu log_sigmoid hard_tanh celu hard_shrink soft_shrink glu sparsemax normalize det inv "
    .. "cholesky rfft norm"):gmatch "%S+" do
  CALLS[name] = function(a) return flow[name](a) end
end
for _, name in ipairs { "log2", "log10" } do
  CALLS[name] = function(a) return flow[name](flow.abs(a)) end
end
for _, name in ipairs { "arcsin", "arccos" } do
  CALLS[name] = function(a) return flow[name](flow.tanh(a)) end
end
CALLS.arccosh = function(a) return flow.arccosh(flow.abs(a) * 1e20 + 1) end      -- whose square is infinite
for name in ("eigh slogdet qr svd"):gmatch "%S+" do
  CALLS[name] = function(a) return { flow[name](a) } end
end
for name in ("logdet cholesky_inverse"):gmatch "%S+" do
  CALLS[name] = function(a) return flow[name](a) end
end
CALLS.solve_triangular = function(a) return flow.solve_triangular(a + 3, a, true) end
for name in ("copy fabs erfinv median ptp nanmax nanmean nanmedian nanmin nanprod nanstd nansum nanvar nan_to_num diff squareplus")
    :gmatch "%S+" do
  CALLS[name] = function(a) return flow[name](a * 0.01, (name:find "^nan[^_]" or name == "median" or name == "ptp") and 3 or nil) end
end
for name in ("bitwise_and bitwise_or bitwise_xor bitwise_left_shift right_shift gcd lcm"):gmatch "%S+" do
  CALLS[name] = function(a)
    local whole = flow.abs(a):to "int32" + 1
    return flow[name](whole, whole + 1):to "float32"
  end
end
for name in ("cdist append hstack dstack binary_crossentropy categorical_crossentropy"):gmatch "%S+" do
  CALLS[name] = function(a)
    local first, second = flow.sigmoid(a), flow.sigmoid(a * 0.5)
    if name:find "stack" then return flow[name] { first, second } end
    return flow[name](first, second, name == "append" and 3 or nil)
  end
end
CALLS.bitwise_not = function(a) return flow.bitwise_not(a:to "int32"):to "float32" end
CALLS.count_nonzero = function(a) return flow.count_nonzero(flow.round(a), 2):to "float32" end
CALLS.roll = function(a) return flow.roll(a, 1, 3) end
CALLS.diagonal = function(a) return flow.diagonal(a, 1, 2, 3) end
CALLS.trace = function(a) return flow.trace(a, 0, 2, 3) end
CALLS.moments = function(a) return { flow.moments(a, 3, true) } end
CALLS.space_to_depth = function(a) return flow.space_to_depth(a:expand_dims(-1), 2) end
CALLS.norm = function(a) return flow.norm(a, 2, 3, true) end

-- What Keras writes: module, class and config without the name.
local KERAS = {
  exp2 = { "numpy", "Exp2", {} }, arctan2 = { "numpy", "Arctan2", {} }, tril = { "numpy", "Tril", { k = 1 } },
  cumsum = { "numpy", "Cumsum", { axis = 2 } }, sort = { "numpy", "Sort", { axis = 1 } },
  moveaxis = { "numpy", "Moveaxis", { source = 1, destination = 2 } }, threshold = { "nn", "Threshold", { threshold = 0.5,
    default_value = 0.1 } }, det = { "linalg", "Det", {} }, cholesky = { "linalg", "Cholesky", { upper = false } },
  svd = { "linalg", "SVD", { full_matrices = true, compute_uv = true } }, qr = { "linalg", "Qr", { mode = "reduced" } },
  solve_triangular = { "linalg", "SolveTriangular", { lower = true } }, slogdet = { "numpy", "Slogdet", {} },
  logdet = { "math", "Logdet", {} }, cholesky_inverse = { "linalg", "CholeskyInverse", { upper = false } },
  moments = { "nn", "Moments", { axes = 2, keepdims = true, synchronized = false } }, roll = { "numpy", "Roll", { shift = 1, axis = 2 } },
  cdist = { "math", "CDist", {} }, trace = { "numpy", "Trace", { offset = 0, axis1 = 1, axis2 = 2 } },
  fft = { "math", "FFT", {} }, rfft = { "math", "RFFT", { fft_length = json.null } },
  stft = { "math", "STFT", { sequence_length = 4, sequence_stride = 2, fft_length = 4, window = "hann", center = true } },
}

local function model_of(name)
  local result = CALLS[name](input)
  return flow.Model { inputs = input, outputs = type(result) == "table" and not getmetatable(result) and result or { result } }
end

local function list(result) return flow.is_tensor(result) and { result } or result end

describe("ops that are made of others", function()
  for name in pairs(CALLS) do
    it(name .. " comes back from a file", function()
      local model, path = model_of(name), support.file("composed.keras", "")
      model:save(path)
      local found = list(flow.load_model(path)(x))
      for i, expected in ipairs(list(model(x))) do assert.same(expected:totable(), found[i]:totable()) end
    end)
  end

  it("are read by models without Lua, but for these", function()
    local missing = {}
    for name in pairs(CALLS) do
      local path = support.file("composed.keras", "")
      model_of(name):save(path)
      local ok, problem = pcall(model_files.assert_returns, model_of(name), { x })
      local class = not ok and tostring(problem):match "is the operation (%w+) of keras.src.ops.%w+, which is not supported in files"
      if not ok and not class then error(name .. ": " .. tostring(problem), 0) end
      missing[#missing + 1] = class or nil
    end
    table.sort(missing)
    assert.equal("Append BinaryCrossentropy BitwiseAnd BitwiseInvert BitwiseLeftShift BitwiseOr BitwiseRightShift BitwiseXor CDist "
      .. "CategoricalCrossentropy Cholesky CholeskyInverse Copy CountNonzero Det Diagonal Diff Dstack Eigh Erfinv FFT Fabs Gcd Hstack "
      .. "IRFFT Inv Lcm Logdet Median Moments NanToNum Nanmax Nanmean Nanmedian Nanmin Nanprod Nanstd Nansum Nanvar Ptp Qr RFFT Roll STFT "
      .. "SVD Slogdet Solve SolveTriangular SpaceToDepth Sparsemax Squareplus Trace", table.concat(missing, " "))
  end)

  it("are written as Keras writes them", function()
    for name, expected in pairs(KERAS) do
      local description = json.decode(model_of(name):to_json())
      local entry
      for _, one in ipairs(description.config.layers) do entry = one.class_name == expected[2] and one or entry end
      assert.equal("keras.src.ops." .. expected[1], entry.module)
      entry.config.name, entry.config.dtype, entry.config.trainable = nil, nil, nil
      assert.same(expected[3], entry.config, name)
    end
  end)

  it("are of flowlua's own module where files of Keras have another meaning or no form", function()
    local model = flow.Model { inputs = input, outputs = flow.argsort(input, 2) }      -- positions from 1
    local entry = json.decode(model:to_json()).config.layers[2]
    assert.same({ "flowlua.ops", "argsort" }, { entry.module, entry.class_name })
  end)
end)
