-- masks_spec.lua: masks of tensors, layers and models: who sets them, who drops them with a warning, how they are given, what is refused.
-- What they change is compared with Keras in spec/golden/masks_spec.lua.
local support = require "spec.support.init"
local flow = require "flow"
local model_files = require "spec.support.model_files"
local layers, message_of = flow.layers, support.message_of

local ids = flow.tensor({ { 3, 1, 0, 0 }, { 2, 0, 4, 0 } }, { dtype = "int32" })
local kept = { { true, true, false, false }, { true, false, true, false } }
local function embedded() return layers.Embedding { input_dim = 5, output_dim = 3, mask_zero = true }(ids) end
local function mask_of(list) return flow.tensor(list, { dtype = "bool" }) end

-- The warnings while f runs.
local function warnings(f)
  local list, before = {}, flow.log.sink
  flow.log.sink = function(level, text) if level == "warning" then list[#list + 1] = text end end
  local ok, problem = pcall(f)
  flow.log.sink = before
  assert(ok, problem)
  return list
end

describe("a tensor's mask", function()
  it("is what a layer set, or a user; ops give tensors without one", function()
    local x = embedded()
    assert.same(kept, x._keras_mask:totable())
    assert.is_nil((x * 2)._keras_mask)
    assert.is_nil(layers.Embedding(5, 3)(ids)._keras_mask)
    local y = flow.zeros { 2, 4, 3 }
    y._keras_mask = mask_of(kept)
    assert.same(kept, layers.Dense(2)(y)._keras_mask:totable())
    y._keras_mask = nil
    assert.is_nil(layers.Dense(2)(y)._keras_mask)
    assert.truthy(message_of(function() y._keras_mask = y end):find("a mask is a separate tensor", 1, true))
  end)

  it("goes through layers that support masking, in any dtype, and ends in others", function()
    local x = embedded()
    for _, layer in ipairs { layers.Dropout(0.5), layers.LayerNormalization(), layers.Activation "relu",
                             layers.Dense(2, { dtype = "mixed_bfloat16" }) } do
      assert.is_true(layer.supports_masking)
      assert.same(kept, layer(x, { training = true })._keras_mask:totable())
    end
    assert.is_nil(layers.GlobalAveragePooling1D()(x)._keras_mask)
    assert.is_false(layers.Flatten().supports_masking)
    local flatten = layers.Conv1D(2, 1)
    assert.is_nil(flatten(x)._keras_mask)
  end)

  it("ends in EinsumDense, and in SpectralNormalization of a layer in which it ends, as in Keras", function()
    local function einsum() return layers.EinsumDense("abc,cd->abd", { -1, 2 }) end
    for _, layer in ipairs { einsum(), layers.SpectralNormalization(einsum()), layers.SpectralNormalization(layers.Conv1D(2, 1)) } do
      assert.is_false(layer.supports_masking)
      warnings(function() assert.is_nil(layer(embedded())._keras_mask) end)
      local words = flow.Input({ 4 }, { dtype = "int32" })
      local x = layers.Embedding(5, 3, { mask_zero = true })(words)
      local function mean(y) return flow.Model { inputs = words, outputs = layers.GlobalAveragePooling1D()(y) } end
      local step = flow.Model { inputs = words, outputs = layer(x) }
      local expected = flow.mean(step:predict(ids, { verbose = 0 }), 2)
      local inside = flow.Input { 4, 3 }
      local inner = flow.Model { inputs = inside, outputs = layer(inside) }
      warnings(function()
        assert.near(0, (mean(layer(x)):predict(ids, { verbose = 0 }) - expected):abs():max():item(), 1e-6)
        assert.near(0, (mean(inner(x)):predict(ids, { verbose = 0 }) - expected):abs():max():item(), 1e-6)
      end)
    end
    local normalized = layers.SpectralNormalization(layers.Dense(2))
    assert.is_true(normalized.supports_masking)
    assert.same(kept, normalized(embedded())._keras_mask:totable())
  end)

  it("is what compute_mask says", function()
    local embedding, masking = layers.Embedding(5, 3, { mask_zero = true }), layers.Masking(1)
    assert.same(kept, embedding:compute_mask(ids):totable())
    assert.same({ { false, true } }, masking:compute_mask(flow.tensor { { { 1, 1 }, { 1, 0 } } }):totable())
    local a, b = mask_of { { true, false } }, mask_of { { false, false } }
    local x = flow.zeros { 1, 2, 2 }
    assert.same({ { true, false } }, layers.Add():compute_mask({ x, x }, { a, b }):totable())
    assert.is_nil(layers.Add():compute_mask({ x, x }, { a, false }))
    assert.same({ { true, true } }, layers.Concatenate():compute_mask({ x, x }, { b, false }):totable())
    assert.is_nil(layers.GlobalAveragePooling1D():compute_mask(x, a))
  end)
end)

describe("layers written in Lua and masks", function()
  local Own = layers.Layer:extend("OwnMasked")
  function Own:call(x, options)
    self.seen = options.mask or false
    return x * 2
  end

  it("say whether they hand them on, and are told those of their inputs", function()
    local x, own = embedded(), Own()
    local said = warnings(function() assert.is_nil(own(x)._keras_mask) end)
    assert.equal(1, #said)
    assert.truthy(said[1]:find("does not support", 1, true))
    assert.equal(0, #warnings(function() own(x) end))      -- once a layer
    assert.same(kept, own.seen:totable())
    own.supports_masking = true
    assert.same(kept, own(x)._keras_mask:totable())
    local other = mask_of { { true, true, true, true }, { false, false, false, false } }
    assert.same(other:totable(), own(x, { mask = other })._keras_mask:totable())
    assert.same(other:totable(), own.seen:totable())
    own(flow.zeros { 2, 3 })
    assert.is_false(own.seen)
    assert.is_nil(own:get_config().supports_masking)
  end)

  it("compute their own, and get those of several tensors", function()
    local Half = layers.Layer:extend("HalfMasked")
    function Half:call(x) return x * 1 end
    function Half:compute_mask(_, mask) return mask:logical_not() end
    local half = Half()
    assert.is_true(half.supports_masking)
    assert.is_true(half(embedded())._keras_mask[1][3]:item())
    local Two, seen = layers.Layer:extend("TwoMasked"), nil
    function Two:call(query, value, options)
      seen = { options.query_mask ~= nil, options.value_mask ~= nil, options.mask ~= nil }
      return query + value
    end
    Two()(embedded(), flow.zeros { 2, 4, 3 })
    assert.same({ true, false, false }, seen)
    local List = layers.Layer:extend("ListMasked")
    function List:call(list, options)
      seen = { options.mask[1] and true, options.mask[2] }
      return list[1] + list[2]
    end
    List()({ embedded(), flow.zeros { 2, 4, 3 } })
    assert.same({ true, false }, seen)
  end)
end)

describe("a mask that is given", function()
  local x = flow.random.normal({ 2, 4, 3 }, { seed = 5 })
  local mask = mask_of(kept)

  it("counts in place of the tensor's, also in a model, which is saved with it", function()
    local pool = layers.GlobalAveragePooling1D()
    local expected = pool(x, { mask = mask })
    assert.is_true(((x[1][1] + x[1][2]) / 2 - expected[1]):abs():max():item() < 1e-6)
    local inner = flow.Sequential { layers.Input { 4, 3 }, pool }
    assert.equal(0, (inner(x, { mask = mask }) - expected):abs():max():item())
    assert.is_nil(x._keras_mask)
    local a, b = layers.Input { 4, 3 }, layers.Input({ 4 }, { dtype = "bool" })
    local outer = flow.Model { inputs = { a, b }, outputs = inner(a, { mask = b }) }
    assert.equal(0, (outer { x, mask } - expected):abs():max():item())
    model_files.assert_returns(outer, { x, mask })
  end)

  it("must fit", function()
    local function refused(text, f)
      local problem = message_of(f)
      assert.truthy(problem:find(text, 1, true), problem)
    end
    refused("does not broadcast to the input {2, 4, 3}", function() layers.Softmax()(x, { mask = mask }) end)
    refused("must have one dimension less", function() layers.BatchNormalization()(x, { mask = flow.ones { 2 } }) end)
    refused("expected {batch, steps}", function() layers.GlobalAveragePooling1D()(x, { mask = flow.ones { 2 } }) end)
    refused("unknown option \"masks\"", function() layers.Softmax()(x, { masks = mask }) end)
    refused("unknown option \"mask\"", function() layers.Dense(2)(x, { mask = mask }) end)
  end)
end)

describe("attention takes the masks off what it was called on, as in Keras", function()
  it("so that a sum with its input has none", function()
    local x = embedded()
    local y = layers.MultiHeadAttention(1, 2)(x, x)
    assert.same(kept, y._keras_mask:totable())
    assert.is_nil(x._keras_mask)
    assert.is_nil(layers.Add()({ x, y })._keras_mask)
  end)
end)

describe("layers over volumes and products", function()
  it("say what is wrong", function()
    local function refused(text, f)
      local problem = message_of(f)
      assert.truthy(problem:find(text, 1, true), problem)
    end
    local volume = flow.zeros { 1, 3, 4, 5, 6 }
    refused("kernel_size must be an integer or a list of three integers", function() layers.Conv3D(2, { 1, 2 }) end)
    refused("expected 5 {batch, depth, height, width, channels}", function() layers.Conv3D(2, 3)(flow.zeros { 1, 3, 4, 5 }) end)
    refused("a window of depth 4 does not fit", function() layers.MaxPooling3D(4)(volume) end)
    refused("is too small to cut off 4 planes", function() layers.Cropping3D(2)(volume) end)
    refused("6 channels cannot be divided into 4 groups", function() layers.GroupNormalization(4)(volume) end)
    refused("groups must be greater than 0", function() layers.GroupNormalization(0) end)
    refused("differ in size", function() layers.Dot { axes = 2 }({ flow.zeros { 2, 3 }, flow.zeros { 2, 4 } }) end)
    refused("is not one of input 1", function() layers.Dot { axes = 1 }({ flow.zeros { 2, 3 }, flow.zeros { 2, 3 } }) end)
    refused("axes has 3 entries", function() layers.Dot { axes = { 2, 2, 2 } } end)
    refused("cannot be normalized", function() layers.RMSNormalization { axis = 1 }(volume) end)
  end)

  it("train", function()
    local model = flow.Sequential { layers.Input { 4, 5, 6, 2 }, layers.Conv3D(3, 2, { activation = "tanh", padding = "same" }),
                                    layers.MaxPooling3D(), layers.GroupNormalization(1), layers.GlobalAveragePooling3D(),
                                    layers.RMSNormalization(), layers.Dense(1) }
    model:compile { optimizer = flow.optimizers.SGD(0.05), loss = "mse" }
    local x, y = flow.random.normal({ 8, 4, 5, 6, 2 }, { seed = 1 }), flow.random.normal({ 8, 1 }, { seed = 2 })
    local history = model:fit(x, y, { epochs = 5, verbose = 0 }).history.loss
    assert.is_true(history[5] < history[1])
  end)
end)

describe("a layer of several outputs", function()
  it("says the mask of each, as one list or as several values, eagerly and in a functional model", function()
    local numbers = flow.tensor({ { 1, 2, 3, 0 }, { 4, 0, 0, 0 } }, { dtype = "int32" })
    for _, joined in ipairs { true, false } do
      local Split = layers.Layer:extend "Split"
      function Split:call(x) return unpack(flow.split(x, 2, 2)) end
      function Split:compute_mask(_, mask)
        local parts = flow.split(mask, 2, 2)
        if joined then return parts end
        return unpack(parts)
      end
      local input = flow.Input({ 4 }, { dtype = "int32" })
      local embedding = layers.Embedding { input_dim = 5, output_dim = 3, mask_zero = true }
      local mean, split = layers.GlobalAveragePooling1D(), Split()
      local left, right = split(embedding(input))
      local model = flow.Model(input, { mean(left), mean(right) })
      local vectors = embedding(numbers)
      local first, second = split(vectors)
      assert.same({ { true, true }, { true, false } }, first._keras_mask:totable())
      assert.same({ { true, false }, { false, false } }, second._keras_mask:totable())
      local outputs = model(numbers)
      assert.same(vectors[{ 2, 1 }]:totable(), outputs[1][2]:totable())
      assert.same(vectors[{ 1, 3 }]:totable(), outputs[2][1]:totable())
      assert.same(model:predict(numbers, { verbose = 0 })[2][1]:totable(), outputs[2][1]:totable())
    end
  end)
end)
