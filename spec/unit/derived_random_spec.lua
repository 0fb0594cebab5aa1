-- derived_spec.lua over random models, recurrent and stateful ones among them, which predict again and again while their weights are
-- written to in every way that a program has. Each prediction is compared, bit by bit, with that of a new model that is given the same
-- weights.
local support = require "spec.support.init"
local flow = require "flow"

local layers = flow.layers
local first_case, last_case = require "spec.support.case_numbers"(12)
local draw = require "spec.support.draw"

local RECURRENT = { "LSTM", "GRU", "SimpleRNN" }

-- Sequences {steps, features} of a batch of known or unknown size.
local function sequences(state, stateful)
  local steps, features = draw(state, 1, 6), draw(state, 1, 20)
  local input = flow.Input { steps, features, batch_size = stateful and 3 or nil }
  local x = input
  for _ = 1, draw(state, 1, 2) do
    local both = not stateful and draw(state, 0, 3) == 0
    local layer = layers[RECURRENT[draw(state, 1, 3)]](16 * draw(state, 1, 5) + draw(state, 0, 1), { return_sequences = true,
      stateful = stateful, go_backwards = not stateful and not both and draw(state, 0, 3) == 0 })
    x = both and layers.Bidirectional(layer)(x) or layer(x)
  end
  return flow.Model { inputs = input, outputs = layers.Dense(3)(x) }, { steps, features }
end

local function pictures(state)
  local size, channels = draw(state, 6, 14), draw(state, 1, 20)
  local input = flow.Input { size, size, channels }
  local x = input
  for _ = 1, draw(state, 1, 3) do
    local kind = draw(state, 1, 3)
    if kind == 1 then x = layers.BatchNormalization()(layers.Conv2D(draw(state, 1, 40), 3, { padding = "same" })(x))
    elseif kind == 2 then x = layers.DepthwiseConv2D(3, { padding = "same", activation = "relu" })(x)
    else x = layers.Conv2D(draw(state, 1, 70), 1, { activation = "relu" })(x) end
  end
  return flow.Model { inputs = input, outputs = layers.Dense(3)(layers.GlobalAveragePooling2D()(x)) }, { size, size, channels }
end

local function make(seed)
  local state = { number = seed * 7919 + 1 }
  local kind = draw(state, 1, 3)
  local model, shape
  if kind == 3 then model, shape = pictures(state) else model, shape = sequences(state, kind == 2) end
  return model, shape, kind == 2
end

local function new_values(v, state) return flow.random.normal(v.shape, { stddev = 0.3, seed = draw(state, 1, 1e6) }):abs() end

-- Ways to change a weight.
local WAYS = {
  function(model, v, state) v:assign(new_values(v, state)) end,
  function(model, v, state) v:assign_add(new_values(v, state)) end,
  function(model, v, state)      -- others than the library, which may do so at any time
    v:value():reshape({ -1 }):data()[0] = draw(state, 1, 9)
  end,
  function(model, v, state)
    local list = model:get_weights()
    for i, w in ipairs(list) do list[i] = new_values(w, state) end
    model:set_weights(list)
  end,
  function(model)
    local name = support.path(".weights.h5")
    model:save_weights(name)
    for _, v in ipairs(model.weights) do v:assign(v:value() * 0) end
    model:load_weights(name)
    os.remove(name)
  end,
  function(model, v, state, x)
    model:compile { optimizer = flow.optimizers.SGD(0.1), loss = "mse" }
    model:train_on_batch(x, model(x) * 0 + 1)
  end,
  function(_, v, state)
    local new = new_values(v, state)
    flow.fn(function(t) v:assign(t * 2) return t end)(new)
  end,
  function() end,
}

describe("plans that keep what follows from weights", function()
  it("follow every write", function()
    for seed = first_case, last_case do
      flow.set_random_seed(seed)
      local model, shape, stateful = make(seed)
      local state = { number = seed * 104729 + 7 }
      for step = 1, 12 do
        local x = flow.random.normal({ stateful and 3 or draw(state, 1, 9), unpack(shape) }, { seed = draw(state, 1, 1e6) })
        local way = draw(state, 1, #WAYS)
        WAYS[way](model, model.weights[draw(state, 1, #model.weights)], state, x)
        if stateful then model:reset_states() end
        local fresh = make(seed)
        fresh:set_weights(model:get_weights())
        for turn = 1, 2 do      -- of a stateful model the second one goes on
          local found, expected = model:predict_on_batch(x), fresh:predict_on_batch(x)
          if not flow.is_finite(expected):all():item() then      -- the weights have grown too large: NaN equals nothing
            assert.same(flow.is_finite(expected):totable(), flow.is_finite(found):totable())
            goto next_model
          end
          assert.are.equal(0, (found - expected):abs():max():item(), ("seed %d, step %d, way %d, turn %d"):format(seed, step, way, turn))
        end
      end
      ::next_model::
      model:close()
    end
  end)
end)
