-- lora_spec.lua: attentions whose projections have LoRA compute, train and are written as by Keras (lora.py).
local support = require "spec.support.init"
local flow = require "flow"
local json = require "flow.json"

local golden = json.decode(flow.io.read_file "spec/golden/lora.json")
local function largest(a, b) return (a - b):abs():max():item() end

-- The same numbers as in lora.py.
local function numbers(shape, start)
  local count, list = 1, {}
  for _, size in ipairs(shape) do count = count * size end
  for i = 1, count do list[i] = (i - 1 + start) * 7 % 11 / 8 - 0.6 end
  return flow.tensor(list):reshape(shape)
end

-- The layer of a case, after a call, with its changes; with_values: and the case's weights.
local function make(case, with_values)
  local layer, x = flow.layers[case.class](case.arguments), numbers({ 2, 3, 4 }, 1)
  layer(x, x)
  for _, part in ipairs { "query", "key", "value", "output" } do
    local ranks = case.ranks[part]
    local alpha = ranks and ranks[2] ~= json.null and ranks[2] or nil
    if ranks then layer["_" .. part .. "_dense"]:enable_lora(ranks[1], alpha) end
  end
  for i, v in ipairs(with_values and layer.weights or {}) do v:assign(numbers(v.shape, i - 1)) end
  return layer, x
end

-- A model of one call of it, with the case's options.
local function model_of(case, layer)
  local input = flow.Input { 3, 4 }
  return flow.Model { inputs = input, outputs = layer(input, input, case.options) }
end

describe("LoRA of an attention's projections", function()
  for number, case in ipairs(golden.cases) do
    local title = ("%s %d"):format(case.class, number)

    it("computes and differentiates as in Keras: " .. title, function()
      local layer, x = make(case, true)
      local paths = {}
      for i, v in ipairs(layer.weights) do paths[i] = v.path:match "/(.*)" end
      assert.same(case.weights, paths)
      local tape, y = flow.GradientTape(), nil
      local loss = tape:record(function()
        y = layer(x, x, case.options)
        local total = (y * y):mean()
        for _, one in ipairs(layer.losses) do total = total + one end
        return total
      end)
      assert.near(0, largest(y:reshape { -1 }, flow.tensor(case.output)), 1e-5)
      assert.near(case.loss, loss:item(), 1e-5)
      local gradients = tape:gradient(loss, layer.trainable_variables)
      assert.equal(#case.gradients, #gradients)
      for i, g in ipairs(gradients) do
        assert.near(0, largest(g:reshape { -1 }, flow.tensor(case.gradients[i])), 1e-5, layer.trainable_variables[i].path)
      end
    end)

    it("trains the factors alone, and has them in the kernels of files: " .. title, function()
      local layer, x = make(case, true)
      local model = model_of(case, layer)
      local kernel, before = layer.weights[1]:value(), model:predict(x, { verbose = 0 })
      local path = support.folder() .. "/lora.keras"
      model:save(path)
      assert.near(0, largest(before, flow.load_model(path):predict(x, { verbose = 0 })), 1e-5)
      model:save_weights(path .. ".weights.h5")
      local again = model_of(case, (make(case)))
      again:load_weights(path .. ".weights.h5")      -- the change is in the kernels, and the factors begin with zero
      assert.near(0, largest(before, again:predict(x, { verbose = 0 })), 1e-5)
      model:compile { optimizer = flow.optimizers.Adam(0.05), loss = "mse" }
      local losses = model:fit(x, before * 0.5, { epochs = 10, verbose = 0 }).history.loss
      assert.is_true(losses[10] < losses[1])
      assert.equal(case.ranks.query and 0 or nil, case.ranks.query and largest(kernel, layer.weights[1]) or nil)
    end)
  end

  it("says what is in its way", function()
    local x = flow.ones { 1, 2, 4 }
    local layer = flow.layers.MultiHeadAttention(2, 2)
    layer(x, x)
    layer.query_dense:enable_lora(1)
    assert.equal(1, layer.query_dense.lora_rank)
    assert.is_false(layer.key_dense.lora_enabled)
    assert.matches("enabled already for its query", support.message_of(function() layer.query_dense:enable_lora(1) end), 1, true)
    local bound = flow.layers.MultiHeadAttention(2, 2, { kernel_constraint = "non_neg" })
    bound(x, x)
    assert.matches("does not go with a constraint", support.message_of(function() bound.query_dense:enable_lora(1) end), 1, true)
    local wide = flow.layers.MultiHeadAttention(2, 2)
    wide(flow.ones { 1, 2, 2, 4 }, flow.ones { 1, 2, 2, 4 })
    assert.matches("inputs {batch, steps, features}", support.message_of(function() wide.query_dense:enable_lora(1) end), 1, true)
  end)
end)
