-- endless_spec.lua: data that repeats without end is refused at once if no number of batches is given, whatever stages it went
-- through, and taken where somebody does.
local support = require "spec.support.init"
local flow = require "flow"
local layers, Dataset = flow.layers, flow.data.Dataset

local x, y = flow.ones { 6, 1 }, flow.ones { 6, 1 }

local function model_of()
  local model = flow.Sequential { layers.Input { 1 }, layers.Dense(1) }
  model:compile { optimizer = "sgd", loss = "mse" }
  return model
end

local function pairs_of(...)
  return Dataset.from_tensor_slices { x, y }:repeat_(...)
end

-- Each gives an endless data set of batches.
local endless = {
  ["repeat_ before batch"] = function() return pairs_of():batch(4) end,
  ["repeat_ at the end"] = function() return pairs_of(1):batch(4):repeat_() end,
  ["shuffled and prefetched"] = function() return pairs_of():shuffle(6):batch(2):prefetch(1) end,
  ["mapped"] = function() return pairs_of():batch(2):map(function(a, b) return a, b end) end,
  ["filtered"] = function() return pairs_of():batch(2):filter(function(a) return a:sum():gt(0) end) end,
  ["unbatched"] = function() return pairs_of(1):batch(4):repeat_():unbatch():batch(2) end,
  ["made of others by flat_map"] = function()
    return Dataset.range(3):repeat_():flat_map(function() return Dataset.from_tensors { x, y } end)
  end,
  ["made by flat_map of others without end"] = function()
    return Dataset.range(3):flat_map(function() return pairs_of():batch(2) end):prefetch(1)
  end,
  ["made by interleave of others without end"] = function()
    return Dataset.range(3):interleave(function() return pairs_of():batch(2) end, { cycle_length = 2 })
  end,
  ["made by flat_map of others without end, of sizes that vary"] = function()
    return Dataset.range(3):flat_map(function(i) return pairs_of():batch(i:item() + 1) end):map(function(a, b) return a, b end)
  end,
  ["made of others by interleave"] = function()
    return Dataset.range(3):repeat_():interleave(function() return Dataset.from_tensors { x, y } end)
  end,
  ["drawn from several"] = function()
    return Dataset.sample_from_datasets { pairs_of():batch(2), pairs_of(1):batch(2) }
  end,
  ["chosen from several"] = function()
    local order = Dataset.range(2):repeat_()
    return Dataset.choose_from_datasets({ pairs_of():batch(2), pairs_of():batch(2) }, order)
  end,
  ["skipped"] = function() return pairs_of():skip(3):batch(2) end,
  ["joined to a finite one"] = function() return pairs_of(1):batch(2):concatenate(pairs_of():batch(2)) end,
  ["of a generator"] = function()
    return Dataset.from_generator(function()
      local i = 0
      return function()
        i = i + 1
        if i <= 3 then return flow.ones { 2, 1 }, flow.ones { 2, 1 } end
      end
    end, { output_signature = { { shape = { -1, 1 }, dtype = "float32" }, { shape = { -1, 1 }, dtype = "float32" } } }):repeat_()
  end,
  ["distributed"] = function()
    return flow.distribute.MirroredStrategy({ devices = { "cpu:0" } }):experimental_distribute_dataset(pairs_of():batch(4))
  end,
  ["distributed from a function"] = function()
    local strategy = flow.distribute.MirroredStrategy { devices = { "cpu:0" } }
    return strategy:distribute_datasets_from_function(function() return pairs_of():batch(4) end)
  end,
}

describe("endless data", function()
  for name, make in pairs(endless) do
    it("is refused without a number of batches: " .. name, function()
      local model = model_of()
      for _, case in ipairs {
        { "fit: the dataset repeats without end: give steps_per_epoch", function() model:fit(make(), { verbose = 0 }) end },
        { "evaluate: the dataset repeats without end: give steps", function() model:evaluate(make(), { verbose = 0 }) end },
        { "predict: the dataset repeats without end: give steps", function() model:predict(make(), { verbose = 0 }) end },
        { "validation_data: the dataset repeats without end: give validation_steps",
          function() model:fit(x, y, { validation_data = make(), verbose = 0 }) end },
        { "validation_data: the dataset repeats without end: give validation_steps",
          function() model:fit(make(), { steps_per_epoch = 2, validation_data = make(), verbose = 0 }) end },
      } do
        local message = support.message_of(case[2])
        assert.equal(case[1], message:sub(1, #case[1]))
      end
      assert.equal(0, model.optimizer.iterations)
    end)

    it("is taken with one: " .. name, function()
      local model = model_of()
      model:fit(make(), { steps_per_epoch = 5, verbose = 0, validation_data = make(), validation_steps = 2 })
      assert.equal(5, model.optimizer.iterations)
      model:evaluate(make(), { steps = 2, verbose = 0 })
      model:predict(make(), { steps = 2, verbose = 0 })
    end)
  end

  it("is not what a data set of unknown length is", function()
    local model = model_of()
    model:fit(pairs_of(1):filter(function(a) return a:sum():gt(0) end):batch(2), { verbose = 0 })
    assert.equal(3, model.optimizer.iterations)
    model:fit(pairs_of():take(4):batch(2), { verbose = 0 })
    assert.equal(5, model.optimizer.iterations)
  end)
end)
