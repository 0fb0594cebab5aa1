-- cached_attention_spec.lua: CachedMultiHeadAttention in programs that write texts: step by step it computes what MultiHeadAttention does
-- of the whole text. Values and gradients of single calls are compared with Keras in spec/golden/layers_spec.lua.
local support = require "spec.support.init"
local flow = require "flow"
local json = require "flow.json"
local model_files = require "spec.support.model_files"
local layers, message_of = flow.layers, support.message_of

local HEADS, SIZE, FEATURES, ROOM = 2, 4, 6, 7
local CAUSAL = { use_causal_mask = true }

local function normal(shape, seed) return flow.random.normal(shape, { seed = seed }) end
local function difference(a, b) return (a - b):abs():max():item() end
local function index(value) return flow.tensor(value, { dtype = "int32" }) end
local function empty(rows) return flow.zeros { rows, 2, ROOM, HEADS, SIZE } end

-- A layer, and what MultiHeadAttention with its weights makes of texts of ROOM steps.
local function layer_and_whole(x, options)
  local layer, whole = layers.CachedMultiHeadAttention(HEADS, SIZE, options), layers.MultiHeadAttention(HEADS, SIZE, options)
  local expected = whole(x, x, CAUSAL)
  layer:build { x.shape, x.shape }
  layer:set_weights(whole:get_weights())
  return layer, expected
end

local function step_of(layer)
  return function(x, cache, at)
    return unpack(layer(x, { cache = cache, cache_update_index = at, use_causal_mask = true }))
  end
end

describe("CachedMultiHeadAttention", function()
  it("computes step by step, after several at once, what MultiHeadAttention does of the whole text", function()
    for _, rows in ipairs { 1, 3 } do
      for _, options in ipairs { {}, { sliding_window = 3, use_gate = true, output_shape = { 5 } } } do
        local x = normal({ rows, ROOM, FEATURES }, rows)
        local layer, expected = layer_and_whole(x, options)
        assert.is_true(difference(expected, layer(x, x, CAUSAL)) < 1e-6)
        assert.is_true(difference(expected, layer(x, CAUSAL)) < 1e-6)      -- the value is the query where it is not given
        local traces, step = 0, step_of(layer)
        local traced = flow.fn(function(...)
          traces = traces + 1
          return step(...)
        end)
        for _, run in ipairs { step, traced } do
          local y, cache = run(x[{ {}, { 1, 3 } }], empty(rows), index(0))
          assert.is_true(difference(expected[{ {}, { 1, 3 } }], y) < 1e-5)
          for i = 4, ROOM do
            y, cache = run(x[{ {}, { i, i } }], cache, index(i - 1))
            assert.is_true(difference(expected[{ {}, { i, i } }], y) < 1e-5)
          end
          assert.same({ rows, 2, ROOM, HEADS, SIZE }, cache.shape)
        end
        assert.equal(2, traces)      -- of three steps and of one, at whatever place
      end
    end
  end)

  it("takes an index for each row, for texts of different lengths, as {batch} and {batch, 1}", function()
    local x = normal({ 3, ROOM, FEATURES }, 4)
    local layer, expected = layer_and_whole(x)
    local step = step_of(layer)
    local _, cache = step(x, empty(3), index(0))
    for _, run in ipairs { step, flow.fn(step) } do
      for _, shape in ipairs { { 3 }, { 3, 1 } } do
        for _, count in ipairs { 1, 2 } do      -- steps: row i has those from i on
          local parts, wanted = {}, {}
          for i = 1, 3 do
            parts[i] = x[{ { i, i }, { i + 1, i + count } }]
            wanted[i] = expected[{ { i, i }, { i + 1, i + count } }]
          end
          local y, next = run(flow.concat(parts, 1), cache, index { 1, 2, 3 }:reshape(shape))
          assert.is_true(difference(flow.concat(wanted, 1), y) < 1e-5)
          assert.is_true(difference(cache, next) < 1e-5)      -- what was there already
        end
      end
    end
  end)

  it("gives what the call asks for, the cache last", function()
    local x = normal({ 2, 3, FEATURES }, 5)
    local layer = layers.CachedMultiHeadAttention(HEADS, SIZE)
    local all = layer(x, { cache = empty(2), cache_update_index = 0, return_attention_scores = true })
    assert.same({ 3, { 2, HEADS, 3, ROOM }, { 2, 2, ROOM, HEADS, SIZE } }, { #all, all[2].shape, all[3].shape })
    local y, same = unpack(layer(normal({ 2, 1, FEATURES }, 6), { cache = all[3] }))      -- without an index the cache stays
    assert.same({ { 2, 1, FEATURES }, 0 }, { y.shape, difference(all[3], same) })
    assert.equal(2, #layer(x, { return_attention_scores = true }))
  end)

  it("says what does not fit, eagerly and in a trace", function()
    local layer = layers.CachedMultiHeadAttention(HEADS, SIZE, { name = "m" })
    local step = step_of(layer)
    local full = "cache_update_index 7 of row 1 is outside 0..6, where the steps of this call fit in the cache: make a longer one, or " ..
      "cut the text"
    local x = normal({ 1, 1, FEATURES }, 1)
    assert.equal('CachedMultiHeadAttention "m": ' .. full, message_of(function() step(x, empty(1), index(7)) end))
    local traced = flow.fn(step)
    traced(x, empty(1), index(6))
    assert.equal(full, message_of(function() traced(x, empty(1), index(7)) end))
    assert.matches("cache_update_index %-1 of row 1", message_of(function() traced(x, empty(1), index(-1)) end))
    local function refused(text, f) assert.matches(text, message_of(f), 1, true) end
    for _, run in ipairs { step, traced } do
      refused("a call has more steps than its cache: make a longer one, or cut the text", function()
        run(normal({ 1, 8, FEATURES }, 1), empty(1), index(0))
      end)
    end
    refused("has one step or more, and the cache less than 2^31, found 0 and 7", function()
      step(flow.zeros { 1, 0, FEATURES }, empty(1), index(0))
    end)
    refused("the cache has the shape {2, 2, 7, 2, 4}, expected {batch, 2, steps, 2, 4} with as many rows as the query", function()
      step(x, empty(2), index(0))
    end)
    refused("cache_update_index is given without a cache", function() step(x, nil, index(0)) end)
    refused("cache_update_index has the shape {2}, expected one number, or one for each row of the query", function()
      step(x, empty(1), index { 0, 1 })
    end)
    refused("found key_dim 4 and value_dim 3", function()
      step_of(layers.CachedMultiHeadAttention(HEADS, SIZE, { value_dim = 3 }))(x, empty(1), index(0))
    end)
    refused("a cache is for inputs {batch, steps, features}", function()
      step_of(layers.CachedMultiHeadAttention(HEADS, SIZE))(normal({ 1, 2, 2, FEATURES }, 1), empty(1), index(0))
    end)
  end)

  it("is a part of models with several inputs, which are saved and read, in Lua and in C", function()
    local x = normal({ 3, ROOM, FEATURES }, 7)
    local layer, expected = layer_and_whole(x)
    local input, cache = flow.Input { -1, FEATURES }, flow.Input { 2, ROOM, HEADS, SIZE }
    local at = flow.Input({ 1 }, { dtype = "int32" })
    local outputs = layer(input, input, { cache = cache, cache_update_index = at, use_causal_mask = true })
    local model = flow.Model { inputs = { input, cache, at }, outputs = outputs }
    assert.same({ { -1, -1, FEATURES }, { -1, 2, ROOM, HEADS, SIZE } }, model.output_shape)
    local held = empty(3)
    for i = 1, ROOM do
      local y
      y, held = unpack(model:predict({ x[{ {}, { i, i } }], held, flow.full({ 3, 1 }, i - 1, { dtype = "int32" }) }, { verbose = 0 }))
      assert.is_true(difference(expected[{ {}, { i, i } }], y) < 1e-5)
    end
    model_files.assert_returns(model, { x[{ {}, { 1, 2 } }], held, flow.full({ 3, 1 }, 3, { dtype = "int32" }) })
  end)

  it("takes any number of steps where an input does not say it, with an index that is a number, too", function()
    local input, cache = flow.Input { -1, FEATURES }, flow.Input { 2, ROOM, HEADS, SIZE }
    local layer = layers.CachedMultiHeadAttention(HEADS, SIZE)
    local y = layer(input, { cache = cache, cache_update_index = 1, use_causal_mask = true })[1]
    local model = flow.Model { inputs = { input, cache }, outputs = y }
    assert.same({ -1, -1, FEATURES }, model.output_shape)
    local x = normal({ 2, 6, FEATURES }, 1)
    local expected = layer(x, { cache = empty(2), cache_update_index = 1, use_causal_mask = true })[1]
    assert.is_true(difference(expected, model { x, empty(2) }) < 1e-6)
    assert.matches("has more steps than its cache", message_of(function() model { normal({ 2, 8, FEATURES }, 1), empty(2) } end))
    local whole = normal({ 2, 7, FEATURES }, 1)
    assert.matches("cache_update_index 1 of row 1 is outside 0..0", message_of(function() model { whole, empty(2) } end))
  end)

  it("has KerasHub's name in files", function()
    local input = flow.Input { 3, FEATURES }
    local model = flow.Model { inputs = input, outputs = layers.CachedMultiHeadAttention(HEADS, SIZE)(input, input) }
    local entry = json.decode(model:to_json()).config.layers[2]
    assert.same({ "CachedMultiHeadAttention", "keras_hub>CachedMultiHeadAttention",
                  "keras_hub.src.layers.modeling.cached_multi_head_attention" },
      { entry.class_name, entry.registered_name, entry.module })
    local clone = flow.models.clone_model(model)
    assert.equal("CachedMultiHeadAttention", clone.layers[2].class_name)
  end)

  it("keeps a cache in 16 bits where its policy says so, and computes with bytes", function()
    local x = normal({ 2, ROOM, FEATURES }, 8)
    local layer, expected = layer_and_whole(x)
    local half = layers.CachedMultiHeadAttention(HEADS, SIZE, { dtype = "mixed_bfloat16" })
    half:build { x.shape, x.shape }
    half:set_weights(layer:get_weights())
    layer:quantize()
    for _, one in ipairs { half, layer } do
      local step, cache = step_of(one), empty(2)
      for i = 1, ROOM do
        local y
        y, cache = step(x[{ {}, { i, i } }], cache, index(i - 1))
        assert.is_true(difference(expected[{ {}, { i, i } }], y:to "float32") < 0.1)
      end
      assert.equal(one == half and "bfloat16" or "float32", cache.dtype)
    end
  end)

  it("takes LoRA and a _compute_attention() of a class that extends it without a cache only", function()
    local x = normal({ 2, 3, FEATURES }, 9)
    local layer = layers.CachedMultiHeadAttention(HEADS, SIZE)
    local expected = layer(x, CAUSAL)
    layer.query_dense:enable_lora(2)
    assert.is_true(difference(expected, layer(x, CAUSAL)) < 1e-5)
    local Own = layers.CachedMultiHeadAttention:extend "Own"
    function Own:_compute_attention(query) return query * 0 end
    local own = Own { num_heads = HEADS, key_dim = SIZE }
    assert.equal(0, own(x, x):abs():max():item())
    for _, one in ipairs { layer, own } do
      local message = message_of(function() step_of(one)(x, empty(2), index(0)) end)
      assert.matches("a cache does not go with LoRA or with a script's _compute_attention()", message, 1, true)
    end
  end)
end)
