-- predict over models with several outputs, batches of any size and any number of rows: what comes out is what single batches give.
local flow = require "flow"

local layers = flow.layers
local first_case, last_case = require "spec.support.case_numbers"(40)
local draw = require "spec.support.draw"

-- One to three outputs: of a layer, the input itself, whole numbers, and one with two axes.
local function a_model(state)
  local width = draw(state, 1, 20)
  local input = flow.Input { width }
  local hidden = layers.Dense(draw(state, 1, 40), { activation = "relu" })(input)
  local choices = {
    function() return layers.Dense(draw(state, 1, 17))(hidden) end,
    function() return input end,
    function() return flow.keras.ops.argmax(hidden, -1) end,
    function() return layers.Reshape { 1, width }(input) end,
  }
  local outputs = {}
  for i = 1, draw(state, 1, 3) do outputs[i] = choices[draw(state, 1, #choices)]() end
  return flow.Model { inputs = input, outputs = outputs }, width
end

local function list_of(results) return flow.is_tensor(results) and { results } or results end

describe("predict in batches", function()
  for case = first_case, last_case do
    it(("gives what single batches give, case %d"):format(case), function()
      local state = { number = 7919 * case + 1 }
      local model, width = a_model(state)
      local rows, size = draw(state, 1, 70), draw(state, 1, 40)
      local x = flow.random.normal { rows, width }
      local whole = list_of(model:predict(x, { batch_size = size, verbose = 0 }))
      for first = 1, rows, size do
        local last = math.min(first + size - 1, rows)
        for i, part in ipairs(list_of(model:predict_on_batch(x[{ { first, last } }]))) do
          assert.same(part:totable(), whole[i][{ { first, last } }]:totable())
        end
      end
      local steps = draw(state, 1, 4)
      local some = list_of(model:predict(x, { batch_size = size, steps = steps, verbose = 0 }))
      local counted = math.min(rows, steps * size)
      for i, part in ipairs(some) do assert.same(whole[i][{ { 1, counted } }]:totable(), part:totable()) end
    end)
  end

  it("draws random numbers for a row wherever it stands", function()
    local Noise = layers.GaussianNoise:extend "Noise"
    function Noise:call(inputs) return layers.GaussianNoise.call(self, inputs, { training = true }) end
    local x, seen = flow.zeros { 50, 6 }, nil
    for _, size in ipairs { 50, 1, 7, 16, 49 } do
      flow.set_random_seed(3)
      local noisy = flow.Sequential { layers.Input { 6 }, Noise(1) }
      local y = noisy:predict(x, { batch_size = size, verbose = 0 }):totable()
      seen = seen or y
      assert.same(seen, y)
    end
    assert.not_same(seen[1], seen[50])
  end)

  it("tells hooks every execution", function()
    local model = flow.Sequential { layers.Input { 3 }, layers.Dense(2) }
    model:compile { loss = "mse", steps_per_execution = 3 }
    local begun, x = {}, flow.random.normal { 20, 3 }
    local watch = flow.callbacks.LambdaCallback { on_predict_batch_begin = function(batch) begun[#begun + 1] = batch end }
    local y = model:predict(x, { batch_size = 2, verbose = 0, callbacks = { watch } })
    assert.same({ 0, 3, 6, 9 }, begun)
    assert.same(model:predict_on_batch(x):totable(), y:totable())
  end)
end)
