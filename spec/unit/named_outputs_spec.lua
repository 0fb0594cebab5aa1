-- named_outputs_spec.lua: models made of tables by name: their data, results, losses and files go by these names, whatever the layers are
-- called; models of more inputs than an op has operands; what a file says of a call's training.
local support = require "spec.support.init"
local flow = require "flow"
local layers = flow.layers

local function make()
  local a, b = flow.Input { 3 }, flow.Input { 2 }
  local h = layers.Dense(4)(layers.Concatenate()({ a, b }))
  local kind = layers.Dense(3, { activation = "softmax", name = "some_layer" })(h)
  return flow.Model { inputs = { left = a, right = b }, outputs = { kind = kind, price = layers.Dense(1)(h) } }
end

local x = { left = flow.random.normal({ 8, 3 }, { seed = 1 }), right = flow.random.normal({ 8, 2 }, { seed = 2 }) }
local y = { kind = flow.zeros({ 8 }, { dtype = "int32" }), price = flow.ones { 8, 1 } }

local function keys(t)
  local list = {}
  for key in pairs(t) do list[#list + 1] = key end
  table.sort(list)
  return table.concat(list, " ")
end

local function assert_same(expected, found)
  assert.equal(keys(expected), keys(found))
  for name, value in pairs(expected) do assert.is_true((value - found[name]):abs():max():item() < 1e-6, name) end
end

describe("a model made of tables by name", function()
  it("gives its outputs by their names, called or in predict", function()
    local model = make()
    local result = model(x)
    assert.equal("kind price", keys(result))
    assert.same({ 8, 3 }, result.kind.shape)
    assert_same(result, model:predict(x, { verbose = 0 }))
    assert_same(result, model:predict(x, { verbose = 0, batch_size = 3 }))
    assert_same(result, model:predict_on_batch(x))
    assert_same(result, model:predict(flow.data.Dataset.from_tensor_slices(x):batch(4), { verbose = 0 }))
    assert.equal("kind price", keys(model.output))
    assert.equal("left right", keys(model.input))
    assert.equal(2, #model.outputs)
  end)

  it("is compiled, trained and evaluated by them, as in Keras", function()
    local model = make()
    model:compile { optimizer = "sgd", loss = { kind = "sparse_categorical_crossentropy", price = "mse" }, loss_weights = { kind = 0.5 },
      metrics = { kind = { "accuracy" }, price = "mae" } }
    local history = model:fit(x, y, { epochs = 3, verbose = 0 }).history
    assert.equal("kind_accuracy kind_loss loss price_loss price_mae", keys(history))
    assert.is_true(history.loss[3] < history.loss[1])
    local logs = model:evaluate(x, y, { verbose = 0 })
    assert.is_true(math.abs(logs.loss - 0.5 * logs.kind_loss - logs.price_loss) < 1e-5)
    local batches = flow.data.Dataset.from_tensor_slices({ x, y }):batch(8)
    assert.is_true(math.abs(model:evaluate(batches, { verbose = 0 }).loss - logs.loss) < 1e-5)
    assert.is_true(math.abs(model:train_on_batch(x, y).loss - logs.loss) < 1e-5)
    assert.truthy(support.message_of(function() model:compile { loss = { prise = "mse" } } end)
      :find('loss names the output "prise", which it does not have; did you mean "price"?', 1, true))
    assert.truthy(support.message_of(function() model { left = x.left } end):find('lacks "right"', 1, true))
  end)

  it("takes them by position, too", function()
    local a, b = flow.Input { 2 }, flow.Input { 2 }
    local sum, one = layers.Add()({ a, b }), flow.ones { 3, 2 }
    local model = flow.Model({ a = a, b = b }, { k = layers.Dense(1)(sum), j = layers.Dense(2)(sum) }, { name = "both" })
    assert.equal("both", model.name)
    assert.same({ 3, 2 }, { unpack(model({ a = one, b = one }).j.shape) })
    local Own = flow.Model:extend "Own"
    function Own:init(units)
      local input = flow.Input { 2 }
      flow.Model.init(self, input, { k = layers.Dense(units)(input) })
    end
    assert.same({ 3, 4 }, { unpack(Own(4)(one).k.shape) })
    assert.same({ 3, 1 }, { unpack(flow.Model:extend "Plain" (a, { k = layers.Dense(1)(a) })(one).k.shape) })
    local ok, problem = pcall(flow.Model, a, { k = 3 })
    assert.is_false(ok)
    assert.matches('unknown option "k"', problem, 1, true)
  end)

  it("may have its own steps that use them", function()
    local Named = flow.Model:extend "Named"
    function Named:train_step(data)
      local tape = flow.GradientTape()
      local loss = tape:record(function()
        local found = self(data[1], { training = true })
        return self:compute_loss(data[1], data[2], found) + found.price:square():mean()
      end)
      self.optimizer:apply_gradients(tape:gradient(loss, self.trainable_weights), self.trainable_weights)
      return { loss = loss }
    end
    local plain = make()
    local model = Named { inputs = plain.input, outputs = plain.output }
    model:compile { optimizer = "sgd", loss = { kind = "sparse_categorical_crossentropy", price = "mse" } }
    assert.equal(2, #model:fit(x, y, { epochs = 2, verbose = 0 }).history.loss)
  end)

  it("is a layer of other models, and comes back from files", function()
    local model = make()
    local a, b = flow.Input { 3 }, flow.Input { 2 }
    local found = model { left = a, right = b }
    local outer = flow.Model { inputs = { a, b }, outputs = { both = layers.Concatenate()({ found.kind, found.price }) } }
    local path = support.file("named.keras", "")
    for _, one in ipairs { { model, x }, { outer, { x.left, x.right } } } do
      one[1]:save(path)
      local again = flow.load_model(path)
      assert_same(one[1](one[2]), again(one[2]))
      assert_same(one[1](one[2]), flow.models.clone_model(again, nil) and again:predict(one[2], { verbose = 0 }))
      assert.equal(one[1]:to_json(), again:to_json())
    end
  end)
end)

describe("a model of many inputs", function()
  it("trains and predicts with more of them than an op has operands", function()
    local inputs, data = {}, {}
    for i = 1, 40 do inputs[i], data[i] = flow.Input { 2 }, flow.full({ 8, 2 }, i) end
    local sum = layers.Add()(inputs)
    local model = flow.Model { inputs = inputs, outputs = sum }
    assert.equal(820, model:predict(data, { verbose = 0 })[1][1]:item())
    assert.equal(820, model:predict_on_batch(data)[8][2]:item())
    local joined = flow.Model { inputs = inputs, outputs = layers.Dense(1)(layers.Concatenate()(inputs)) }
    joined:compile { loss = "mse" }
    assert.equal(2, #joined:fit(data, flow.ones { 8, 1 }, { epochs = 2, verbose = 0 }).history.loss)
    assert.is_true(joined:train_on_batch(data, flow.ones { 8, 1 }).loss >= 0)
    for i = 41, 150 do inputs[i], data[i] = flow.Input { 2 }, flow.full({ 8, 2 }, i) end
    assert.equal(11325, flow.Model { inputs = inputs, outputs = layers.Add()(inputs) }:predict(data, { verbose = 0 })[8][2]:item())
  end)
end)

describe("training of a call in a file", function()
  local ones = flow.ones { 1, 400 }
  local function drops(model) return model(ones, { training = true }):min():item() == 0 end

  it("is not what Keras writes there for every call, as fit and predict overrule it", function()
    local input = flow.Input { 400 }
    local text = flow.Model({ inputs = input, outputs = layers.Dropout(0.5)(input) }):to_json()
    for _, value in ipairs { "true", "false" } do
      local changed, count = text:gsub('"kwargs":%s*{}', '"kwargs": {"training": ' .. value .. '}')
      assert.equal(1, count)
      local model = flow.models.model_from_json(changed)
      assert.is_true(drops(model))
      assert.equal(1, model:predict(ones, { verbose = 0 }):min():item())
    end
  end)

  it("is what a script gave the call, where nothing else says it", function()
    local input, path = flow.Input { 400 }, support.file("own.keras", "")
    local model = flow.Model { inputs = input, outputs = layers.Dropout(0.5)(input, { training = true }) }
    model:save(path)
    for _, each in ipairs { model, flow.load_model(path) } do
      assert.equal(0, each(ones):min():item())
      assert.equal(1, each(ones, { training = false }):min():item())
    end
  end)
end)
