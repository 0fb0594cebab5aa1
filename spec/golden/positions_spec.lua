-- positions_spec.lua: arguments by position mean what they mean in Keras: each parameter of Keras' functions and classes (positions.txt,
-- made by positions.py) that is one here has the same position, or may be given by name only.
local flow = require "flow"
local signature = require "flow.signature"

local folder = debug.getinfo(1, "S").source:match("^@(.*)positions_spec%.lua$")

-- What is given by name only, with the reason.
local NAMED = {
  ["layers.Input"] = "a number after the shape is more often a part of it", ["layers.InputLayer"] = "as Input",
  ["utils.image_dataset_from_directory"] = "tables of options are merged", ["utils.text_dataset_from_directory"] = "the same",
  ["utils.audio_dataset_from_directory"] = "the same",
  ["layers.LayerNormalization"] = "rms_scaling, which Keras no longer shows, comes before the others",
  ["layers.SpatialDropout1D"] = "name comes before dtype", ["layers.SpatialDropout2D"] = "the same",
  ["layers.SpatialDropout3D"] = "the same",
  ["utils.FeatureSpace"] = "the features are tables by name, too", ["metrics"] = "options of metrics are in their table",
  ["layers.Pipeline"] = "layers take name in the table", ["layers.RandomCrop"] = "the same",
}

-- The parameters of what is at a path below flow.keras that may be given by position, and its record; nil: there is none.
local function positions_of(path)
  local value = flow.keras
  for part in path:gmatch "[^.]+" do
    local ok, found = pcall(function() return value[part] end)
    if not ok then return nil end
    value = found
  end
  local record = signature.of(value)
  if not record then return nil end
  local list, more = { unpack(record.positional) }, record.variadic and #(record.options or {}) or record.options_by_position or 0
  for i = 1, more do list[#list + 1] = record.options[i] end
  return list, record
end

local function index_of(list, entry)
  for i, other in ipairs(list) do
    if other == entry then return i end
  end
end

-- What is said of one of Keras' parameters, the i-th, nil: it is at its place.
local function difference(path, list, record, name, i)
  local own = record.by_name[name]
  local at = own and index_of(list, own)
  if at and at ~= i then return ("%s: %s is argument %d, in Keras %d"):format(path, name, at, i) end
  if not own and list[i] and i > 1 then return ("%s: argument %d is %s, in Keras %s"):format(path, i, list[i].name, name) end
  if own and not at and not (NAMED[path] or NAMED[path:match "^%a+"]) then
    return ("%s: %s, argument %d in Keras, is given by name"):format(path, name, i)
  end
end

describe("arguments by position", function()
  it("are in Keras' order", function()
    local checked, found = 0, {}
    for line in io.lines(folder .. "positions.txt") do
      local path, text = line:match("^(%S+) (.*)$")
      local list, record = positions_of(path)
      local i = 0
      for name in text:gmatch(list and "%S+" or "^$") do
        i = i + 1
        found[#found + 1] = difference(path, list, record, name, i)
      end
      checked = checked + (list and 1 or 0)
    end
    assert.same({}, found)
    assert.is_true(checked >= 600, checked)
  end)

  it("that are options in the text of a function are read like the options", function()
    local x, kernel = flow.random.normal({ 1, 5, 5, 2 }, { seed = 1 }), flow.random.normal({ 3, 3, 2, 4 }, { seed = 2 })
    local function same(a, b) assert.equal(0, (a - b):abs():max():item()) end
    same(flow.conv(x, kernel, { strides = 2, padding = "same" }), flow.keras.ops.conv(x, kernel, 2, "same"))
    same(flow.max_pool(x, 2, { padding = "same" }), flow.max_pool(x, 2, nil, "same"))
    same(flow.linspace(0, 1, 5, { endpoint = false }), flow.linspace(0, 1, 5, false))
    same(flow.one_hot(flow.tensor { 0, 2 }, 3):transpose(), flow.one_hot(flow.tensor { 0, 2 }, 3, 1))
    assert.equal("float64", flow.full({ 2 }, 1, "float64").dtype)
    assert.equal("int32", flow.random.randint({ 2 }, 0, 9, "int32", 3).dtype)
    assert.has_error(function() flow.conv(x, kernel, 1, "valid", "channels_last", 1, 7) end,
      'flow.conv takes (inputs, kernel, { strides, padding = "valid", data_format = "channels_last", dilation_rate }); '
      .. "the number 7 is one argument too many")
  end)

  it("with the names of symbolic tensors make the operation", function()
    local input = flow.Input { 6, 6, 1 }
    local y = flow.keras.ops.average_pool(input, 2, 2, "valid")
    assert.same({ 1, 3, 3, 1 }, flow.Model { inputs = input, outputs = y }(flow.ones { 1, 6, 6, 1 }).shape)
  end)
end)

describe("what the comparison found", function()
  it("is as Keras 3.15 computes it", function()
    -- keras.activations.gelu([1.0]), keras.ops.gelu([1.0])
    assert.near(0.8413447, flow.keras.activations.gelu(flow.tensor { 1 }):item(), 1e-6)
    assert.near(0.841192, flow.keras.ops.gelu(flow.tensor { 1 }):item(), 1e-6)
    -- keras.losses.sparse_categorical_crossentropy([0, 1], [[.5, .5], [.25, .75]], ignore_class=0)
    local values = flow.losses.sparse_categorical_crossentropy(flow.tensor { 0, 1 }, flow.tensor { { .5, .5 }, { .25, .75 } }, false, 0)
    assert.near(0, values[1]:item(), 1e-7)
    assert.near(0.2876821, values[2]:item(), 1e-6)
    local t, step = flow.linspace(0, 1, 5, { retstep = true })
    assert.equal(0.25, step)
    assert.equal(5, #t)
    local x = flow.arange(12):reshape { 3, 4 }
    local shuffled = flow.random.shuffle(x, 2, 5)
    assert.same({ 3, 4 }, shuffled.shape)
    assert.equal(4, (shuffled[2] - shuffled[1]):min():item())
  end)
end)
