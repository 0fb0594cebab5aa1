-- named_data_spec.lua: models of several inputs and outputs: data by name, and sample weights for each output.
local support = require "spec.support.init"
local flow = require "flow"
local layers = flow.layers
local message_of = support.message_of

local ROWS = 10
local quiet = { verbose = 0 }
local a, b = flow.random.normal({ ROWS, 3 }, { seed = 1 }), flow.random.normal({ ROWS, 2 }, { seed = 2 })
local kind = flow.random.randint({ ROWS }, 0, 3, { seed = 3 })
local price = flow.random.normal({ ROWS, 1 }, { seed = 4 })
local first, second = flow.random.uniform({ ROWS }, { seed = 5 }), flow.random.uniform({ ROWS }, { seed = 6 })

local function new_model()
  flow.set_random_seed(1)
  local left, right = flow.Input({ 3 }, { name = "left" }), flow.Input({ 2 }, { name = "right" })
  local both = layers.Concatenate()({ left, right })
  local model = flow.Model { inputs = { left, right }, outputs = {
    layers.Dense(3, { name = "kind", activation = "softmax" })(both), layers.Dense(1, { name = "price" })(both) } }
  model:compile { optimizer = "sgd", loss = { kind = "sparse_categorical_crossentropy", price = "mse" },
                  loss_weights = { kind = 2, price = 0.5 }, weighted_metrics = { price = "mae" } }
  return model
end

describe("data by name", function()
  it("is that in order", function()
    local in_order, by_name = new_model(), new_model()
    local whole = { verbose = 0, shuffle = false }
    assert.same(in_order:fit({ a, b }, { kind, price }, whole).history,
      by_name:fit({ right = b, left = a }, { price = price, kind = kind }, whole).history)
    local x, y = { left = a, right = b }, { kind = kind, price = price }
    assert.same(in_order:evaluate({ a, b }, { kind, price }, quiet), in_order:evaluate(x, y, quiet))
    assert.same(in_order:predict({ a, b }, quiet)[2]:totable(), in_order:predict(x, quiet)[2]:totable())
    assert.same(in_order({ a, b })[1]:totable(), in_order(x)[1]:totable())
    assert.same(in_order:test_on_batch({ a, b }, { kind, price }), in_order:test_on_batch(x, y))
    local options = { epochs = 2, verbose = 0, validation_split = 0.3, shuffle = false }
    assert.same(in_order:fit({ a, b }, { kind, price }, options).history, by_name:fit(x, y, options).history)
    options = { verbose = 0, validation_data = { x, y, { kind = first } } }
    assert.truthy(in_order:fit(x, y, options).history.val_loss)
  end)

  it("goes through layers as through the model", function()
    local left, right = flow.Input { 3 }, flow.Input { 2 }
    local inner = new_model()
    local outer = flow.Model { inputs = { left, right }, outputs = inner({ right = right, left = left }) }
    assert.same(inner({ a, b })[2]:totable(), outer({ a, b })[2]:totable())
  end)

  it("names what is missing or unknown", function()
    local model = new_model()
    local y = { kind = kind, price = price }
    assert.equal('Functional "functional": x lacks "right"', (message_of(function() model:fit({ left = a }, y) end)
      :gsub("functional_%d+", "functional")))
    assert.truthy(message_of(function() model:predict { left = a, righ = b } end):find('x has "righ", which is not one of the inputs ' ..
      'left, right; did you mean "right"?', 1, true))
    assert.truthy(message_of(function() model:fit({ a, b }, { kind = kind }) end):find('y lacks "price"', 1, true))
    assert.truthy(message_of(function() model:fit({ a, b }, { kind, price }, { sample_weight = { cost = first } }) end)
      :find('sample_weight has "cost", which is not one of the outputs kind, price', 1, true))
    local plain = flow.Sequential { layers.Dense(1) }
    plain:compile { loss = "mse" }
    assert.truthy(message_of(function() plain:fit({ x = a }, price) end)
      :find("x is given by name, which needs a functional model", 1, true))
  end)
end)

describe("a table of inputs with more columns than the model has", function()
  local x = { left = a, right = b, ["0"] = flow.ones { ROWS, 2, 2 }, middle = { "a", "b", "c", "d", "e", "f", "g", "h", "i", "j" } }
  local y = { kind = kind, price = price }

  it("is read without them, which one warning tells for each", function()
    local expected = new_model():fit({ a, b }, { kind, price }, { verbose = 0, shuffle = false, batch_size = 4 }).history
    local model, found, of_dataset = new_model(), nil, nil
    local warnings = support.warnings(function()
      found = model:fit(x, y, { verbose = 0, shuffle = false, batch_size = 4 }).history
      assert.same(model:predict({ a, b }, quiet)[1]:totable(), model:predict(x, quiet)[1]:totable())
      assert.same(model({ a, b })[1]:totable(), model(x)[1]:totable())
    end)
    assert.same(expected, found)
    local name = model.name
    assert.equal(([[Functional %q: x has "0", which is not one of the inputs and is ignored
Functional %q: x has "middle", which is not one of the inputs and is ignored]]):format(name, name), warnings)
    support.warnings(function()
      of_dataset = new_model():fit(flow.data.Dataset.from_tensor_slices { x, y }:batch(4), quiet).history
    end)
    assert.same(expected, of_dataset)
  end)

  it("is an error where an input is missing", function()
    local model = new_model()
    local message = message_of(function() model:predict { left = a, righ = b, more = b } end)
    assert.truthy(message:find('x has "more", which is not one of the inputs', 1, true))
  end)
end)

describe("a model whose call() takes data by name", function()
  local rows, targets = { a = a, b = flow.random.normal({ ROWS, 1 }, { seed = 7 }) }, flow.ones { ROWS, 1 }
  local Pair = flow.Model:extend "PairByName"
  function Pair:init() self.dense = layers.Dense(1, { kernel_initializer = "ones" }) end
  function Pair:call(x) return self.dense(x.a) + x.b end
  local function compiled(model)
    model:compile { optimizer = flow.optimizers.SGD(0.1), loss = "mse" }
    return model
  end

  it("is given arrays as it is given batches of a Dataset", function()
    local of_arrays, of_batches = compiled(Pair()), compiled(Pair())
    local dataset = flow.data.Dataset.from_tensor_slices { rows, targets }:batch(4)
    local options = { batch_size = 4, epochs = 2, shuffle = false, verbose = 0, validation_data = { rows, targets } }
    local found = of_arrays:fit(rows, targets, options).history
    local expected = of_batches:fit(dataset, { epochs = 2, verbose = 0, validation_data = dataset }).history
    assert.same(expected.loss, found.loss)
    assert.near(expected.val_loss[2], found.val_loss[2], 1e-6)
    local p = of_arrays:predict(rows, { batch_size = 4, verbose = 0 })
    assert.near(0, (p - of_batches:predict(dataset, { verbose = 0 })):abs():max():item(), 1e-6)
    local loss = ((p - targets) ^ 2):mean():item()
    assert.near(loss, of_arrays:evaluate(rows, targets, { verbose = 0 }).loss, 1e-6)
    assert.near(loss, of_arrays:test_on_batch(rows, targets).loss, 1e-6)
    assert.near(loss, of_arrays:train_on_batch(rows, targets).loss, 1e-6)
    assert.same({ 10, 1 }, of_arrays:predict_on_batch(rows).shape)
    assert.equal(1, #of_arrays:fit(rows, targets, { validation_split = 0.3, verbose = 0 }).history.val_loss)
  end)

  it("is read from its file, which names the shapes, by flowlua", function()
    local model = compiled(Pair())
    model:fit(rows, targets, { verbose = 0 })
    local path = support.path "pair.keras"
    model:save(path)
    local again = flow.load_model(path, { custom_objects = { PairByName = Pair } })
    assert.near(0, (again:predict(rows, { verbose = 0 }) - model:predict(rows, { verbose = 0 })):abs():max():item(), 1e-6)
  end)

  it("gives it to a step of its own, in which a functional model has it by name, too", function()
    local Own, seen = flow.Model:extend "OwnByName", {}
    function Own:train_step(data)
      local x, y = unpack(data)
      seen[#seen + 1] = x.left ~= nil and x.right ~= nil and y ~= nil
      return flow.Model.train_step(self, data)
    end
    local left, right = flow.Input({ 3 }, { name = "left" }), flow.Input({ 1 }, { name = "right" })
    local model = compiled(Own { inputs = { left, right }, outputs = layers.Dense(1)(left) + right })
    local named = { left = rows.a, right = rows.b }
    model:fit(named, targets, { verbose = 0 })
    model:fit(flow.data.Dataset.from_tensor_slices { named, targets }:batch(5), { verbose = 0 })
    assert.is_true(#seen >= 2)
    for _, is_named in ipairs(seen) do assert.is_true(is_named) end
    assert.has_error(function() model:fit({ left = rows.a, righ = rows.b }, targets, { verbose = 0 }) end)
  end)
end)

describe("sample weights", function()
  local function expected(model, w1, w2)
    local p = model({ a, b })
    local one = flow.losses.SparseCategoricalCrossentropy()(kind, p[1], w1):item()
    local other = flow.losses.MeanSquaredError()(price, p[2], w2):item()
    local absolute = (p[2] - price):abs():squeeze(-1)
    return { kind_loss = one, price_loss = other, loss = 2 * one + 0.5 * other,
             price_mae = ((absolute * w2):sum() / w2:sum()):item() }
  end

  it("are of each output, by name or in order, or one for all", function()
    local model, ones = new_model(), flow.ones { ROWS }
    for _, case in ipairs { { { first, second }, first, second }, { { price = second }, ones, second }, { first, first, first },
                            { { price = second, kind = first }, first, second } } do
      local found = model:evaluate({ a, b }, { kind, price }, { sample_weight = case[1], batch_size = 4, verbose = 0 })
      for name, value in pairs(expected(model, case[2], case[3])) do assert.near(value, found[name], 1e-5, name) end
    end
    assert.truthy(message_of(function() model:fit({ a, b }, { kind, price }, { sample_weight = { first, second, first } }) end)
      :find("sample_weight has 3 entries for 2 outputs", 1, true))
  end)

  it("come with a data set, and train as those of arrays", function()
    local of_arrays, of_set = new_model(), new_model()
    local set = flow.data.Dataset.from_tensor_slices { a, b, kind, price, first, second }:batch(4)
    local history = of_arrays:fit({ a, b }, { kind, price }, { sample_weight = { first, second }, batch_size = 4, shuffle = false,
                                                              verbose = 0 })
    assert.same(history.history, of_set:fit(set, quiet).history)
  end)
end)
