-- step_data_spec.lua: what a step of a model's own is given, as Keras gives it (keras.src.trainers.data_adapters.data_adapter_utils): a
-- tensor where x is alone, lists of x, y and sample_weight otherwise, elements of a Dataset as they are.
require "spec.support.init"
local flow = require "flow"
local support = require "spec.support.init"

local x, y, w = flow.ones { 5, 3 }, flow.zeros { 5, 2 }, flow.ones { 5 }

--- A compiled model whose steps note what they are given: "tensor", or "list" and how long it is.
local function noting(options)
  local seen = {}
  local Noting = flow.Model:extend "Noting"
  function Noting:init() self.dense = flow.layers.Dense(2) end
  function Noting:call(values) return self.dense(values) end
  local function note(kind, data)
    seen[kind] = flow.is_tensor(data) and "tensor" or "list " .. #data
    return flow.is_tensor(data) and data or data[1]
  end
  function Noting:train_step(data) return { loss = self(note("train", data)):mean() } end
  function Noting:test_step(data) return { loss = self(note("test", data)):mean() } end
  function Noting:predict_step(data) return self(note("predict", data)) end
  local model = Noting()
  options.optimizer, options.loss = "sgd", "mse"
  model:compile(options)
  return model, seen
end

describe("the data of a step", function()
  for _, eagerly in ipairs { false, true } do
    local how = eagerly and "run eagerly" or "traced"

    it("is the tensor where x is given alone, " .. how, function()
      local model, seen = noting { run_eagerly = eagerly }
      model:fit(x, nil, { verbose = 0, batch_size = 2 })
      model:evaluate(x, nil, { verbose = 0, batch_size = 2 })
      assert.same({ 5, 2 }, model:predict(x, { verbose = 0, batch_size = 2 }).shape)
      assert.same({ train = "tensor", test = "tensor", predict = "tensor" }, seen)
      model, seen = noting { run_eagerly = eagerly }
      model:fit(x, nil, { verbose = 0, validation_split = 0.4 })
      assert.equal("tensor", seen.test)
    end)

    it("is a table by name where a model has its targets in it, " .. how, function()
      local Towers = flow.Model:extend "TowersByName"
      function Towers:init() self.left, self.right = flow.layers.Dense(2), flow.layers.Dense(2) end
      function Towers:call(batch) return self.left(batch.a) * self.right(batch.b) end
      function Towers:compute_loss(batch, targets, predictions)
        assert(targets == nil)
        return ((predictions - batch.c) ^ 2):mean()
      end
      local towers, names = Towers(), { a = x, b = x * 2, c = x:sum(-1, true) }
      local batches = flow.data.Dataset.from_tensor_slices(names):batch(2)
      towers:compile { optimizer = "sgd", run_eagerly = eagerly }
      assert.equal(2, #towers:fit(batches, { epochs = 2, verbose = 0 }).history.loss)
      local losses, rows = 0, 0
      for batch in batches:iter() do
        local n = batch.a.shape[1]
        losses, rows = losses + n * towers:compute_loss(batch, nil, towers(batch)):item(), rows + n
      end
      local loss = towers:evaluate(batches, { verbose = 0 })
      assert.near(losses / rows, type(loss) == "table" and loss.loss or loss, 1e-5)
      assert.near(0, (towers:predict(batches, { verbose = 0 }) - towers(names)):abs():max():item(), 1e-6)
      assert.equal(names, (flow.utils.unpack_x_y_sample_weight(names)))
    end)

    it("gives several results of a prediction, " .. how, function()
      local Two = flow.Model:extend "TwoResults"
      function Two:predict_step(data) return data * 2, data:sum(-1) end
      local two = Two()
      two:compile { run_eagerly = eagerly }
      local doubled, sums = unpack(two:predict(x, { verbose = 0, batch_size = 2 }))
      assert.equal(0, (doubled - x * 2):abs():max():item())
      assert.equal(0, (sums - x:sum(-1)):abs():max():item())
    end)

    it("is a list where there is more, and of one batch, " .. how, function()
      local model, seen = noting { run_eagerly = eagerly }
      model:fit(x, y, { verbose = 0, sample_weight = w })
      model:evaluate(x, y, { verbose = 0 })
      model:predict({ x }, { verbose = 0 })
      assert.same({ train = "list 3", test = "list 2", predict = "list 1" }, seen)
      model:train_on_batch(x)
      model:test_on_batch(x)
      model:predict_on_batch(x)
      assert.same({ train = "list 1", test = "list 1", predict = "list 1" }, seen)
      model:fit(x, nil, { verbose = 0 })      -- after a list of the same tensors: another step
      assert.equal("tensor", seen.train)
    end)

    it("is an element of a Dataset as it is, " .. how, function()
      local model, seen = noting { run_eagerly = eagerly }
      local Dataset = flow.data.Dataset
      model:fit(Dataset.from_tensor_slices(x):batch(2), { verbose = 0 })
      model:evaluate(Dataset.from_tensor_slices({ x, y }):batch(2), { verbose = 0 })
      model:predict(Dataset.from_tensor_slices(x):batch(2), { verbose = 0 })
      assert.same({ train = "tensor", test = "list 2", predict = "tensor" }, seen)
    end)
  end

  it("may have parts with different numbers of rows, as zip gives them", function()
    local Pairs = flow.Model:extend "Pairs"
    function Pairs:init() self.dense = flow.layers.Dense(2, { kernel_initializer = "ones" }) end
    function Pairs:train_step(data)
      local many, few, labels = data[1], data[2][1], data[2][2]
      local tape = flow.GradientTape()
      local loss = tape:record(function()
        local all = self.dense(flow.concat({ many, few }, 1))
        return all:square():mean() + (self.dense(few) - labels):square():mean()
      end)
      self.optimizer:apply_gradients(tape:gradient(loss, self.trainable_variables), self.trainable_variables)
      return { loss = loss, rows = flow.ones_like(many):sum() }
    end
    local Dataset = flow.data.Dataset
    local many, few = flow.random.normal({ 24, 3 }, { seed = 1 }), flow.random.normal({ 10, 3 }, { seed = 2 })
    local labelled = Dataset.from_tensor_slices { few, few[{ {}, { 1, 2 } }] }
    local pairs_of = Dataset.zip { Dataset.from_tensor_slices(many):batch(8), labelled:batch(4) }
    local histories = {}
    for i, eagerly in ipairs { false, true } do
      local model = Pairs()
      model:compile { optimizer = flow.optimizers.SGD(0.1), run_eagerly = eagerly }
      histories[i] = model:fit(pairs_of, { epochs = 2, verbose = 0 }).history
    end
    assert.equal(24, histories[1].rows[1])      -- of the last batch
    for epoch = 1, 2 do assert.truthy(math.abs(histories[1].loss[epoch] - histories[2].loss[epoch]) < 1e-6) end
    local plain = flow.Sequential { flow.layers.Input { 3 }, flow.layers.Dense(3) }
    plain:compile { optimizer = "sgd", loss = "mse" }
    local unequal = Dataset.zip { Dataset.from_tensor_slices(many):batch(8), Dataset.from_tensor_slices(few):batch(4) }
    assert.truthy(support.message_of(function() plain:fit(unequal, { verbose = 0 }) end):find("component 2 of a batch has 4 rows", 1, true))
  end)
end)
