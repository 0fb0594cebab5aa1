-- feed_spec.lua: fit, evaluate and predict over a Dataset: the same results as over tensors, and Keras' rules for numbers of steps.
local support = require "spec.support.init"
local flow = require "flow"
local layers, Dataset = flow.layers, flow.data.Dataset
local message_of = support.message_of

local x, y = flow.tensor { { 1 }, { 2 }, { 3 }, { 4 }, { 5 } }, flow.tensor { { 1 }, { 2 }, { 3 }, { 4 }, { 5 } }

local function linear(rate)
  local model = flow.Sequential { layers.Input { 1 }, layers.Dense(1, { use_bias = false, kernel_initializer = "zeros" }) }
  model:compile { optimizer = flow.optimizers.SGD(rate or 0), loss = "mse", metrics = { "mae" } }
  return model
end

local function warned(f)
  local parts = {}
  flow.log.sink = function(_, text) parts[#parts + 1] = text end
  local ok, problem = pcall(f)
  flow.log.sink = nil
  if not ok then error(problem, 0) end
  return table.concat(parts)
end

describe("fit over a Dataset", function()
  it("gives what fit over tensors gives, the partial last batch included", function()
    local ds = Dataset.from_tensor_slices { x, y }:batch(2)
    local a, b = linear(0.01), linear(0.01)
    local expected = a:fit(x, y, { batch_size = 2, epochs = 3, shuffle = false, verbose = 0, validation_data = { x, y } }).history
    local found = b:fit(ds, { epochs = 3, verbose = 0, validation_data = ds }).history
    assert.same(expected.loss, found.loss)
    assert.same(expected.mae, found.mae)
    assert.near(expected.val_loss[3], found.val_loss[3], 1e-5)
    assert.equal(9, b.optimizer.iterations)
    assert.same({ 11 }, linear():fit(ds:prefetch(1), { verbose = 0 }).history.loss)
    local weighted = Dataset.from_tensor_slices { x, y, flow.tensor { 1, 0, 0, 0, 0 } }:batch(5)
    assert.near(1 / 5, linear():fit(weighted, { verbose = 0 }).history.loss[1], 1e-6)
  end)

  it("weighs classes: as over tensors, for numbers, rows of one and one-hot rows", function()
    local by_class = { [5] = 3, [2] = 0.5, [-1] = 7 }
    local how = { epochs = 2, batch_size = 2, shuffle = false, verbose = 0, class_weight = by_class }
    local expected = linear(0.01):fit(x, y, how).history.loss
    local ds = Dataset.from_tensor_slices { x, y }:batch(2)
    local found = linear(0.01):fit(ds, { epochs = 2, verbose = 0, class_weight = by_class }).history.loss
    for i = 1, 2 do assert.near(expected[i], found[i], 1e-5) end
    assert.near(11 + 2 * 25 / 5, linear():fit(ds, { verbose = 0, class_weight = { [5] = 3 } }).history.loss[1], 1e-5)
    assert.same({ 11 }, linear():fit(ds, { verbose = 0, class_weight = {} }).history.loss)
    local counted = 6 / flow.bincount(flow.tensor({ 5, 5 }, { dtype = "int32" }))[-1]      -- 3, a tensor
    assert.near(11 + 2 * 25 / 5, linear():fit(ds, { verbose = 0, class_weight = { [5] = counted } }).history.loss[1], 1e-5)
    assert.near(11 + 2 * 25 / 5, linear():fit(x, y, { verbose = 0, class_weight = { [5] = counted } }).history.loss[1], 1e-5)

    local function classifier()
      local model = flow.Sequential { layers.Input { 1 }, layers.Dense(3, { activation = "softmax", kernel_initializer = "zeros" }) }
      model:compile { optimizer = flow.optimizers.SGD(0), loss = "categorical_crossentropy" }
      return model
    end
    local classes = flow.tensor { { 1, 0, 0 }, { 0, 1, 0 }, { 0, 0, 1 }, { 0, 1, 0 }, { 0, 1, 0 } }
    local rows = Dataset.from_tensor_slices { x, classes }:batch(5)
    local loss = classifier():fit(rows, { verbose = 0, class_weight = { [1] = 4, [2] = 0 } }).history.loss[1]
    assert.near(math.log(3) * (1 + 4 + 0 + 4 + 4) / 5, loss, 1e-5)

    local numbers = Dataset.from_tensor_slices { x, flow.tensor({ 0, 1, 2, 1, 1 }, { dtype = "int64" }) }:batch(5)
    local model = classifier()
    model:compile { optimizer = flow.optimizers.SGD(0), loss = "sparse_categorical_crossentropy" }
    assert.near(loss, model:fit(numbers, { verbose = 0, class_weight = { [1] = 4, [2] = 0 } }).history.loss[1], 1e-6)
  end)

  it("says why classes cannot be weighed", function()
    local ds, model = Dataset.from_tensor_slices { x, y }:batch(2), linear()
    local function text(data, weights) return message_of(function() model:fit(data, { verbose = 0, class_weight = weights }) end) end
    assert.truthy(text(ds, { a = 1 }):find("class_weight is a table { [label] = weight } of numbers", 1, true))
    assert.truthy(text(Dataset.from_tensor_slices { x, y, y }:batch(2), {}):find("class_weight and sample_weight cannot be given", 1, true))
    assert.truthy(text(Dataset.from_tensor_slices(x):batch(2), {}):find("class_weight works with one output, the dataset has 0", 1, true))
    local cubes = Dataset.from_tensor_slices { x, flow.ones { 5, 2, 2 } }:batch(2)
    assert.truthy(text(cubes, { 2 }):find("a label or a row of classes per sample", 1, true))
  end)

  it("goes on with steps_per_epoch, and warns when data runs out", function()
    local ds = Dataset.from_tensor_slices { x, y }:batch(1)
    local history
    local text = warned(function() history = linear():fit(ds, { steps_per_epoch = 2, epochs = 4, verbose = 0 }).history end)
    assert.same({ 2.5, 12.5, 25, 2.5 }, history.loss)
    assert.truthy(text:find("Your input ran out of data; interrupting training.", 1, true))
    assert.same({ 2.5, 12.5, 13, 6.5 }, linear():fit(ds:repeat_(), { steps_per_epoch = 2, epochs = 4, verbose = 0 }).history.loss)
    local how = { verbose = 0, validation_data = ds:repeat_(), validation_steps = 2 }
    assert.same({ 2.5 }, linear():fit(ds, how).history.val_loss)
  end)

  it("begins the data again after an epoch that took all batches of a known number, as Keras does", function()
    local function losses(ds, steps, epochs)
      local batches, history = {}, nil
      local count = flow.callbacks.LambdaCallback { on_train_batch_end = function(batch) batches[#batches + 1] = batch end }
      local text = warned(function()
        history = linear():fit(ds, { steps_per_epoch = steps, epochs = epochs, verbose = 0, callbacks = { count } }).history
      end)
      return table.concat(batches), history.loss, text ~= ""
    end
    local pairs_of_rows = Dataset.from_tensor_slices { x[{ { 1, 4 } }], y[{ { 1, 4 } }] }:batch(2)
    local first, second = 2.5, 12.5
    local function same(batches, expected, warns, steps)
      local ran, loss, has_warned = losses(pairs_of_rows, steps, #expected)
      assert.same({ batches, expected, warns }, { ran, loss, has_warned })
    end
    same("000", { first, second, first }, false, 1)
    same("010101", { 7.5, 7.5, 7.5 }, false, 2)
    same("0101", { 7.5, 7.5 }, true, 5)
  end)

  it("begins again with the epoch after the one that took the last batches, for any number of batches and steps", function()
    local Counter = flow.callbacks.Callback:extend("Counter")
    function Counter:on_epoch_begin() self.runs[#self.runs + 1] = 0 end
    function Counter:on_train_batch_end() self.runs[#self.runs] = self.runs[#self.runs] + 1 end
    local function check(rows, limit, is_known)
      local expected, left = {}, rows
      for epoch = 1, 5 do
        expected[epoch] = math.min(limit, left)
        left = left - expected[epoch]
        if left == 0 then left = rows end
      end
      local counter, ds = Counter(), Dataset.from_tensor_slices { x, y }:batch(1):take(rows)
      counter.runs = {}
      if not is_known then ds = ds:filter(function(a) return a:sum():gt(0) end) end
      local function fit() linear():fit(ds, { steps_per_epoch = limit, epochs = 5, verbose = 0, callbacks = { counter } }) end
      local text, title = warned(fit), ("%d batches, %d steps an epoch"):format(rows, limit)
      assert.same(expected, counter.runs, title)
      assert.equal(math.min(unpack(expected)) < limit, text ~= "", title)
    end
    for rows = 1, 5 do
      for limit = 1, 6 do
        check(rows, limit, true)
        check(rows, limit, false)
      end
    end
  end)

  it("has no results of no batches, where a loss of 0 would be the best of all", function()
    local none = Dataset.from_tensor_slices { x, y }:batch(2):take(0)
    assert.same({ loss = { 11 }, mae = { 3 } }, linear():fit(Dataset.from_tensor_slices { x, y }:batch(5),
      { verbose = 0, validation_data = none }).history)
    assert.same({}, linear():evaluate(none, { verbose = 0 }))
    assert.same({}, linear():evaluate(none, { verbose = 0, return_dict = false }))
    assert.same({}, linear():fit(none, { verbose = 0 }).history)
  end)

  it("learns the number of batches on the way", function()
    local ds = Dataset.from_generator(function()
      local i = 0
      return function()
        i = i + 1
        if i <= 5 then return { i }, { i } end
      end
    end):batch(2)
    assert.same({ 11, 11 }, linear():fit(ds, { epochs = 2, verbose = 0 }).history.loss)
    assert.near(11, linear():evaluate(ds, { verbose = 0 }).loss, 1e-6)
  end)

  it("names what does not go together", function()
    local ds, model = Dataset.from_tensor_slices { x, y }, linear()
    assert.truthy(message_of(function() model:fit(ds:batch(2), y) end):find("y is not given with a Dataset", 1, true))
    assert.truthy(message_of(function() model:fit(ds:batch(2), { batch_size = 3 }) end)
      :find("batch_size does not go with a Dataset: its elements are batches already, of the size that ds:batch(n) gave", 1, true))
    assert.truthy(message_of(function() model:fit(Dataset.range(3)) end):find("call batch() first", 1, true))
    assert.truthy(message_of(function() model:fit(Dataset.zip { ds, ds }:batch(2)) end):find("has 4 components", 1, true))
    assert.truthy(message_of(function() model:fit(Dataset.from_tensor_slices { "a" }) end):find("is text", 1, true))
  end)

  it("allocates nothing in Lua that grows with the number of batches", function()
    local model = linear()
    local ds = Dataset.from_tensor_slices { flow.ones { 4000, 1 }, flow.ones { 4000, 1 } }:batch(1)
    model:fit(ds, { verbose = 0 })
    collectgarbage()
    collectgarbage()
    collectgarbage("stop")
    local before = collectgarbage("count")
    model:fit(ds, { verbose = 0 })
    local grown = collectgarbage("count") - before
    collectgarbage("restart")
    assert.is_true(grown < 400, "grew by " .. grown .. " KB in 4000 batches")
  end)
end)

describe("evaluate and predict over a Dataset", function()
  it("run all batches, or as many as asked", function()
    local ds, model = Dataset.from_tensor_slices { x, y }:batch(2), linear()
    assert.equal(11, model:evaluate(ds, { verbose = 0 }).loss)
    assert.equal(2.5, model:evaluate(ds, { steps = 1, verbose = 0 }).loss)
    model:set_weights { { { 2 } } }
    assert.same({ { 2 }, { 4 }, { 6 }, { 8 }, { 10 } }, model:predict(ds, { verbose = 0 }):totable())
    assert.same({ { 2 }, { 4 } }, model:predict(ds, { steps = 1, verbose = 0 }):totable())
    assert.same({ { 2 }, { 4 }, { 6 } }, model:predict(Dataset.from_tensor_slices(x):batch(3), { steps = 1, verbose = 0 }):totable())
  end)
end)
