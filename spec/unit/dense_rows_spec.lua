-- Dense layers over sequences and pictures go with a chunk of rows through the ops around them, if a row of the batch has many rows of the
-- matrix and weights are few: what comes out does not depend on chunks, threads and the batch, and is what single ops compute.
local flow = require "flow"
local steps = require "flow.train.steps"

local layers = flow.layers
local first_case, last_case = require "spec.support.case_numbers"(12)
local draw = require "spec.support.draw"

-- Around the limits of 48 rows and 2^18 weights.
local function a_model(state)
  local rows, width = draw(state, 40, 90), draw(state, 1, 60)
  local input = flow.Input { rows, width }
  local x = input
  for _ = 1, draw(state, 1, 3) do
    x = layers.Dense(draw(state, 1, 3) == 1 and draw(state, 500, 700) or draw(state, 1, 80),
      { activation = ({ "relu", "gelu", "linear" })[draw(state, 1, 3)], use_bias = draw(state, 0, 3) > 0 })(x)
    if draw(state, 0, 1) == 1 then x = layers.LayerNormalization()(x) end
  end
  return flow.Model { inputs = input, outputs = x }, rows, width
end

local function with_threads(threads, f)
  local before = flow.config.get_threads()
  flow.config.set_threads(threads)
  local ok, result = pcall(f)
  flow.config.set_threads(before)
  return ok and result or error(result, 0)
end

describe("Dense layers over many rows of a matrix", function()
  for case = first_case, last_case do
    it(("give the same bits in any batch on any number of threads, case %d"):format(case), function()
      local state = { number = 104729 * case + 3 }
      local model, rows, width = a_model(state)
      local count = draw(state, 2, 11)
      local x = flow.random.normal { count, rows, width }
      local whole = model:predict(x, { batch_size = count, verbose = 0 })
      for threads = 1, 3 do
        local size = draw(state, 1, count)
        local y = with_threads(threads, function() return model:predict(x, { batch_size = size, verbose = 0 }) end)
        if threads == 1 or size == count then assert.same(whole:totable(), y:totable()) end
        assert.is_true(flow.keras.ops.max(flow.keras.ops.abs(y - whole)):item() < 1e-4)
      end
      local eager = model(x)      -- op by op
      assert.is_true(flow.keras.ops.max(flow.keras.ops.abs(eager - whole)):item() < 1e-4)
    end)
  end

  it("are in one segment with what is around them, those of few rows are not", function()
    local function segment_of(rows)
      local model = flow.Sequential { layers.Input { rows, 8 }, layers.LayerNormalization(), layers.Dense(9), layers.LayerNormalization() }
      local x = flow.random.normal { 4, rows, 8 }
      for _ = 1, 2 do model:predict_on_batch(x) end
      return steps.describe(steps.again(model, x)):match "(%a+) +dense"
    end
    assert.equal("rows", segment_of(48))
    assert.equal("whole", segment_of(47))
  end)
end)
