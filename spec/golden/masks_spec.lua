--- Masks as they travel in Keras: the models of masks.py, built here, eagerly, traced, in training, and written and read back.
local flow = require "flow"
local golden = require "spec.support.golden"
local model_files = require "spec.support.model_files"
local cases = require "spec.golden.masks"

local layers = flow.layers
local T, WORDS, SIZE = 6, 7, 5

local function words(ids) return layers.Embedding(WORDS, SIZE, { mask_zero = true })(ids) end
local function steps(x) return layers.Dense(SIZE)(layers.Masking(0.5)(x)) end
local function pooled(x) return layers.GlobalAveragePooling1D()(x) end
local function attention() return layers.MultiHeadAttention(2, 3) end

local Twice = layers.Layer:extend("Twice")
function Twice:init() self.supports_masking = true end
function Twice:call(x, options)
  if not options.mask then return x * 2 end
  return x * 2 * options.mask:expand_dims(-1):to(x.dtype)
end

local MODELS = {
  ["pooled"] = function(ids) return pooled(words(ids)) end,
  ["masking, pooled"] = function(_, x) return pooled(steps(x)) end,
  ["through many layers"] = function(ids)
    return pooled(layers.Dropout(0.3)(layers.ReLU()(layers.LayerNormalization()(layers.Activation("tanh")(words(ids))))))
  end,
  ["ended"] = function(ids) return pooled(layers.Conv1D(3, 2, { padding = "same" })(words(ids))) end,
  ["batch normalization"] = function(ids) return pooled(layers.BatchNormalization { momentum = 0.5 }(words(ids))) end,
  ["add"] = function(ids, x) return pooled(layers.Add()({ words(ids), steps(x) })) end,
  ["add, one without"] = function(ids, x) return pooled(layers.Add()({ words(ids), layers.Dense(SIZE)(x) })) end,
  ["multiply"] = function(ids, x) return pooled(layers.Multiply()({ words(ids), steps(x) })) end,
  ["multiply, one without"] = function(ids, x) return pooled(layers.Multiply()({ words(ids), layers.Dense(SIZE)(x) })) end,
  ["maximum"] = function(ids, x) return pooled(layers.Maximum()({ words(ids), steps(x) })) end,
  ["minimum"] = function(ids, x) return pooled(layers.Minimum()({ steps(x), words(ids) })) end,
  ["minimum, one without"] = function(ids, x) return pooled(layers.Minimum()({ layers.Dense(SIZE)(x), words(ids) })) end,
  ["concatenate"] = function(ids, x) return pooled(layers.Concatenate()({ words(ids), steps(x) })) end,
  ["concatenate, one without"] = function(ids, x) return pooled(layers.Concatenate()({ words(ids), x })) end,
  ["concatenate, along the steps"] = function(ids, x) return pooled(layers.Concatenate { axis = 2 }({ words(ids), steps(x) })) end,
  ["attention of itself"] = function(ids) return pooled(attention()(words(ids), words(ids))) end,
  ["attention of another"] = function(ids, x) return pooled(attention()(steps(x), words(ids), { use_causal_mask = true })) end,
  ["an encoder"] = function(ids)
    local h = words(ids)
    return pooled(layers.LayerNormalization()(h + attention()(h, h)))
  end,
  ["attention, then add"] = function(ids)
    local h = words(ids)
    return pooled(layers.Add()({ h, attention()(h, h) }))
  end,
  ["group query attention"] = function(ids, x) return pooled(layers.GroupQueryAttention(2, 4, 2)(words(ids), steps(x))) end,
  ["dot attention"] = function(ids, x) return pooled(layers.Attention()({ words(ids), steps(x) })) end,
  ["additive attention"] = function(ids, x) return pooled(layers.AdditiveAttention()({ steps(x), words(ids) })) end,
  ["nested"] = function(ids)
    local inner = layers.Input { T, SIZE }
    return pooled(flow.Model { inputs = inner, outputs = layers.Dense(SIZE, { activation = "relu" })(inner) }(words(ids)))
  end,
  ["shared"] = function(ids, x)
    local dense = layers.Dense(SIZE)
    return layers.Concatenate()({ pooled(dense(words(ids))), pooled(dense(steps(x))) })
  end,
  ["recurrent layers"] = function(ids) return layers.LSTM(4)(layers.GRU(SIZE, { return_sequences = true })(words(ids))) end,
  ["recurrent, backwards"] = function(_, x)
    local back = layers.LSTM(SIZE, { return_sequences = true, go_backwards = true })
    return pooled(layers.SimpleRNN(3, { return_sequences = true })(back(steps(x))))
  end,
  ["recurrent, with a state"] = function(ids, x)
    local encoded = layers.LSTM(SIZE, { return_state = true })(words(ids))
    local decoder = layers.LSTM(SIZE, { return_sequences = true })
    return pooled(decoder(steps(x), { initial_state = { encoded[2], encoded[3] } }))
  end,
  ["dot"] = function(ids, x) return pooled(layers.Dot(3)({ words(ids), steps(x) })) end,
  ["own layer"] = function(ids) return pooled(Twice()(words(ids))) end,
  ["given"] = function(ids, x)
    local mask = layers.Embedding(WORDS, SIZE, { mask_zero = true }):compute_mask(ids)
    return layers.Dense(2)(layers.GlobalAveragePooling1D()(x, { mask = mask }))
  end,
  ["every step"] = function(ids) return layers.Dense(3)(words(ids)) end,
  ["every step, of Masking"] = function(_, x) return layers.Dense(3)(steps(x)) end,
}

-- The inputs of a case with what is left out in them, as masks.py does it.
local function inputs_of(case)
  local ids, x = golden.make(case.ids), golden.make(case.x)
  ids[{ 1, { 3, -1 } }], ids[{ 2, 1 }] = 0, 0
  x[{ 1, { 4, -1 } }], x[{ 3, 2 }] = 0.5, 0.5
  return ids, x
end

local function model_of(case)
  local ids, x = layers.Input({ T }, { dtype = "int32" }), layers.Input { T, 3 }
  local model = flow.Model { inputs = { ids, x }, outputs = MODELS[case.name](ids, x) }
  model:set_weights(golden.make_all(case.weights))
  return model
end

local function assert_near(expected, found, what, tolerance)
  local difference = (flow.tensor(expected) - found:reshape { -1 }):abs():max():item()
  assert.is_true(difference <= (tolerance or 1e-5), ("%s: differs by %g"):format(what, difference))
end

describe("masks as in Keras:", function()
  for _, case in ipairs(cases) do
    it(case.name, function()
      local model, ids, x = model_of(case), inputs_of(case)
      assert_near(case.prediction, model({ ids, x }), "eager")
      assert_near(case.prediction, model:predict({ ids, x }, { verbose = 0 }), "traced")
      local y, weights = golden.make(case.targets), golden.make(case.sample_weights)
      model:compile { optimizer = flow.optimizers.SGD(0.1), loss = "mse", metrics = { "mae" }, weighted_metrics = { "mse" } }
      for name, options in pairs { evaluated = {}, weighted = { sample_weight = weights } } do
        options.verbose = 0
        local found = model:evaluate({ ids, x }, y, options)
        for metric, expected in pairs(case[name]) do
          assert.is_true(math.abs(found[metric] - expected) <= 1e-5 * math.max(1, math.abs(expected)),
            ("%s, %s: %.8g, expected %.8g"):format(name, metric, found[metric], expected))
        end
      end
      for step, expected in ipairs(case.fitted) do
        local found = model:train_on_batch({ ids, x }, y, { sample_weight = weights }).loss
        assert.is_true(math.abs(found - expected) <= 1e-4 * math.max(1, math.abs(expected)),
          ("step %d: loss %.8g, expected %.8g"):format(step, found, expected))
      end
    end)
    it(case.name .. ", after it was written and read back", function()
      local own = case.name == "own layer"
      model_files.assert_returns(model_of(case), { inputs_of(case) }, { custom_objects = { Twice = Twice }, in_c = not own })
    end)
  end
end)
