-- layer_ends_spec.lua: layers at the ends of what they take: the highest ranks, no elements, long lists, infinite numbers, other dtypes.
-- Expected values are Keras 3.15's.
local support = require "spec.support.init"
local flow = require "flow"
local native = require "flow.ffi"
local layers = flow.layers

local function flat(t) return flow.reshape(t, { -1 }):totable() end

describe("attention over many axes", function()
  local x = flow.ones { 1, 2, 2, 2, 2, 3 }

  it("takes six of them, whose weights would have ten", function()
    local layer = layers.MultiHeadAttention(2, 3)
    assert.same({ 1, 2, 2, 2, 2, 3 }, layer(x, x).shape)
    local six = layers.MultiHeadAttention(2, 3, { name = "six" })
    assert.equal('MultiHeadAttention "six": a result or a mask would have 10 dimensions, at most 8 are possible',
      support.message_of(function() six(x, x, { return_attention_scores = true }) end))
  end)

  it("refuses an output_shape that is too long for the input", function()
    local y, layer = flow.ones { 1, 2, 2, 3 }, layers.MultiHeadAttention(2, 3, { output_shape = { 1, 2, 3, 1, 2, 3 }, name = "long" })
    assert.equal('MultiHeadAttention "long": a result or a mask would have 9 dimensions, at most 8 are possible',
      support.message_of(function() layer(y, y) end))
  end)

  it("needs one", function()
    local y = flow.ones { 1, 2, 3 }
    assert.equal('MultiHeadAttention "none": attention_axes is empty, expected one axis or more', support.message_of(function()
      layers.MultiHeadAttention(2, 3, { attention_axes = {}, name = "none" })(y, y)
    end))
  end)
end)

describe("a list of inputs", function()
  local function masked(count)
    local list, masking = {}, layers.Masking()
    for i = 1, count do list[i] = masking(flow.tensor { { { i, i }, { 0, 0 } } }) end
    return list
  end

  it("may be long, with masks, too", function()
    local list = masked(100)
    assert.same({ 100, 100, 0, 0 }, flat(layers.Maximum()(list)))
    assert.same({ 1, 1, 0, 0 }, flat(layers.Minimum()(list)))
    assert.same({ 5050, 5050, 0, 0 }, flat(layers.Add()(list)))
    assert.same({ 50.5, 50.5, 0, 0 }, flat(layers.Average()(list)))
    list = masked(140)
    for i = 1, #list do list[i] = layers.Masking()(flow.tensor { { { i % 2 == 0 and 2 or 0.5, 1 }, { 0, 0 } } }) end
    local product = layers.Multiply()(list)
    assert.same({ 1, 1, 0, 0 }, flat(product))
  end)

  it("that does not fit leaves no memory behind", function()
    local a, b = layers.Masking()(flow.ones { 2, 3, 4000 }), layers.Masking()(flow.ones { 2, 3, 5 })
    local multiply = layers.Multiply()
    local function fail() support.message_of(function() multiply { a, b } end) end
    fail()
    native.collect()
    local before = native.C.flow_live_bytes()
    for _ = 1, 20 do fail() end
    native.collect()
    assert.is_true(native.C.flow_live_bytes() - before < 30000)      -- one call kept 120,000 bytes
  end)
end)

describe("images", function()
  it("keep their dtype where they become larger", function()
    for _, dtype in ipairs { "uint8", "int32", "float32" } do
      local x = flow.tensor { { { { 1 }, { 2 } }, { { 3 }, { 4 } } } }:to(dtype)
      for _, interpolation in ipairs { "nearest", "bilinear" } do
        assert.equal(dtype, layers.UpSampling2D(2, { interpolation = interpolation })(x).dtype)
      end
    end
    local half = layers.UpSampling2D(2, { dtype = "mixed_float16" })
    assert.equal("float16", half(flow.ones { 1, 2, 2, 1 }).dtype)
  end)

  it("keep the bits of their pixels between margins", function()
    local x = flow.tensor { { { { 0.1 }, { -math.huge } }, { { 1e-30 }, { 0.4 } } } }
    for _, fill in ipairs { 255, -1e30 } do
      local resizing = layers.Resizing(4, 2, { pad_to_aspect_ratio = true, fill_value = fill, interpolation = "nearest" })
      local f = flow.tensor { fill }:item()
      assert.same({ f, f, flat(x)[1], -math.huge, flat(x)[3], flat(x)[4], f, f }, flat(resizing(x)))
    end
  end)
end)

describe("layers over volumes", function()
  it("give zeros where no plane of a dilated kernel meets the output", function()
    local layer = layers.Conv3DTranspose(2, 2, { dilation_rate = 2, padding = "same", bias_initializer = "ones" })
    local y = layer(flow.ones { 1, 1, 1, 1, 3 })
    assert.same({ 1, 1, 1, 1, 2 }, y.shape)
    assert.same({ 1, 1 }, flat(y))
  end)
end)

describe("inputs without an axis or without an element", function()
  it("are named, or give as many elements", function()
    assert.equal('PReLU "p": input is a scalar, expected at least 1 dimension {batch, ...}', support.message_of(function()
      layers.PReLU { name = "p" } (flow.tensor(3))
    end))
    assert.same({ 2, 0 }, layers.GaussianNoise(0.5)(flow.zeros { 2, 0 }, { training = true }).shape)
    assert.same({ 2, 0 }, layers.GaussianDropout(0.5)(flow.zeros { 2, 0 }, { training = true }).shape)
  end)

  it("and numbers beyond those of an int", function()
    assert.equal('Dense "d": units must be at most 2147483647, found 3000000000', support.message_of(function()
      layers.Dense(3e9, { name = "d" })
    end))
  end)

  it("and axes that no number of an int names", function()
    for _, axis in ipairs { 5e9, -5e9, 2 ^ 31, 2 ^ 52 } do
      assert.matches("outside an input of 2 dimensions", support.message_of(function() layers.Softmax(axis)(flow.ones { 2, 3 }) end))
      local normalization = layers.LayerNormalization { axis = axis }
      assert.matches("cannot be normalized", support.message_of(function() normalization(flow.ones { 2, 3 }) end))
    end
  end)
end)

describe("Softmax over several axes", function()
  local x = flow.random.normal({ 2, 3, 4 }, { seed = 5 })
  local function flattened(f, y) return f(y:reshape { 2, 12 }):reshape { 2, 3, 4 } end

  it("is that of the flattened axes, with its gradient, in files, too", function()
    for _, axis in ipairs { { 2, 3 }, { -1, 2 } } do
      local layer = layers.Softmax { axis = axis }
      local weights = flow.cos(flow.arange(24):to "float32"):reshape { 2, 3, 4 }
      local function gradient(f)
        local tape = flow.GradientTape()
        tape:watch(x)
        return tape:gradient(tape:record(function() return (f(x) * weights):sum() end), x)
      end
      local function expected(y) return flattened(layers.Softmax(), y) end
      assert.is_true((layer(x) - expected(x)):abs():max():item() < 1e-6)
      assert.is_true((gradient(layer) - gradient(expected)):abs():max():item() < 1e-6)
      local model = flow.Sequential { layers.Input { 3, 4 }, layer }
      local path = support.path "softmax.keras"
      model:save(path)
      assert.is_true((flow.load_model(path):predict(x, { verbose = 0 }) - expected(x)):abs():max():item() < 1e-6)
    end
  end)

  it("leaves out what a mask hides", function()
    local mask = x:gt(0)
    local y = layers.Softmax { axis = { 2, 3 } }(x, { mask = mask })
    assert.same({ 0 }, { flow.where(mask, 0, y):abs():max():item() })
    for i = 1, 2 do assert.near(1, y[i]:sum():item(), 1e-5) end
  end)

  it("names each axis once", function()
    assert.matches("axis 2 %(counted from 1%) is named twice", support.message_of(function() layers.Softmax { axis = { 2, 2 } }(x) end))
  end)
end)

describe("UnitNormalization", function()
  it("keeps its axis as it was given, as in Keras", function()
    assert.equal(-1, layers.UnitNormalization():get_config().axis)
    assert.equal(1, layers.UnitNormalization { axis = 2 }:get_config().axis)
    assert.same({ 1, 2 }, layers.UnitNormalization { axis = { 2, 3 } }:get_config().axis)
  end)
end)
