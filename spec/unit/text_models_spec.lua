-- text_models_spec.lua: models with their own call() take text in fit, evaluate and predict, as graphs of layers do: what the layers
-- for text make of it is the input of their plans (model/host_replay.lua).
local support = require "spec.support.init"
local flow = require "flow"
local layers = flow.layers
local message_of = support.message_of

local words = flow.tensor { "good film", "bad film", "so good", "so bad" }
local labels = flow.tensor { { 1 }, { 0 }, { 1 }, { 0 } }
local how, silent = { verbose = 0, epochs = 2, batch_size = 2, shuffle = false }, { verbose = 0 }

local function vectorize()
  local layer = layers.TextVectorization { max_tokens = 20, output_sequence_length = 3 }
  layer:adapt(words)
  return layer
end

-- The parts of a classifier of texts, as fields of a model.
local function give_parts(self)
  self.vectorize, self.embed = vectorize(), layers.Embedding(20, 4, { embeddings_initializer = "ones" })
  self.pool, self.score = layers.GlobalAveragePooling1D(), layers.Dense(1, { kernel_initializer = "ones" })
end

local Plain = flow.Model:extend "Plain"
function Plain:init() give_parts(self) end
function Plain:call(x) return self.score(self.pool(self.embed(self.vectorize(x)))) end

local Own = Plain:extend "Own"
function Own:train_step(data)
  local x, y, loss = data[1], data[2], nil
  local tape = flow.GradientTape()
  tape:record(function() loss = self:compute_loss { x = x, y = y, y_pred = self(x, { training = true }) } end)
  self.optimizer:apply_gradients(tape:gradient(loss, self.trainable_variables), self.trainable_variables)
  return { loss = loss }
end

local function graph()
  local input, parts = flow.Input({}, { dtype = "string" }), {}
  give_parts(parts)
  return flow.Model { inputs = input, outputs = parts.score(parts.pool(parts.embed(parts.vectorize(input)))) }
end

local Around = flow.Model:extend "Around"
function Around:init() self.inner = graph() end
function Around:call(x) return self.inner(x) end

local Encoder = layers.Layer:extend "Encoder"
function Encoder:init() give_parts(self) end
function Encoder:call(x) return self.pool(self.embed(self.vectorize(x))) end
local Nested = flow.Model:extend "Nested"
function Nested:init() self.encode, self.score = Encoder(), layers.Dense(1, { kernel_initializer = "ones" }) end
function Nested:call(x) return self.score(self.encode(x)) end

local function trained(make, options)
  local model = make()
  options = options or {}
  options.optimizer, options.loss = "sgd", "mse"
  model:compile(options)
  return model, model:fit(words, labels, how).history.loss
end

describe("a model with its own call()", function()
  it("trains on text as a graph of the same layers", function()
    local reference, losses = trained(graph)
    local expected = reference:predict(words, silent):totable()
    for name, make in pairs { Plain = Plain, Own = Own, Around = Around, Nested = Nested } do
      local model, found = trained(make)
      if name ~= "Own" then assert.same(losses, found, name) end      -- its loss is the last batch's
      assert.same(expected, model:predict(words, silent):totable(), name)
      assert.same(expected, model:predict({ "good film", "bad film", "so good", "so bad" }, silent):totable(), name)
      assert.same(expected, model(words):totable(), name)
      assert.same(reference:evaluate(words, labels, silent), model:evaluate(words, labels, silent), name)
      assert.same(reference:test_on_batch(words, labels), model:test_on_batch(words, labels), name)
      local batches = flow.data.Dataset.from_tensor_slices { words, labels }:batch(2)
      assert.same(reference:evaluate(batches, silent), model:evaluate(batches, silent), name)
    end
    local _, eagerly = trained(Plain, { run_eagerly = true })
    for i, loss in ipairs(losses) do assert.near(loss, eagerly[i], 1e-6) end
  end)

  it("takes several inputs of which some are text, and branches by training", function()
    local Two = flow.Model:extend "Two"
    function Two:init()
      give_parts(self)
      self.drop = layers.Dropout(0.5)
    end
    function Two:call(inputs, training)
      local x = self.pool(self.embed(self.vectorize(inputs[1])))
      if training then x = self.drop(x, { training = true }) end
      return self.score(flow.concat({ x, inputs[2] }, -1))
    end
    local model, numbers = Two(), flow.tensor { { 1 }, { 2 }, { 3 }, { 4 } }
    model:compile { optimizer = "sgd", loss = "mse" }
    model:fit({ words, numbers }, labels, how)
    assert.same(model({ words, numbers }):totable(), model:predict({ words, numbers }, silent):totable())
  end)

  it("takes numbers that layers look up", function()
    local Ids = flow.Model:extend "Ids"
    function Ids:init()
      self.look_up, self.score = layers.IntegerLookup { vocabulary = { 3, 5 }, output_mode = "one_hot" }, layers.Dense(1)
    end
    function Ids:call(x) return self.score(self.look_up(x)) end
    local model, ids = Ids(), flow.tensor({ { 3 }, { 5 }, { 7 }, { 3 } }, "int64")
    model:compile { optimizer = "sgd", loss = "mse" }
    model:fit(ids, labels, how)
    assert.same(model(ids):totable(), model:predict(ids, silent):totable())
  end)

  it("takes text of which sizes are not known", function()
    local Open = Plain:extend "Open"
    function Open:init()
      Plain.init(self)
      self.vectorize = layers.TextVectorization()
      self.vectorize:adapt(words)
    end
    local model = trained(Open)
    for _, count in ipairs { 2, 4 } do
      local text = flow.tensor { "good film", ("so good film "):rep(count) }
      assert.same(model(text):totable(), model:predict(text, silent):totable())
    end
  end)

  it("uses the layers that it has now", function()
    local model = trained(Plain)
    model.vectorize = layers.TextVectorization { vocabulary = { "film" }, output_sequence_length = 3 }
    assert.same(model(words):totable(), model:predict(words, silent):totable())
    model.vectorize:set_vocabulary { "good" }
    assert.same(model(words):totable(), model:predict(words, silent):totable())
  end)

  it("is written and read", function()
    local model, path = trained(Plain), support.folder() .. "/model.keras"
    model:save(path)
    local read = flow.models.load_model(path, { custom_objects = { Plain = Plain } })
    assert.same(model:predict(words, silent):totable(), read:predict(words, silent):totable())
  end)

  it("says what cannot be", function()
    local Late = Plain:extend "Late"
    function Late:call(x, training)
      local codes = self.vectorize(x)
      if training then codes = codes + self.vectorize(x) end
      return self.score(self.pool(self.embed(codes)))
    end
    assert.truthy(message_of(trained, Late):find("is called on the model's data here, but not when training = false", 1, true))
    local model = trained(Plain)
    assert.truthy(message_of(function() model:predict(flow.ones { 4 }, silent) end):find("takes strings, got", 1, true))
  end)
end)
